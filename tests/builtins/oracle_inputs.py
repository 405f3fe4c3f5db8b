"""Arguments of builtins: edges of their types, ordinary numbers, and those that a formula needs."""

import math

import numpy as np
from scipy.spatial.transform import Rotation


def float_edges(dtype):
    limits = np.finfo(dtype)
    ends = [
        limits.max,
        limits.tiny,
        limits.smallest_subnormal,
        np.inf,
        0.0,
        1.0,
        0.5,
        2.0,
        1.5,
        2.5,
        0.25,
        1 - limits.epsneg,
        1 + limits.eps,
        math.pi / 2,
        math.pi,
    ]
    return np.array([*ends, *(-e for e in ends), np.nan], dtype=dtype)


def integer_edges(dtype):
    limits = np.iinfo(dtype)
    ends = {
        0,
        1,
        2,
        3,
        7,
        limits.max,
        limits.max - 1,
        limits.min,
        limits.min + 1,
        limits.bits - 1,
        limits.bits,
        limits.bits + 1,
        -1,
        -2,
        -7,
    }
    return np.array(sorted(e for e in ends if limits.min <= e <= limits.max), dtype=dtype)


def edges(dtype):
    return (
        {"f": float_edges, "i": integer_edges, "u": integer_edges}[dtype.kind](dtype)
        if dtype.kind != "b"
        else np.array([False, True])
    )


def ordinary(rng, dtype, shape, low=-3, high=3):
    """Numbers of many magnitudes (floats) or of all bit patterns, half of them small (integers)."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return (rng.normal(size=shape) * np.exp2(rng.integers(low, high + 1, shape))).astype(dtype)
    limits = np.iinfo(dtype)
    every = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    small = rng.integers(max(limits.min, -20), 20, shape).astype(dtype)
    return np.where(rng.integers(0, 2, shape) == 0, every, small)


def mixed(rng, types, rows):
    """Scalars: edges first against edges, then against ordinary numbers. Aggregates: some edges, unit quaternions."""
    arrays = []
    for kind in types:
        dtype = kind.numpy
        values = ordinary(rng, dtype, (rows, *kind.shape))
        if kind.kind in ("quaternion", "transform"):
            q = values[..., -4:].astype(np.float64)
            values[..., -4:] = (q / np.linalg.norm(q, axis=-1, keepdims=True)).astype(dtype)
        special = edges(dtype)
        if kind.kind == "scalar":
            is_edge = rng.random(rows) < 0.6
            values = np.where(is_edge, special[rng.integers(0, len(special), rows)], values)
        else:
            flat = values[:16].reshape(16, -1)
            where = rng.random(flat.shape) < 0.3
            flat[where] = special[rng.integers(0, len(special), where.sum())]
            values[16:18] = 0
        arrays.append(values)
    return arrays


def unary(low=-8, high=8):
    """Every edge, then numbers with exponents from low to high."""

    def inputs(rng, types, rows):
        dtype = types[0].numpy
        special = edges(dtype)
        values = ordinary(rng, dtype, rows, low, high)
        values[: len(special)] = special
        rng.shuffle(values)
        return [values]

    return inputs


def normal_only(inputs):
    """Without the subnormal numbers, for functions that SciPy does not give there."""

    def filtered(rng, types, rows):
        arrays = inputs(rng, types, rows)
        return [np.where(np.abs(a) < np.finfo(a.dtype).smallest_normal, 0, a).astype(a.dtype) for a in arrays]

    return filtered


def within(*ranges):
    """Uniform in a range for each argument, without edges; None is as mixed() has it."""

    def inputs(rng, types, rows):
        arrays = mixed(rng, types, rows)
        for i, (kind, limits) in enumerate(zip(types, ranges)):
            if limits is not None:
                arrays[i] = rng.uniform(*limits, (rows, *kind.shape)).astype(kind.numpy)
        return arrays

    return inputs


def unit_vectors(*which):
    """As mixed(), with vectors of length 1 at these positions."""

    def inputs(rng, types, rows):
        arrays = mixed(rng, types, rows)
        for i in which:
            v = rng.normal(size=arrays[i].shape)
            arrays[i] = (v / np.linalg.norm(v, axis=-1, keepdims=True)).astype(arrays[i].dtype)
        return arrays

    return inputs


def invertible(rng, types, rows):
    n = types[0].shape[0]
    m = rng.normal(size=(rows, n, n)) * 0.3 + 2 * np.eye(n)[rng.permuted(np.tile(np.arange(n), (rows, 1)), axis=1)]
    m[3] = 0  # singular matrices
    m[40] = 1
    return [m.astype(types[0].numpy)]


def decided_rotations(rng, rows):
    """Rotations whose quaternions have one component that is clearly the greatest: rounding keeps their sign."""
    q = Rotation.random(8 * rows, rng=rng).as_quat()
    sizes = np.sort(np.abs(q), axis=1)
    decided = (sizes[:, 3] - sizes[:, 2] > 0.05) & (np.abs(4 * q[:, 3] ** 2 - 1) > 0.1)
    return Rotation.from_quat(q[decided][:rows])


def rigid(rng, types, rows, scale=False):
    m = np.zeros((rows, *types[0].shape))
    m[:, :3, :3] = decided_rotations(rng, rows).as_matrix()
    if scale:
        signs = np.where(rng.random((rows, 1)) < 0.3, [[-1, 1, 1]], 1)
        m[:, :3, :3] *= (rng.uniform(0.5, 2, (rows, 3)) * signs)[:, None, :]
    if types[0].shape[0] == 4:
        m[:, :3, 3] = rng.normal(size=(rows, 3))
        m[:, 3, 3] = 1
    return [m.astype(types[0].numpy)]


def scaled_rigid(rng, types, rows):
    return rigid(rng, types, rows, scale=True)

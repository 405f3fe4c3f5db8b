"""What every builtin should give: formulas in NumPy and SciPy, with the error that is allowed.

ORACLE maps a name and signature of the table to an Oracle; a name alone stands for all its overloads. References take
one array per argument, (rows,) for scalars, (rows, n) for vectors, (rows, r, c) for matrices, (rows, 4) and (rows, 7)
for quaternions and transforms, and give one array, or a tuple of them, of what the call gives and assigns.

ELSEWHERE names the test file of entries that the sweep cannot call with one value per row.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Callable

import numpy as np
import scipy.special
from scipy.spatial.transform import Rotation


@dataclass(frozen=True)
class Oracle:
    reference: Callable
    # None: the reference takes arguments in their own type, and the result must be equal. Else: it takes them in a
    # wider type, and the result may be so many units in the last place away.
    ulp: float | None = None
    # Magnitude of which the units are counted, from the same arguments; None: the expected value's own.
    scale: Callable | None = None
    # Arguments: (random generator, types, rows) -> arrays; None: inputs.mixed.
    inputs: Callable | None = None
    # Whether -0.0 and 0.0 are told apart.
    signed_zero: bool = False
    # Whether only rows count in which the quaternions and rotations have length 1.
    unit: bool = False


# ---- inputs ----


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


# ---- integers as C has them ----


def by_integers(formula):
    """A formula on Python's integers, wrapped to the type of the arguments."""

    def reference(*arguments):
        dtype = arguments[0].dtype
        span = 1 << 8 * dtype.itemsize
        least = np.iinfo(dtype).min

        def wrapped(*numbers):
            return (formula(*map(int, numbers)) - least) % span + least

        flat = [a.ravel() for a in arguments]
        return np.array([wrapped(*row) for row in zip(*flat)], dtype=dtype).reshape(arguments[0].shape)

    return reference


def by_kind(integers, floats):
    def reference(*arguments):
        return (floats if arguments[0].dtype.kind == "f" else integers)(*arguments)

    return reference


def quotient(dtype):
    least = np.iinfo(dtype).min

    def divide(a, b):
        if b == 0 or (a == least and b == -1 and least < 0):
            return 0
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    return divide


def integer_div(a, b):
    a, b = np.broadcast_arrays(a, b)
    return by_integers(quotient(a.dtype))(a, b)


def integer_mod(a, b):
    divide = quotient(a.dtype)
    least = np.iinfo(a.dtype).min
    return by_integers(lambda x, y: 0 if y == 0 or (x == least < 0 and y == -1) else x - divide(x, y) * y)(a, b)


def integer_floordiv(a, b):
    least = np.iinfo(a.dtype).min
    return by_integers(lambda x, y: 0 if y == 0 or (x == least < 0 and y == -1) else x // y)(a, b)


def float_floordiv(a, b):
    below = (a != 0) & ~np.isnan(b) & (np.signbit(a) != np.signbit(b)) & (np.abs(a) < np.abs(b))
    return np.where(below, -1, np.floor(a / b))  # of a quotient that vanishes, too


def shift(left):
    def reference(a, b):
        bits = 8 * a.dtype.itemsize
        return by_integers(lambda x, y: x << y % bits if left else x >> y % bits)(a, b)

    return reference


def over(a, b):
    """Quotient of a and b, one of them a scalar for each row of the other."""
    a, b = spread(a, b)
    return by_kind(integer_div, np.divide)(a, b)


def spread(a, b):
    ndim = max(a.ndim, b.ndim)
    return tuple(x.reshape(x.shape + (1,) * (ndim - x.ndim)) for x in (a, b))


# ---- algebra ----


def each(formula):
    """A reference in which arguments with fewer dimensions are spread over the others."""

    def reference(*arguments):
        ndim = max(a.ndim for a in arguments)
        return formula(*(a.reshape(a.shape + (1,) * (ndim - a.ndim)) for a in arguments))

    return reference


def sum_of(a):
    """Left to right, in the type of the argument."""
    flat = a.reshape(len(a), -1)
    total = flat[:, 0]
    for i in range(1, flat.shape[1]):
        total = total + flat[:, i]
    return total


def dot(a, b):
    return sum_of(a * b)


def length(a):
    return np.sqrt(dot(a, a))


def normalized(a):
    size = length(a)[:, None]
    return np.where(size > 0, a / np.where(size > 0, size, 1), 0)


def product(a, b):
    """Matrix products, of vectors as columns on the right and rows on the left."""
    if b.ndim == 2:
        return np.stack([sum_of(a[:, i] * b) for i in range(a.shape[1])], axis=-1)
    if a.ndim == 2:
        return np.stack([sum_of(a * b[:, :, j]) for j in range(b.shape[2])], axis=-1)
    return np.stack([product(a, b[:, :, j]) for j in range(b.shape[2])], axis=-1)


def magnitudes(formula):
    """The scale of a sum of products: the same formula of absolute values."""
    return lambda *arguments: formula(*(np.abs(a) for a in arguments))


def cross(a, b):
    return np.stack([a[:, i - 2] * b[:, i - 1] - a[:, i - 1] * b[:, i - 2] for i in range(3)], axis=-1)


def size_product(*arguments):
    """Product of the Euclidean sizes of all arguments, shaped as the expected value by broadcasting."""
    result = 1
    for a in arguments:
        result = result * np.maximum(np.sqrt(np.sum(a.reshape(len(a), -1) ** 2, axis=1)), 1)
    return result


def skew(v):
    zero = np.zeros_like(v[:, 0])
    x, y, z = v.T
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(-1, 3, 3)


def diagonal_matrix(v):
    return (
        v[:, :, None] * np.eye(v.shape[1], dtype=v.dtype)
        if v.dtype.kind != "f"
        else np.where(np.eye(v.shape[1], dtype=bool), v[:, :, None], 0)
    )


def best_index(better):
    def reference(a):
        index = np.zeros(len(a), dtype=np.uint32)
        for row, values in enumerate(a):
            for i in range(1, len(values)):
                if better(values[i], values[index[row]]):
                    index[row] = i
        return index

    return reference


def inverse(m):
    m = m.astype(np.float64)
    with np.errstate(all="ignore"):
        regular = np.abs(np.linalg.det(m)) > 1e-9
    result = np.zeros_like(m)
    result[regular] = np.linalg.inv(m[regular])
    return result


def inverse_scale(m):
    m = m.astype(np.float64)
    size = np.linalg.norm(m, axis=(1, 2))
    found = np.linalg.norm(inverse(m), axis=(1, 2))
    return found * np.maximum(size * found, 1)


def hadamard_bound(m):
    return np.prod(np.sqrt(np.sum(m * m, axis=2)), axis=1)


# ---- rotations: by SciPy, and by 4x4 matrices ----


def rotation(q):
    q = np.asarray(q, dtype=np.float64)
    size = np.linalg.norm(q, axis=-1, keepdims=True)
    usable = np.isfinite(size) & (size > 1e-6)
    with np.errstate(all="ignore"):
        return Rotation.from_quat(np.where(usable, q / size, [0, 0, 0, 1]))


def like(q, reference):
    """q or -q, whichever is closer to the reference."""
    return q * np.where(np.sum(q * reference, axis=1, keepdims=True) < 0, -1, 1)


def canonical(q):
    """As the table gives a quaternion made of a matrix: the greatest component positive, w where w is not the least."""
    greatest = np.argmax(np.abs(q), axis=1)
    trace_is_positive = 4 * q[:, 3] ** 2 >= 1
    lead = np.where(trace_is_positive, 3, np.where(greatest == 3, 3, greatest))
    return q * np.where(q[np.arange(len(q)), lead] < 0, -1, 1)[:, None]


def axis_angle(q, *_):
    vector = rotation(q).as_rotvec()
    angle = np.linalg.norm(vector, axis=1)
    return vector / np.where(angle > 0, angle, 1)[:, None], angle


def slerp(a, b, t):
    """a times a power of the rotation conj(a) b, of quaternions of any length."""
    a, b, t = (np.asarray(x, np.float64) for x in (a, b, t))
    turn = rotation(hamilton(a * [-1, -1, -1, 1], b)).as_rotvec() * t[:, None]
    return hamilton(a, Rotation.from_rotvec(turn).as_quat(canonical=False))


def turned(q, v):
    """q v q* by products of quaternions, and what quat_rotate adds for quaternions of another length than 1."""
    q, v = np.asarray(q, np.float64), np.asarray(v, np.float64)
    product = hamilton(hamilton(q, np.concatenate([v, np.zeros((len(v), 1))], axis=1)), q * [-1, -1, -1, 1])
    return product[:, :3] + (np.sum(q * q, axis=1, keepdims=True) - 1) * v


def turning_matrix(q):
    return np.stack([turned(q, np.tile(axis, (len(q), 1))) for axis in np.eye(3)], axis=2)


def quaternions(rng, types, rows):
    """Of any length, half of them 1; other arguments are ordinary numbers."""
    arrays = [rng.normal(size=(rows, *kind.shape)) for kind in types]
    for kind, values in zip(types, arrays):
        if kind.kind in ("quaternion", "transform"):
            values[::2, -4:] /= np.linalg.norm(values[::2, -4:], axis=1, keepdims=True)
            values[0, -4:], values[1, -4:] = [0, 0, 0, 2], 0
    return [values.astype(kind.numpy) for kind, values in zip(types, arrays)]


def twist(axis, q):
    """Of q about the axis: the twist t for which the rest, q * t^-1, turns about an axis at a right angle."""
    along = np.sum(axis * q[:, :3], axis=1)
    angle = 2 * np.arctan2(along, q[:, 3])
    return np.concatenate([axis * np.sin(angle / 2)[:, None], np.cos(angle / 2)[:, None]], axis=1)


def twist_angle(axis, q):
    """In [-2 pi, 2 pi]: twice that of the complex number which the twist is."""
    return 2 * np.angle(q[:, 3] + 1j * np.sum(axis * q[:, :3], axis=1))


def matrix4(t):
    m = np.zeros((len(t), 4, 4))
    m[:, :3, :3] = turning_matrix(t[:, 3:])
    m[:, :3, 3] = t[:, :3]
    m[:, 3, 3] = 1
    return m


def composed(p, q, s):
    m = matrix4(np.concatenate([p, q], axis=1).astype(np.float64))
    m[:, :3, :3] *= np.asarray(s, np.float64)[:, None, :]
    return m


def decomposed(m):
    m = np.asarray(m, np.float64)
    linear = m[:, :3, :3]
    scale = np.linalg.norm(linear, axis=1)
    scale[:, 0] *= np.where(np.linalg.det(linear) < 0, -1, 1)
    return m[:, :3, 3], canonical(Rotation.from_matrix(linear / scale[:, None, :]).as_quat()), scale


def products_of_components(m):
    """The matrix 4 q q^T, of a rotation matrix."""
    n = np.zeros((len(m), 4, 4))
    diagonal = m[:, [0, 1, 2], [0, 1, 2]]
    trace = np.sum(diagonal, axis=1)
    n[:, :3, :3] = m + m.transpose(0, 2, 1)
    n[:, [0, 1, 2], [0, 1, 2]] = 1 + 2 * diagonal - trace[:, None]
    n[:, 3, :3] = n[:, :3, 3] = m[:, [2, 0, 1], [1, 2, 0]] - m[:, [1, 2, 0], [2, 0, 1]]
    n[:, 3, 3] = 1 + trace
    return n


def leading_component(m):
    """Which row of these products is taken: w, or the greatest of the diagonal."""
    diagonal = m[:, [0, 1, 2], [0, 1, 2]]
    return np.where(np.sum(diagonal, axis=1) >= 0, 3, np.argmax(diagonal, axis=1))


def from_matrix(m):
    m = np.asarray(m[:, :3, :3], np.float64)
    row = products_of_components(m)[np.arange(len(m)), leading_component(m)]
    return row / np.linalg.norm(row, axis=1, keepdims=True)


def from_matrix4(m):
    """A transform from m @ 4x4 products: its matrix entries tell position and rotation."""
    return np.concatenate([m[:, :3, 3], from_matrix(m)], axis=1)


def any_matrices(rng, types, rows):
    """Rotations, and matrices that are none: where rounding cannot change the row that is taken."""
    found = rigid(rng, types, rows)[0].astype(np.float64)
    others = rng.normal(size=(rows // 2, 3, 3))
    diagonal = np.sort(others[:, [0, 1, 2], [0, 1, 2]], axis=1)
    others[(np.abs(np.sum(diagonal, axis=1)) < 0.1) | (diagonal[:, 2] - diagonal[:, 1] < 0.1)] = np.diag([1, -2, -3])
    found[: rows // 2, :3, :3] = others
    return [found.astype(types[0].numpy)]


def transform_product(a, b):
    q = (rotation(a[:, 3:]), rotation(b[:, 3:]))
    found = (q[0] * q[1]).as_quat()
    exact = hamilton(a[:, 3:], b[:, 3:])
    position = (matrix4(a) @ matrix4(b))[:, :3, 3]
    return np.concatenate([position, like(found, exact)], axis=1)


def hamilton(a, b):
    """Through the 4x4 matrix of left multiplication, x y z w."""
    x, y, z, w = a.T
    m = np.stack([w, -z, y, x, z, w, -x, y, -y, x, w, z, -x, -y, -z, w], axis=-1).reshape(-1, 4, 4)
    return product(m, b)


def transform_inverse(t):
    inverted = np.linalg.inv(matrix4(t))
    return np.concatenate([inverted[:, :3, 3], t[:, 3:] * [-1, -1, -1, 1]], axis=1)


def apply4(m, v, w):
    v = np.concatenate([v, np.full_like(v[:, :1], w)], axis=1)
    return product(m, v)[:, :3]


def spatial_cross_matrix(a):
    """[w x, 0; v x, w x] for the twist (w, v)."""
    m = np.zeros((len(a), 6, 6), dtype=a.dtype)
    m[:, :3, :3] = m[:, 3:, 3:] = skew(a[:, :3])
    m[:, 3:, :3] = skew(a[:, 3:])
    return m


def twist_matrix(t):
    """[R, 0; p x R, R]"""
    t = np.asarray(t, np.float64)
    m = np.zeros((len(t), 6, 6))
    r = rotation(t[:, 3:]).as_matrix()
    m[:, :3, :3] = m[:, 3:, 3:] = r
    m[:, 3:, :3] = skew(t[:, :3]) @ r
    return m


def wrench_matrix(t):
    """The inverse transpose of the twists' matrix: power is the same in both frames."""
    return np.linalg.inv(twist_matrix(t)).transpose(0, 2, 1)


# ---- random numbers ----


def pcg(v):
    v = np.asarray(v, dtype=np.uint32)
    with np.errstate(over="ignore"):
        state = v * np.uint32(747796405) + np.uint32(2891336453)
        word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    return (word >> np.uint32(22)) ^ word


def draws(count, formula):
    """(value, new state) of a formula of `count` numbers, uniform in [0, 1), and of further arguments."""

    def reference(state, *arguments):
        state = state.astype(np.uint32)
        numbers = []
        for _ in range(count):
            state = pcg(state)
            numbers.append((state >> np.uint32(8)).astype(np.longdouble) / 2**24)
        return formula(*numbers, *arguments), state

    return reference


def bits_in_range(state, low, high):
    state = pcg(state)
    low_bits, high_bits = low.astype(np.uint32), high.astype(np.uint32)
    with np.errstate(all="ignore"):
        span = high_bits - low_bits
        rest = np.where(span == 0, 0, state % np.where(span == 0, 1, span))
        return (low_bits + rest).astype(np.uint32).view(low.dtype), state


def ring(u):
    return np.stack([np.cos(2 * np.pi * u), np.sin(2 * np.pi * u)], axis=-1)


def disk(u, v):
    return np.sqrt(u)[:, None] * ring(v)


def sphere(z, u):
    return np.concatenate([np.sqrt(np.maximum(1 - z * z, 0))[:, None] * ring(u), z[:, None]], axis=1)


def poisson(state, lam):
    """By products of uniform numbers (Knuth) below 10, else by transformed rejection (Hoermann, 1993)."""
    counts = np.zeros(len(state), dtype=np.uint32)
    states = np.zeros(len(state), dtype=np.uint32)
    for row, mean in enumerate(lam.astype(np.float64)):
        drawn = [state[row]]

        def unit():
            drawn[0] = pcg(drawn[0])
            return float(np.float32(drawn[0] >> np.uint32(8)) * np.float32(2**-24))

        counts[row], states[row] = (rejected if mean >= 10 else multiplied)(unit, mean), drawn[0]
    return counts, states


def multiplied(unit, mean):
    product, count = unit(), 0
    while product > np.exp(-mean):
        product, count = product * unit(), count + 1
    return count


def rejected(unit, mean):
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    while True:
        u, v = unit() - 0.5, unit()
        s = 0.5 - abs(u)
        k = np.floor((2 * a / s + b) * u + mean + 0.43)
        if s >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (s < 0.013 and v > s):
            continue
        bound = np.log(v) + np.log(1.1239 + 1.1328 / (b - 3.4)) - np.log(a / s**2 + b)
        if bound <= k * np.log(mean) - mean - scipy.special.gammaln(k + 1):
            return k


def poisson_inputs(rng, types, rows):
    state, lam = mixed(rng, types, rows)
    return [
        state,
        np.where(rng.random(rows) < 0.8, rng.uniform(0, 20, rows), rng.uniform(20, 1000, rows)).astype(np.float32),
    ]


def hash_of_corner(state, corner):
    """Of a corner of the lattice, (rows, dimensions) int."""
    h = pcg(state)
    for k in range(corner.shape[1]):
        with np.errstate(over="ignore"):
            h = pcg(h + (corner[:, k] & 0xFFFFFFFF).astype(np.uint32))
    return h


def noise(state, point, *periods):
    """Perlin's noise as one sum over the corners: weight times (gradient . offset)."""
    point = (point[:, None] if point.ndim == 1 else point).astype(np.float64)
    d = point.shape[1]
    base = np.floor(point)
    t = point - base
    blend = t**3 * (10 - 15 * t + 6 * t**2)
    bits = 24 if d == 1 else 32 // d
    total = np.zeros(len(point))
    for steps in itertools.product((0, 1), repeat=d):
        corner = base.astype(np.int64) + steps
        if periods:
            corner = corner % np.stack(periods, axis=1)
        h = hash_of_corner(state, corner).astype(np.int64)
        parts = (h[:, None] >> bits * np.arange(d)) & (2**bits - 1)
        gradient = ((parts + 0.5) / 2**bits * 2 - 1) * 2 / d
        weight = np.prod(np.where(steps, blend, 1 - blend), axis=1)
        total += weight * np.sum(gradient * (t - steps), axis=1)
    return total


def slope(state, point, axis):
    step = np.zeros(point.shape[1])
    step[axis] = 1e-4
    values = [noise(state, point + k * step) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 12e-4


def curlnoise(state, point, octaves=None, lacunarity=None, gain=None):
    """By finite differences of the potentials."""
    rows, d = point.shape
    octaves = np.ones(rows) if octaves is None else octaves
    lacunarity = np.full(rows, 2.0) if lacunarity is None else lacunarity
    gain = np.full(rows, 0.5) if gain is None else gain
    total = np.zeros((rows, min(d, 3)))
    for k in range(int(octaves.max())):
        state = pcg(state)
        p = point.astype(np.float64) * (lacunarity**k)[:, None]
        if d == 2:
            velocity = [slope(state, p, 1), -slope(state, p, 0)]
        else:
            with np.errstate(over="ignore"):
                x, y, z = ([slope(state + np.uint32(m), p, axis) for axis in range(3)] for m in range(3))
            velocity = [z[1] - y[2], x[2] - z[0], y[0] - x[1]]
        total += np.where(k < octaves, gain**k, 0)[:, None] * np.stack(velocity, axis=1)
    return total


def closest_points(p1, q1, p2, q2, epsilon):
    """Of the inner point of both lines and the best point for each end of a segment: the closest pair."""
    d1, d2, r = q1 - p1, q2 - p2, p1 - p2
    a, b, c, e, f = ((x * y).sum(axis=1) for x, y in ((d1, d1), (d1, d2), (d1, r), (d2, d2), (d2, r)))
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = [(b * f - c * e) / (a * e - b * b), (a * f - b * c) / (a * e - b * b)]
        pairs = [inner]
        for end in (0.0, 1.0):
            pairs.append([np.full_like(a, end), np.clip((b * end + f) / e, 0, 1)])
            pairs.append([np.clip((b * end - c) / a, 0, 1), np.full_like(a, end)])
    best = np.full((len(a), 3), np.inf, dtype=a.dtype)
    for s, t in pairs:
        distance = np.sqrt(((r + s[:, None] * d1 - t[:, None] * d2) ** 2).sum(axis=1))
        is_better = (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1) & (distance < best[:, 2])
        best[is_better] = np.stack([s, t, distance], axis=1)[is_better]
    return best


def segments(rng, types, rows):
    points = [rng.uniform(-2, 2, (rows, 3)) for _ in range(4)]
    # No two in nearly one direction, none short.
    points[1] = points[0] + rng.uniform(0.5, 2, (rows, 3)) * [1, 1, -1]
    points[3] = points[2] + rng.uniform(0.5, 2, (rows, 3)) * [-1, 1, 1]
    return [p.astype(t.numpy) for p, t in zip(points, types)] + [np.full(rows, 1e-6, dtype=types[4].numpy)]


def noise_inputs(rng, types, rows):
    arrays = mixed(rng, types, rows)
    arrays[1] = rng.uniform(-20, 20, arrays[1].shape).astype(np.float32)
    arrays[1][:8] = np.round(arrays[1][:8])  # corners
    if types[2:] and types[2].scalar == "int32":
        arrays[2:] = [rng.integers(1, 9, rows).astype(np.int32) for _ in arrays[2:]]
    elif types[2:]:
        arrays[2:] = [rng.integers(0, 4, rows).astype(np.uint32), np.full(rows, 2, np.float32)] + [
            rng.uniform(0.1, 1, rows).astype(np.float32)
        ]
    return arrays


def range_inputs(rng, types, rows):
    state, low, high = mixed(rng, types, rows)
    return [state, np.minimum(low, high), np.maximum(low, high)]


# ---- the table ----

ORACLE = {}
ELSEWHERE = {}


def oracle(names, *arguments, **options):
    """`names` are separated by blanks; "name(signature..." stands for the one overload that begins so."""
    for name in names if isinstance(names, list) else names.split():
        ORACLE[name] = Oracle(*arguments, **options)


def elsewhere(file, names):
    for name in names if isinstance(names, list) else names.split():
        ELSEWHERE[name] = file


def find(table, name, signature):
    """The line for an overload: the longest key that begins it, or the name's."""
    keys = [k for k in table if (name + signature).startswith(k) and "(" in k]
    return table[max(keys, key=len)] if keys else table.get(name)


def float_function(formula, to_f64=False):
    """Of one argument: longdouble where NumPy has the function for it."""
    return (lambda x: formula(x.astype(np.float64))) if to_f64 else formula


def by_math(function):
    return lambda x: np.array([function(float(v)) for v in x.ravel()]).reshape(x.shape)


# Scalar math.
oracle("min", np.fmin)
oracle("max", np.fmax)
oracle(["min(a: Vec[n,S]) -> S"], lambda a: np.fmin.reduce(a, axis=1))
oracle(["max(a: Vec[n,S]) -> S"], lambda a: np.fmax.reduce(a, axis=1))
oracle("clamp", lambda x, low, high: np.fmin(np.fmax(low, x), high))
oracle("abs", np.abs, signed_zero=True)
oracle("sign", lambda x: np.where(x < 0, -1, 1).astype(x.dtype))
oracle("copysign", np.copysign, signed_zero=True)
oracle("step", lambda x: (x < 0).astype(x.dtype))
oracle("nonzero", lambda x: (x != 0).astype(x.dtype))
oracle("bit_count", lambda x: np.bitwise_count(x.view(f"u{x.itemsize}")).astype(np.int32))
for _name in "sin cos tan".split():
    oracle(_name, getattr(np, _name), ulp=2, inputs=unary(-8, 12), signed_zero=True)
for _name in "sqrt cbrt sinh cosh tanh log log2 log10 exp".split():
    oracle(_name, getattr(np, _name), ulp=0.5 if _name == "sqrt" else 2, inputs=unary(-10, 6), signed_zero=True)
oracle("atan", np.arctan, ulp=2, inputs=unary(), signed_zero=True)
oracle("asin", lambda x: np.arcsin(np.clip(x, -1, 1)), ulp=2, inputs=unary(-6, 0), signed_zero=True)
oracle("acos", lambda x: np.arccos(np.clip(x, -1, 1)), ulp=2, inputs=unary(-6, 0))
oracle("atan2", np.arctan2, ulp=2, signed_zero=True)
oracle("degrees", lambda x: x * (180 / np.longdouble("3.14159265358979323846264338327950288")), ulp=2, inputs=unary())
oracle("radians", lambda x: x * (np.longdouble("3.14159265358979323846264338327950288") / 180), ulp=2, inputs=unary())
oracle("pow", np.power, ulp=2)
oracle("erf", by_math(math.erf), ulp=3, inputs=unary(-10, 2), signed_zero=True)
oracle("erfc", by_math(math.erfc), ulp=4, inputs=unary(-10, 3))
oracle("erfinv", float_function(scipy.special.erfinv, True), ulp=6, inputs=unary(-12, -1))
oracle("erfcinv", float_function(scipy.special.erfcinv, True), ulp=6, inputs=normal_only(unary(-12, -1)))
oracle(
    "round",
    lambda x: np.copysign(np.trunc(x) + (np.abs(x - np.trunc(x)) >= 0.5) * np.sign(x), x),
    inputs=unary(),
    signed_zero=True,
)
for _name in "rint trunc floor ceil".split():
    oracle(_name, getattr(np, _name), inputs=unary(), signed_zero=True)
oracle("frac", lambda x: x - np.trunc(x), inputs=unary())
oracle("isfinite", lambda a: np.isfinite(a).reshape(len(a), -1).all(axis=1))
oracle("isnan", lambda a: np.isnan(a).reshape(len(a), -1).any(axis=1))
oracle("isinf", lambda a: np.isinf(a).reshape(len(a), -1).any(axis=1))

# Vectors and matrices. Sums of products may be fused, so their error is counted in units of the terms.
oracle("dot ddot spatial_dot", dot, ulp=4, scale=magnitudes(dot))
oracle("length_sq", lambda a: dot(a, a), ulp=4)
oracle("argmin", best_index(lambda a, b: a < b))
oracle("argmax", best_index(lambda a, b: a > b))
oracle("outer", lambda a, b: a[:, :, None] * b[:, None, :], ulp=0.5)
oracle(
    "cross",
    cross,
    ulp=2,
    scale=lambda a, b: (
        np.abs(cross(np.abs(a), -np.abs(b)))
        + magnitudes(
            lambda x, y: np.stack([x[:, i - 2] * y[:, i - 1] + x[:, i - 1] * y[:, i - 2] for i in range(3)], axis=-1)
        )(a, b)
    ),
)
oracle("skew", skew)
oracle("length norm_l2", length, ulp=4)
oracle("normalize", normalized, ulp=6)
oracle(
    ["normalize(a: Quat"],
    lambda q: np.where(length(q)[:, None] == 0, np.eye(4, dtype=q.dtype)[3], normalized(q)),
    ulp=6,
)
oracle("transpose", lambda a: a.transpose(0, 2, 1), signed_zero=True)
oracle("inverse inverse_approx", inverse, ulp=16, scale=inverse_scale, inputs=invertible)
oracle("determinant", lambda m: np.linalg.det(m.astype(np.float64)), ulp=16, scale=hadamard_bound, inputs=invertible)
oracle("trace", lambda m: sum_of(np.diagonal(m, axis1=1, axis2=2)))
oracle("diag", diagonal_matrix)
oracle("get_diag", lambda m: np.diagonal(m, axis1=1, axis2=2).copy(), signed_zero=True)
oracle("cw_mul", np.multiply)
oracle("cw_div", over)
oracle("matrix_from_cols", lambda *v: np.stack(v, axis=2), signed_zero=True)
oracle("matrix_from_rows", lambda *v: np.stack(v, axis=1), signed_zero=True)

# Norms.
_positive_delta = within(None, (0.1, 3.0))


def _delta(delta):
    return 1 if not delta else delta[0]


def huber(v, *delta):
    d = _delta(delta)
    size = length(v)
    return np.where(size <= d, size * size / 2, d * (size - d / 2))


def pseudo_huber(v, *delta):
    d = _delta(delta)
    return d * np.sqrt(1 + dot(v, v) / (d * d))


oracle("norm_l1", lambda v: sum_of(np.abs(v)), ulp=3)
oracle("norm_huber", huber, ulp=6, scale=lambda v, *d: np.maximum(length(v), 1) ** 2, inputs=_positive_delta)
oracle("norm_pseudo_huber", pseudo_huber, ulp=6, inputs=_positive_delta)
oracle("smooth_normalize", lambda v, *d: v / pseudo_huber(v, *d)[:, None], ulp=8, inputs=_positive_delta)

# Quaternions. The rotations of SciPy, which normalises: errors are counted in units of the vectors' lengths.
_rounding = 16
oracle("quaternion", lambda x, y, z, w: np.stack([x, y, z, w], axis=1), signed_zero=True)
oracle(["quaternion(ijk"], lambda v, w: np.concatenate([v, w[:, None]], axis=1), signed_zero=True)
oracle(
    ["quat_from_axis_angle(axis"],
    lambda axis, angle: Rotation.from_rotvec(np.float64(axis) * np.float64(angle)[:, None]).as_quat(canonical=False),
    ulp=_rounding,
    scale=size_product,
    inputs=lambda rng, types, rows: (
        unit_vectors(0)(rng, types, rows)[:1] + [rng.uniform(-3, 3, rows).astype(types[1].numpy)]
    ),
    unit=True,
)
oracle(
    ["quat_from_axis_angle(x"],
    lambda x, y, z, a: np.stack([x * np.sin(a / 2), y * np.sin(a / 2), z * np.sin(a / 2), np.cos(a / 2)], axis=1),
    ulp=4,
    scale=lambda *a: size_product(*a),
    inputs=within((-1, 1), (-1, 1), (-1, 1), (-6, 6)),
)
oracle(
    "quat_to_axis_angle",
    axis_angle,
    ulp=_rounding,
    scale=lambda q, *_: 1 / np.maximum(np.sqrt(sum_of(q[:, :3] ** 2)), 1e-3),
    unit=True,
)
_of_matrices = {"ulp": 4 * _rounding, "scale": size_product, "inputs": any_matrices}
oracle("quat_from_matrix", from_matrix, **_of_matrices)
oracle(
    "quat_rpy",
    lambda *angles: like_rpy(*angles),
    ulp=_rounding,
    scale=lambda *a: np.ones(len(a[0])),
    inputs=within((-3, 3), (-1.4, 1.4), (-3, 3)),
    unit=True,
)


def like_rpy(roll, pitch, yaw):
    found = Rotation.from_euler("xyz", np.stack([roll, pitch, yaw], axis=1).astype(np.float64)).as_quat()
    halves = [np.float64(a) / 2 for a in (roll, pitch, yaw)]
    w = np.prod(np.cos(halves), axis=0) + np.prod(np.sin(halves), axis=0)
    return found * np.where(found[:, 3] * w < 0, -1, 1)[:, None]


def _away_from_the_poles(rng, types, rows):
    angles = np.stack([rng.uniform(-3, 3, rows), rng.uniform(-1.2, 1.2, rows), rng.uniform(-3, 3, rows)], axis=1)
    return [Rotation.from_euler("xyz", angles).as_quat().astype(types[0].numpy)]


oracle(
    "quat_to_rpy",
    lambda q: rotation(q).as_euler("xyz"),
    ulp=8 * _rounding,
    scale=size_product,
    inputs=_away_from_the_poles,
    unit=True,
)


def _orders(rng, rows):
    """Axes i != j != k."""
    orders = [o for o in itertools.product(range(3), repeat=3) if o[0] != o[1] != o[2]]
    return np.array(orders, dtype=np.int32)[rng.integers(0, len(orders), rows)].T


def from_euler(e, i, j, k):
    """The axes stand still, and each has its angle at its own place."""
    rows = np.arange(len(e))
    return by_turns(np.float64(np.stack([e[rows, i], e[rows, j], e[rows, k]], axis=1)), i, j, k)


def by_turns(angles, i, j, k):
    """The first angle is that about axis i: SciPy's small letters. The sign is that of a product of half turns."""
    found = np.zeros((len(angles), 4))
    for row in range(len(angles)):
        order = "".join("xyz"[a[row]] for a in (i, j, k))
        found[row] = Rotation.from_euler(order, angles[row]).as_quat()
    half_turns = []
    for axis, angle in zip((i, j, k), angles.T):
        q = np.zeros((len(angles), 4))
        q[np.arange(len(angles)), axis] = np.sin(angle / 2)
        q[:, 3] = np.cos(angle / 2)
        half_turns.append(q)
    return like(found, hamilton(half_turns[2], hamilton(half_turns[1], half_turns[0])))


def to_euler(q, i, j, k):
    """SciPy's angles, each at the place of its axis. Of the angles that differ by full turns the first and the last are
    the difference and the sum of two numbers in [-pi, pi], which the sign of the quaternion decides."""
    found = np.zeros((len(q), 3))
    for row in range(len(q)):
        axes = i[row], j[row], k[row]
        x, y, z, w = (float(q[row, n]) for n in (i[row], j[row], 3 - i[row] - j[row], 3))
        sign = np.sign(np.linalg.det(np.eye(3)[[i[row], j[row], 3 - i[row] - j[row]]]))
        z *= sign
        a, b, c, d = (w, x, y, z) if axes[0] == axes[2] else (w - y, x + z, y + w, z - x)
        half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
        near = half_sum - half_difference, (half_sum + half_difference) * (1 if axes[0] == axes[2] else sign)
        first, second, third = rotation(q[row]).as_euler("".join("xyz"[axis] for axis in axes))
        found[row, i[row]] = first + 2 * np.pi * np.round((near[0] - first) / (2 * np.pi))
        found[row, j[row]] = second
        found[row, 3 - i[row] - j[row]] = third + 2 * np.pi * np.round((near[1] - third) / (2 * np.pi))
    return found


def euler_inputs(rng, types, rows):
    return [rng.uniform(-3, 3, (rows, 3)).astype(types[0].numpy), *_orders(rng, rows)]


def _away_from_lock(rng, types, rows):
    """Rotations whose middle angle is far from where the other two turn about one line."""
    orders = _orders(rng, rows)
    angles = rng.uniform(-3, 3, (rows, 3))
    angles[:, 1] = np.where(orders[0] == orders[2], rng.uniform(0.3, 2.8, rows), rng.uniform(-1.2, 1.2, rows))
    return [by_turns(angles, *orders).astype(types[0].numpy), *orders]


oracle(
    "quat_from_euler",
    from_euler,
    ulp=_rounding,
    scale=lambda e, *_: np.ones(len(e)),
    inputs=euler_inputs,
    unit=True,
)
oracle(
    "quat_to_euler",
    to_euler,
    ulp=8 * _rounding,
    scale=lambda q, *_: np.full(len(q), 4.0),
    inputs=_away_from_lock,
    unit=True,
)


def between(a, b):
    """By axis and angle; the angle from sine and cosine."""
    a, b = (np.float64(v) / np.linalg.norm(np.float64(v), axis=1, keepdims=True) for v in (a, b))
    axis = np.cross(a, b)
    sine = np.linalg.norm(axis, axis=1, keepdims=True)
    angle = np.arctan2(sine[:, 0], np.sum(a * b, axis=1))
    return Rotation.from_rotvec(axis / sine * angle[:, None]).as_quat(canonical=True)


oracle(
    "quat_between_vectors",
    between,
    ulp=_rounding,
    scale=lambda a, b: np.ones(len(a)),
    inputs=lambda rng, types, rows: [rng.normal(size=(rows, 3)).astype(t.numpy) for t in types],
)
oracle("quat_inverse", lambda q: q * np.array([-1, -1, -1, 1], dtype=q.dtype), signed_zero=True)
_of_quaternions = {
    "ulp": _rounding,
    "scale": lambda q, *more: (1 + np.sum(np.float64(q) ** 2, axis=1)) * (size_product(*more) if more else 1),
    "inputs": quaternions,
}
oracle("quat_rotate", turned, **_of_quaternions)
oracle("quat_rotate_inv", lambda q, v: turned(q * np.array([-1, -1, -1, 1], q.dtype), v), **_of_quaternions)
oracle(
    "quat_slerp",
    slerp,
    ulp=8 * _rounding,
    scale=lambda a, b, t: (1 + np.sum(np.float64(a) ** 2, axis=1)) * (1 + np.abs(t)),
    inputs=quaternions,
)
oracle("quat_to_matrix", turning_matrix, **_of_quaternions)
oracle(
    "quat_twist",
    lambda axis, q: twist(axis, q),
    ulp=4 * _rounding,
    scale=lambda axis, q: 1 / np.maximum(np.hypot(dot(axis, q[:, :3]), q[:, 3]), 1e-2),
    inputs=unit_vectors(0),
    unit=True,
)
oracle(
    "quat_twist_angle",
    lambda axis, q: np.abs(twist_angle(axis, q)),
    ulp=4 * _rounding,
    scale=lambda axis, q: 1 / np.maximum(np.hypot(dot(axis, q[:, :3]), q[:, 3]), 1e-2),
    inputs=unit_vectors(0),
    unit=True,
)
oracle(
    "quat_twist_angle_signed",
    twist_angle,
    ulp=4 * _rounding,
    scale=lambda axis, q: 1 / np.maximum(np.hypot(dot(axis, q[:, :3]), q[:, 3]), 1e-2),
    inputs=unit_vectors(0),
    unit=True,
)

# Transforms, by 4x4 matrices.
oracle("transformation", lambda *parts: np.stack(parts, axis=1), signed_zero=True)
oracle(["transformation(p: Vec[3,F], q"], lambda p, q: np.concatenate([p, q], axis=1), signed_zero=True)
oracle(
    ["transformation(p: Vec[3,F])"],
    lambda p: np.concatenate([p, np.tile(np.array([0, 0, 0, 1], p.dtype), (len(p), 1))], axis=1),
    signed_zero=True,
)
oracle("transform_get_translation", lambda t: t[:, :3].copy(), signed_zero=True)
oracle("transform_get_rotation", lambda t: t[:, 3:].copy(), signed_zero=True)
oracle("transform_set_translation", lambda t, p: np.concatenate([p, t[:, 3:]], axis=1), signed_zero=True)
oracle("transform_set_rotation", lambda t, q: np.concatenate([t[:, :3], q], axis=1), signed_zero=True)
oracle("transform_multiply", transform_product, ulp=_rounding, scale=size_product, unit=True)
oracle(
    ["transform_point(xform"],
    lambda t, v: apply4(matrix4(t), np.float64(v), 1),
    ulp=_rounding,
    scale=size_product,
    unit=True,
)
oracle(
    ["transform_vector(xform"],
    lambda t, v: apply4(matrix4(t), np.float64(v), 0),
    ulp=_rounding,
    scale=size_product,
    unit=True,
)
oracle(["transform_point(mat"], lambda m, v: apply4(m, v, 1), ulp=_rounding, scale=size_product, unit=True)
oracle(["transform_vector(mat"], lambda m, v: apply4(m, v, 0), ulp=_rounding, scale=size_product, unit=True)
oracle("transform_inverse", transform_inverse, ulp=_rounding, scale=size_product, unit=True)
oracle("transform_from_matrix", lambda m: from_matrix4(np.float64(m)), **_of_matrices)
oracle("transform_to_matrix", matrix4, **_of_quaternions)
oracle(
    "transform_compose",
    composed,
    ulp=_rounding,
    scale=lambda p, q, s: (1 + np.sum(np.float64(q) ** 2, axis=1)) * (1 + size_product(p) + size_product(s)),
    inputs=quaternions,
)
oracle("transform_decompose", decomposed, ulp=2 * _rounding, scale=size_product, inputs=scaled_rigid, unit=True)

# Spatial algebra, by 6x6 matrices.
oracle("spatial_adjoint", lambda r, s: np.block([[r, np.zeros_like(r)], [s, r]]), signed_zero=True)
oracle("spatial_cross", lambda a, b: product(spatial_cross_matrix(a), b), ulp=4, scale=size_product)
oracle(
    "spatial_cross_dual",
    lambda a, b: product(-spatial_cross_matrix(a).transpose(0, 2, 1), b),
    ulp=4,
    scale=size_product,
)
oracle("spatial_top", lambda a: a[:, :3].copy(), signed_zero=True)
oracle("spatial_bottom", lambda a: a[:, 3:].copy(), signed_zero=True)
oracle("velocity_at_point", lambda t, r: t[:, 3:] + cross(t[:, :3], r), ulp=4, scale=size_product)
oracle(
    "transform_twist",
    lambda t, x: product(twist_matrix(t), np.float64(x)),
    ulp=2 * _rounding,
    scale=size_product,
    unit=True,
)
oracle(
    "transform_wrench",
    lambda t, x: product(wrench_matrix(t), np.float64(x)),
    ulp=2 * _rounding,
    scale=size_product,
    unit=True,
)

# Random numbers: the states are exact, the floats as good as the functions that they are made with.
oracle("rand_init", lambda seed: pcg(seed.view(np.uint32)))
oracle(["rand_init(seed: int32, offset"], lambda seed, offset: pcg(seed.view(np.uint32) + pcg(offset.view(np.uint32))))
oracle("randi", lambda state: (pcg(state).view(np.int32), pcg(state)))
oracle("randu", lambda state: (pcg(state), pcg(state)))
oracle(["randi(state: inout uint32, low", "randu(state: inout uint32, low"], bits_in_range, inputs=range_inputs)
oracle("randf", draws(1, lambda u: u), ulp=0)
oracle(
    ["randf(state: inout uint32, low"],
    draws(1, lambda u, low, high: low + (high - low) * u),
    ulp=3,
    scale=lambda s, low, high: np.abs(low) + np.abs(high),
    inputs=within(None, (-10, 0), (0, 10)),
)
_about_one = {"ulp": 16, "scale": lambda state: np.ones(len(state))}
oracle(
    "randn",
    draws(2, lambda u, v: np.sqrt(-2 * np.log(np.where(u == 0, 5.96e-8, u))) * np.cos(2 * np.pi * v)),
    ulp=16,
    scale=lambda state: np.full(len(state), 6.0),
)
oracle("sample_triangle", draws(2, lambda u, v: np.stack([1 - np.sqrt(u), v * np.sqrt(u)], axis=1)), **_about_one)
oracle("sample_unit_ring", draws(1, ring), **_about_one)
oracle("sample_unit_disk", draws(2, disk), **_about_one)
oracle("sample_unit_sphere_surface", draws(2, lambda u, v: sphere(1 - 2 * u, v)), ulp=2000, scale=_about_one["scale"])
oracle("sample_unit_hemisphere_surface", draws(2, lambda u, v: sphere(1 - u, v)), ulp=2000, scale=_about_one["scale"])
oracle(
    "sample_unit_sphere",
    draws(3, lambda u, v, w: np.cbrt(w)[:, None] * sphere(1 - 2 * u, v)),
    ulp=2000,
    scale=_about_one["scale"],
)
oracle(
    "sample_unit_hemisphere",
    draws(3, lambda u, v, w: np.cbrt(w)[:, None] * sphere(1 - u, v)),
    ulp=2000,
    scale=_about_one["scale"],
)
oracle("sample_unit_square", draws(2, lambda *u: np.stack(u, axis=1) - 0.5), ulp=0)
oracle("sample_unit_cube", draws(3, lambda *u: np.stack(u, axis=1) - 0.5), ulp=0)
oracle("poisson", poisson, inputs=poisson_inputs)

# Noise: whole numbers and hashes are exact, the blend is as good as its sums.
oracle("noise pnoise", noise, ulp=32, scale=lambda state, *_: np.ones(len(state)), inputs=noise_inputs)
oracle("curlnoise", curlnoise, ulp=600, scale=lambda state, *_: np.ones(len(state)), inputs=noise_inputs)

# Geometry: segments in general position; test_geometry.py has the others.
oracle(
    "closest_point_edge_edge",
    closest_points,
    ulp=4000,
    scale=lambda p1, *_: np.ones((len(p1), 3)),
    inputs=segments,
)

# Utility.
oracle(
    "lerp",
    each(lambda a, b, t: a * (1 - t) + b * t),
    ulp=3,
    scale=each(lambda a, b, t: np.abs(a) * (1 + np.abs(t)) + np.abs(b * t)),
    inputs=within(None, None, (-1, 2)),
)


def _smoothstep(a, b, x):
    t = np.clip((x - a) / (b - a), 0, 1)
    return t * t * (3 - 2 * t)


oracle(
    "smoothstep",
    _smoothstep,
    ulp=16,
    scale=lambda a, b, x: (np.abs(x) + np.abs(a) + np.abs(b)) / np.abs(b - a),
    inputs=within((-4, -1), (1, 4), (-6, 6)),
)

# Operators.
oracle("add", np.add)
oracle("sub", np.subtract)
oracle("mul", each(np.multiply))
oracle(
    [
        "mul(a: Mat[r,c,S], b: Vec[c,S])",
        "mul(a: Vec[r,S], b: Mat[r,c,S])",
        "mul(a: Mat[r,n,S], b: Mat[n,c,S])",
        "matmul",
    ],
    product,
    ulp=4,
    scale=magnitudes(product),
)
oracle(["mul(a: Quat[F], b: Quat[F])"], hamilton, ulp=4, scale=size_product)
oracle(["mul(a: Transform[F], b: Transform[F])"], transform_product, ulp=_rounding, scale=size_product, unit=True)
oracle("div div_approx", over)
oracle("floordiv", by_kind(integer_floordiv, float_floordiv))
oracle("mod", by_kind(integer_mod, np.fmod))
oracle("bit_and", np.bitwise_and)
oracle("bit_or", np.bitwise_or)
oracle("bit_xor", np.bitwise_xor)
oracle("lshift", shift(left=True))
oracle("rshift", shift(left=False))
oracle("invert", np.invert)
oracle("pos", lambda x: x, signed_zero=True)
oracle("neg", np.negative, signed_zero=True)
oracle("unot", lambda a: a == 0)

# What the sweep cannot call with one value per row.
elsewhere(
    "test_atomics.py",
    "atomic_add atomic_sub atomic_min atomic_max atomic_cas atomic_exch atomic_and atomic_or atomic_xor",
)
elsewhere("test_utility.py", "where select expect_eq expect_neq expect_near lower_bound cast")
elsewhere("test_utility.py", ["pow(x: I, y: static int)", "unot(a: Array"])
elsewhere("test_utility.py", ["identity", "quat_identity", "transform_identity", "quaternion(dtype", "quaternion(quat"])
elsewhere("test_utility.py", "breakpoint copy")
elsewhere("test_random.py", "sample_cdf")
elsewhere("../geometry/test_hash_grid.py", "hash_grid_query hash_grid_query_next hash_grid_point_id")
elsewhere(
    "../geometry/test_mesh.py",
    """mesh_query_point mesh_query_point_sign_normal mesh_query_point_sign_parity mesh_query_point_sign_winding_number
    mesh_query_point_no_sign mesh_query_furthest_point_no_sign mesh_query_ray mesh_query_ray_anyhit
    mesh_query_ray_count_intersections mesh_eval_position mesh_eval_velocity mesh_eval_face_normal mesh_get_index
    mesh_get_point mesh_get_velocity mesh_get mesh_query_aabb mesh_query_sphere mesh_query_next mesh_query_aabb_next
    mesh_get_group_root bvh_query_aabb bvh_query_ray bvh_query_sphere bvh_query_capsule bvh_query_next
    bvh_get_group_root mesh_get_bvh""",
)
elsewhere("../geometry/test_triangles.py", "intersect_tri_tri")
elsewhere(
    "../geometry/test_volume.py",
    "volume_sample volume_sample_grad volume_lookup volume_store volume_sample_f volume_sample_grad_f volume_lookup_f "
    "volume_store_f volume_sample_v volume_lookup_v volume_store_v volume_sample_i volume_lookup_i volume_store_i "
    "volume_sample_index volume_sample_grad_index volume_lookup_index volume_voxel_count volume_index_to_world "
    "volume_world_to_index volume_index_to_world_dir volume_world_to_index_dir",
)
elsewhere("test_decompositions.py", "svd2 svd3 qr3 eig3")

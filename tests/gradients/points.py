"""The arguments at which gradients of builtins are compared: for each entry of the table, float64, random and awkward.

POINTS maps a name, or a name with the start of a signature, to a function (random generator, types, rows) -> arrays;
other entries take ordinary numbers. ELSEWHERE names the tests of entries that the sweep cannot call.
"""

import numpy as np
import oracle_inputs
import oracle_random
import oracle_rotations

AWKWARD = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 0.5])


def unit(q):
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def numbers(rng, kind, rows):
    """A quarter of the rows of 0, 1, -1 and the like; quaternions of length 1 in half of the rows."""
    if kind.scalar == "bool":
        return rng.integers(0, 2, (rows, *kind.shape)).astype(bool)
    if not kind.is_float:
        return rng.integers(0, 3, (rows, *kind.shape)).astype(kind.numpy)
    values = rng.uniform(0.2, 2, (rows, *kind.shape)) * rng.choice([-1, 1], (rows, *kind.shape))
    quarter = slice(0, rows // 4)
    values[quarter] = rng.choice(AWKWARD, values[quarter].shape)
    if kind.kind in ("quaternion", "transform"):
        q = values[rows // 2 :, ..., -4:]
        values[rows // 2 :, ..., -4:] = unit(q)
        values[: rows // 8, ..., -4:] = np.eye(4)[rng.integers(0, 4, rows // 8)]
    return values


def ordinary(rng, types, rows):
    arrays = [numbers(rng, kind, rows) for kind in types]
    # Equal arguments in some of the rows.
    for i in range(1, len(arrays)):
        if arrays[i].shape == arrays[0].shape:
            arrays[i][rows // 4 : rows // 3] = arrays[0][rows // 4 : rows // 3]
    return arrays


def within(*ranges):
    """Uniform in a range for each argument, with its middle and what is near the ends; None is as ordinary() has it."""

    def points(rng, types, rows):
        arrays = ordinary(rng, types, rows)
        for i, (kind, limits) in enumerate(zip(types, ranges)):
            if limits is not None:
                low, high = limits
                arrays[i] = rng.uniform(low, high, (rows, *kind.shape))
                arrays[i][:3] = np.reshape([0.5 * (low + high), low, high], (3, *[1] * len(kind.shape)))
        return arrays

    return points


def nonzero(*which):
    """As ordinary(), but at these positions no number is smaller than 0.2 in magnitude."""

    def points(rng, types, rows):
        arrays = ordinary(rng, types, rows)
        for i in which:
            arrays[i] = np.where(np.abs(arrays[i]) < 0.2, 0.7, arrays[i])
        return arrays

    return points


def not_all_zero(rng, types, rows):
    arrays = ordinary(rng, types, rows)
    for a in arrays:
        empty = np.all(a.reshape(rows, -1) == 0, axis=1)
        a[empty] = 1.5
    return arrays


def from_oracle(inputs):
    """The points at which the oracle compares values, in float64."""

    def points(rng, types, rows):
        arrays = inputs(rng, types, rows)
        return [a.astype(np.float64) if kind.is_float else a for a, kind in zip(arrays, types)]

    return points


def powers(rng, types, rows):
    x, y = rng.uniform(0.1, 3, rows), rng.uniform(-3, 3, rows)
    x[:16] = np.tile([0.0, 1.0, -1.0, -2.0], 4)
    y[:16] = np.repeat([2.0, 3.0, 1.0, 4.0], 4)
    return [x, y]


def angles_of_points(rng, types, rows):
    y, x = ordinary(rng, types, rows)
    x[(x == 0) & (y == 0)] = 1.0
    return [y, x]


def limits(rng, types, rows):
    x, low, high = ordinary(rng, types, rows)
    return [x * 2, np.minimum(low, high), np.maximum(low, high) + 0.1]


def regular(rng, types, rows):
    n = types[0].shape[0]
    m = rng.uniform(-1, 1, (rows, n, n)) + 2 * np.eye(n)[rng.permuted(np.tile(np.arange(n), (rows, 1)), axis=1)]
    m[0], m[1], m[2] = np.eye(n), -np.eye(n), np.eye(n)[::-1]
    return [m]


def decided(separate):
    """Matrices whose singular values (eigenvalues) are far from each other; the factors are defined there."""

    def points(rng, types, rows):
        n = types[0].shape[0]
        m = rng.normal(size=(8 * rows, n, n))
        m[: 2 * n] = np.array([np.roll(np.diag(np.arange(1.0, n + 1)), k % n, axis=k // n) for k in range(2 * n)])
        m = m[separate(m) > 0.2][:rows]
        return [m, *(np.zeros((rows, *kind.shape)) for kind in types[1:])]

    return points


def _singular(m):
    s = np.linalg.svd(m, compute_uv=False)
    gaps = -np.diff(s, axis=1).max(axis=1)
    return np.minimum(gaps, s[:, -1])


def _symmetric(m):
    return np.diff(np.linalg.eigvalsh((m + m.transpose(0, 2, 1)) / 2), axis=1).min(axis=1)


def _triangular(m):
    return np.abs(np.diagonal(np.linalg.qr(m)[1], axis1=1, axis2=2)).min(axis=1)


def turned(rng, types, rows):
    """An axis of length 1 and a rotation that does turn about it."""
    axis = unit(rng.normal(size=(rows, 3)))
    axis[:3] = np.eye(3)
    q = unit(rng.normal(size=(rows, 4)))
    q[:, 3] = np.where(np.abs(q[:, 3]) < 0.1, 0.3, q[:, 3])
    return [axis, q]


def directions(rng, types, rows):
    a, b = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 3))
    b[:4] = a[:4]  # equal directions
    a[4:7], b[4:7] = np.eye(3), np.roll(np.eye(3), 1, axis=0)
    return [a, b]


def rotations(rng, types, rows):
    q = unit(rng.normal(size=(rows, 4)))
    q[:, 3] = np.where(np.abs(q[:, 3]) < 0.1, 0.3, q[:, 3])
    return [q, *(numbers(rng, kind, rows) for kind in types[1:])]


def two_rotations(rng, types, rows):
    """Of any length; the same one twice in a quarter of the rows; none half a turn apart, at which the arc changes."""
    a, b = rng.normal(size=(rows, 4)), rng.normal(size=(rows, 4))
    b[: rows // 4] = a[: rows // 4] * rng.uniform(0.5, 2, (rows // 4, 1))
    b = np.where(np.abs(np.sum(unit(a) * unit(b), axis=1, keepdims=True)) < 0.2, b + a, b)
    a[::2], b[::2] = unit(a[::2]), unit(b[::2])
    t = rng.uniform(-0.5, 1.5, rows)
    t[: rows // 8 : 2] = 0.0
    return [a, b, t]


def near_the_origin(rng, types, rows):
    """Of noise: where float32 has digits left behind the point, corners of the lattice among them; two octaves."""
    arrays = from_oracle(oracle_random.noise_inputs)(rng, types, rows)
    arrays[1] = np.where(np.arange(rows).reshape(-1, *[1] * len(types[1].shape)) < 8, arrays[1], arrays[1] / 8) / 4
    arrays[1][:8] = np.round(arrays[1][:8])
    if types[2:] and types[2].scalar == "uint32":
        arrays[2] = np.minimum(arrays[2], 2)
    return arrays


POINTS = {
    "closest_point_edge_edge": lambda rng, types, rows: oracle_random.segments(rng, types, rows),
    **dict.fromkeys("sqrt log log2 log10".split(), within((0.05, 4))),
    **dict.fromkeys("asin acos".split(), within((-0.95, 0.95))),
    **dict.fromkeys("cbrt div(a: S, b: S".split(), nonzero(0)),
    "erfinv": within((-0.9, 0.9)),
    "erfcinv": within((0.1, 1.9)),
    "tan": within((-1.3, 1.3)),
    "pow": powers,
    "atan2": angles_of_points,
    "copysign": nonzero(0, 1),
    "clamp": limits,
    **dict.fromkeys("div div_approx floordiv mod cw_div".split(), nonzero(1)),
    **dict.fromkeys("length normalize norm_l2".split(), not_all_zero),
    **dict.fromkeys("norm_huber norm_pseudo_huber smooth_normalize".split(), within(None, (0.3, 3))),
    **dict.fromkeys("inverse inverse_approx determinant".split(), regular),
    **dict.fromkeys("svd2 svd3".split(), decided(_singular)),
    "eig3": decided(_symmetric),
    "qr3": decided(_triangular),
    **dict.fromkeys("quat_from_matrix transform_from_matrix".split(), from_oracle(oracle_rotations.any_matrices)),
    "transform_decompose": from_oracle(oracle_inputs.scaled_rigid),
    "quat_to_axis_angle": rotations,
    "quat_to_rpy": from_oracle(oracle_rotations.away_from_the_poles),
    "quat_from_euler": from_oracle(oracle_rotations.euler_inputs),
    "quat_to_euler": from_oracle(oracle_rotations.away_from_lock),
    "quat_between_vectors": directions,
    "quat_slerp": two_rotations,
    **dict.fromkeys("quat_twist quat_twist_angle quat_twist_angle_signed".split(), turned),
    "smoothstep": within((-4, -1), (1, 4), (-6, 6)),
    **dict.fromkeys("noise pnoise curlnoise".split(), near_the_origin),
}

# Entries that the sweep cannot call with one value per row, and the test here that has their gradients.
ELSEWHERE = {
    "copy": "test_a_copy_has_the_gradient_of_its_value",
    "where": "test_choices_pass_gradients_to_what_was_chosen",
    "select": "test_choices_pass_gradients_to_what_was_chosen",
    "quaternion(quat": "test_conversions_pass_gradients",
    "atomic_add": "test_atomic_sums_of_every_type",
    "atomic_sub": "test_atomic_sums_of_every_type",
    "atomic_min": "test_atomic_extrema_of_every_type",
    "atomic_max": "test_atomic_extrema_of_every_type",
    # tests/geometry
    "volume_index_to_world": "test_maps_between_index_space_and_the_world",
    "volume_index_to_world_dir": "test_maps_between_index_space_and_the_world",
    "volume_world_to_index": "test_maps_between_index_space_and_the_world",
    "volume_world_to_index_dir": "test_maps_between_index_space_and_the_world",
    "volume_sample": "test_gradients_by_the_place_are_those_of_differences",
    "volume_sample_grad": "test_gradients_by_the_place_are_those_of_differences",
    "volume_sample_f": "test_gradients_by_the_place_are_those_of_differences",
    "volume_sample_grad_f": "test_gradients_by_the_place_are_those_of_differences",
    "volume_sample_v": "test_gradients_by_the_place_are_those_of_differences",
    "volume_sample_index": "test_gradients_by_the_values_beside_an_index_grid",
    "volume_sample_grad_index": "test_gradients_by_the_values_beside_an_index_grid",
    "texture_sample": "test_gradients_towards_places_are_differences",
    "mesh_query_point": "test_derivatives_against_differences",
    "mesh_query_point_sign_normal": "test_derivatives_against_differences",
    "mesh_query_point_sign_parity": "test_derivatives_against_differences",
    "mesh_query_point_sign_winding_number": "test_derivatives_against_differences",
    "mesh_query_point_no_sign": "test_derivatives_against_differences",
    "mesh_query_furthest_point_no_sign": "test_derivatives_against_differences",
    "mesh_query_ray": "test_derivatives_against_differences",
    "mesh_eval_position": "test_derivatives_against_differences",
    "mesh_eval_velocity": "test_gradients_of_what_a_mesh_is_made_of",
    "mesh_eval_face_normal": "test_gradients_of_what_a_mesh_is_made_of",
    "mesh_get_point": "test_gradients_of_what_a_mesh_is_made_of",
    "mesh_get_velocity": "test_gradients_of_what_a_mesh_is_made_of",
    "mesh_get": "test_gradients_of_what_a_mesh_is_made_of",
}

"""The right result of every builtin: formulas in NumPy and SciPy, with the error that is allowed.

ORACLE maps a name and signature of the table to an Oracle; a name alone stands for all its overloads. References take
one array per argument, (rows,) for scalars, (rows, n) for vectors, (rows, r, c) for matrices, (rows, 4) and (rows, 7)
for quaternions and transforms, and give one array, or a tuple of them, of what the call gives and assigns.

ELSEWHERE names the test file of entries that the sweep cannot call with one value per row.
"""

import math
from dataclasses import dataclass
from typing import Callable

import numpy as np
import scipy.special
from oracle_algebra import (
    best_index,
    by_kind,
    cross,
    diagonal_matrix,
    dot,
    each,
    float_floordiv,
    hadamard_bound,
    integer_floordiv,
    integer_mod,
    inverse,
    inverse_scale,
    length,
    magnitudes,
    normalized,
    over,
    product,
    shift,
    size_product,
    skew,
    sum_of,
)
from oracle_inputs import invertible, normal_only, scaled_rigid, unary, unit_vectors, within
from oracle_random import (
    bits_in_range,
    closest_points,
    curlnoise,
    disk,
    draws,
    noise,
    noise_inputs,
    pcg,
    poisson,
    poisson_inputs,
    range_inputs,
    ring,
    segments,
    sphere,
)
from oracle_rotations import (
    any_matrices,
    apply4,
    away_from_lock,
    away_from_the_poles,
    axis_angle,
    between,
    composed,
    decomposed,
    euler_inputs,
    from_euler,
    from_matrix,
    from_matrix4,
    hamilton,
    like_rpy,
    matrix4,
    quaternions,
    rotation,
    slerp,
    spatial_cross_matrix,
    to_euler,
    transform_inverse,
    transform_product,
    turned,
    turning_matrix,
    twist,
    twist_angle,
    twist_matrix,
    wrench_matrix,
)
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
    """Of one argument: in longdouble if NumPy has the function for it."""
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
oracle(
    "quat_to_rpy",
    lambda q: rotation(q).as_euler("xyz"),
    ulp=8 * _rounding,
    scale=size_product,
    inputs=away_from_the_poles,
    unit=True,
)
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
    inputs=away_from_lock,
    unit=True,
)
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

# Builtins that the sweep cannot call with one value per row.
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
    """mesh_query_point mesh_query_point_sign_normal mesh_query_point_sign_winding_number mesh_query_point_no_sign
    mesh_query_ray mesh_query_ray_anyhit mesh_query_ray_count_intersections mesh_eval_position mesh_eval_velocity
    mesh_eval_face_normal mesh_get_index mesh_get_point mesh_get_velocity mesh_get mesh_query_aabb mesh_query_sphere
    mesh_query_aabb_next""",
)
elsewhere(
    "../geometry/mesh_kernels.py",
    """mesh_query_point_sign_parity mesh_query_furthest_point_no_sign""",
)
elsewhere(
    "../geometry/test_bvh.py",
    """mesh_query_next mesh_get_group_root bvh_query_aabb bvh_query_ray bvh_query_sphere bvh_query_capsule
    bvh_query_next bvh_get_group_root mesh_get_bvh""",
)
elsewhere("../geometry/test_triangles.py", "intersect_tri_tri")
elsewhere(
    "../geometry/test_volume.py",
    "volume_sample volume_sample_grad volume_lookup volume_store volume_sample_f volume_sample_grad_f volume_lookup_f "
    "volume_store_f volume_sample_v volume_lookup_v volume_store_v volume_sample_i volume_lookup_i volume_store_i "
    "volume_sample_index volume_sample_grad_index volume_lookup_index volume_voxel_count volume_index_to_world "
    "volume_world_to_index volume_index_to_world_dir volume_world_to_index_dir",
)
elsewhere("../geometry/test_textures.py", "texture_sample")
elsewhere("test_decompositions.py", "svd2 svd3 qr3 eig3")

"""Operators on tiles, and maps of functions over their elements."""

from typing import Any

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(11)
by_name = {"ids": lambda value: getattr(value, "__name__", str(value))}


def whole(shape, low=1, high=9):
    return RNG.integers(low, high, shape)


@pytest.mark.parametrize("dtype", [wp.float16, wp.float32, wp.float64, wp.int32, wp.int64, wp.uint8], **by_name)
def test_arithmetic_of_scalars(dtype, lanes):
    @wp.kernel
    def calculate(a: wp.array2d[dtype], b: wp.array2d[dtype], c: dtype, out: wp.array3d[dtype]):
        t = wp.tile_load(a, shape=(5, 13))
        u = wp.tile_load(b, shape=(5, 13), storage="shared")
        wp.tile_store(out[0], t + u)
        wp.tile_store(out[1], t - u)
        wp.tile_store(out[2], t * u)
        wp.tile_store(out[3], t / u)
        wp.tile_store(out[4], -t)
        wp.tile_store(out[5], t * c)
        wp.tile_store(out[6], c * t)
        wp.tile_store(out[7], t / c)
        wp.tile_store(out[8], c / t)
        wp.tile_store(out[9], t * dtype(2) + u * t - u / dtype(2))

    name = np.dtype(wp.dtype_to_numpy(dtype))
    a, b = whole((5, 13)).astype(name), whole((5, 13)).astype(name)
    out = wp.zeros((10, 5, 13), dtype=dtype)
    wp.launch_tiled(calculate, dim=[1], inputs=[wp.array(a), wp.array(b), dtype(3), out], block_dim=lanes)
    c, two = name.type(3), name.type(2)
    divided = [a / b, a / c, c / a, b / two] if name.kind == "f" else [a // b, a // c, c // a, b // two]
    expected = [a + b, a - b, a * b, divided[0], -a, a * c, c * a, divided[1], divided[2], a * two + b * a - divided[3]]
    np.testing.assert_allclose(out.numpy(), np.array(expected), rtol=1e-3 if dtype is wp.float16 else 1e-6)


def test_integers_divide_as_in_c(lanes):
    @wp.kernel
    def divide(a: wp.array[int], b: wp.array[int], out: wp.array[int]):
        wp.tile_store(out, wp.tile_load(a, shape=4) / wp.tile_load(b, shape=4))

    out = wp.zeros(4, dtype=int)
    inputs = [wp.array([7, -7, 7, -7], dtype=int), wp.array([2, 2, -2, -2], dtype=int), out]
    wp.launch_tiled(divide, dim=[1], inputs=inputs, block_dim=lanes)
    assert out.numpy().tolist() == [3, -3, -3, 3]


@wp.kernel
def in_place(a: wp.array[float], b: wp.array[float], c: float, out: wp.array2d[float]):
    u = wp.tile_load(b, shape=9)
    t = wp.tile_load(a, shape=9)
    t += u
    wp.tile_store(out[0], t)
    t -= u * 3.0
    wp.tile_store(out[1], t)
    t *= u
    wp.tile_store(out[2], t)
    t /= u
    wp.tile_store(out[3], t)
    t *= c
    wp.tile_store(out[4], t)
    t /= 4.0
    wp.tile_store(out[5], t)
    s = wp.tile_load(a, shape=9, storage="shared")
    s += t
    s -= u
    wp.tile_store(out[6], s)
    wp.tile_store(out[7], wp.tile_load(a, shape=9))


def test_operators_in_place(lanes):
    a, b = whole((2, 9)).astype(np.float32)
    out = wp.zeros((8, 9))
    wp.launch_tiled(in_place, dim=[1], inputs=[wp.array(a), wp.array(b), 8.0, out], block_dim=lanes)
    d = a + b - 3 * b
    expected = [a + b, d, d * b, d, 8 * d, 2 * d, a + 2 * d - b, a]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [wp.int32, wp.uint64, wp.uint8], **by_name)
def test_bits(dtype, lanes):
    @wp.kernel
    def combine(a: wp.array[dtype], b: wp.array[dtype], out: wp.array2d[dtype]):
        t = wp.tile_load(a, shape=10)
        u = wp.tile_load(b, shape=10)
        wp.tile_store(out[0], t & u)
        wp.tile_store(out[1], t | u)
        wp.tile_store(out[2], t ^ u)
        v = wp.tile_load(a, shape=10, storage="shared")
        v &= u
        wp.tile_store(out[3], v)
        v |= t
        wp.tile_store(out[4], v)
        v ^= u
        wp.tile_store(out[5], v)

    a, b = RNG.integers(0, 256, (2, 10)).astype(wp.dtype_to_numpy(dtype))
    out = wp.zeros((6, 10), dtype=dtype)
    wp.launch_tiled(combine, dim=[1], inputs=[wp.array(a), wp.array(b), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), [a & b, a | b, a ^ b, a & b, (a & b) | a, ((a & b) | a) ^ b])


@wp.kernel
def vectors(
    f: wp.array[float], a: wp.array[wp.vec3], m: wp.array[wp.mat22], n: wp.array[wp.mat22], q: wp.array[wp.quat],
    v: wp.vec3, c: float, out: wp.array2d[wp.vec3], matrices: wp.array2d[wp.mat22], turns: wp.array2d[wp.quat],
):  # fmt: skip
    t = wp.tile_load(f, shape=5)
    x = wp.tile_load(a, shape=5)
    wp.tile_store(out[0], x + x)
    wp.tile_store(out[1], t * x)
    wp.tile_store(out[2], x * t)
    wp.tile_store(out[3], x * c)
    wp.tile_store(out[4], c * x)
    wp.tile_store(out[5], t * v)
    wp.tile_store(out[6], x / c)
    wp.tile_store(out[7], -x - x)
    wp.tile_store(out[8], x / t)
    y = wp.tile_load(m, shape=5, storage="shared")
    z = wp.tile_load(n, shape=5)
    wp.tile_store(matrices[0], y + z)
    wp.tile_store(matrices[1], y - z * c)
    wp.tile_store(matrices[2], t * y)
    wp.tile_store(matrices[3], t * wp.mat22(1.0, 2.0, 3.0, 4.0))
    r = wp.tile_load(q, shape=5)
    wp.tile_store(turns[0], r + r)
    wp.tile_store(turns[1], r * c - r)


def test_vectors_matrices_and_quaternions(lanes):
    f = whole(5).astype(np.float32)
    a = RNG.standard_normal((5, 3)).astype(np.float32)
    m, n = RNG.standard_normal((2, 5, 2, 2)).astype(np.float32)
    q = RNG.standard_normal((5, 4)).astype(np.float32)
    v, c = np.array([1.0, 2.0, 3.0], np.float32), np.float32(2.5)
    out, matrices = wp.zeros((9, 5), dtype=wp.vec3), wp.zeros((4, 5), dtype=wp.mat22)
    turns = wp.zeros((2, 5), dtype=wp.quat)
    arrays = [wp.array(f), wp.array(a, dtype=wp.vec3), wp.array(m, dtype=wp.mat22), wp.array(n, dtype=wp.mat22)]
    inputs = [*arrays, wp.array(q, dtype=wp.quat), wp.vec3(*v), c, out, matrices, turns]
    wp.launch_tiled(vectors, dim=[1], inputs=inputs, block_dim=lanes)
    rows, blocks = f[:, None], f[:, None, None]
    expected = [a + a, rows * a, rows * a, a * c, a * c, rows * v, a / c, -a - a, a / rows]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
    turn = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    np.testing.assert_allclose(matrices.numpy(), [m + n, m - n * c, blocks * m, blocks * turn], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(turns.numpy(), [q + q, q * c - q], rtol=1e-5, atol=1e-6)


@wp.struct
class Pair:
    a: float
    b: wp.vec2


def test_structs_add_by_field(lanes):
    @wp.kernel
    def add(x: wp.array[Pair], y: wp.array[Pair], out: wp.array[Pair]):
        t = wp.tile_load(x, shape=4)
        t += wp.tile_load(y, shape=4)
        wp.tile_store(out, t + wp.tile_load(y, shape=4))

    x, y = np.zeros(4, dtype=Pair.numpy_dtype()), np.zeros(4, dtype=Pair.numpy_dtype())
    x["a"], y["a"] = whole((2, 4))
    x["b"], y["b"] = whole((2, 4, 2))
    out = wp.zeros(4, dtype=Pair)
    wp.launch_tiled(add, dim=[1], inputs=[wp.array(x, dtype=Pair), wp.array(y, dtype=Pair), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy()["a"], x["a"] + 2 * y["a"])
    np.testing.assert_array_equal(out.numpy()["b"], x["b"] + 2 * y["b"])


def test_a_scalar_beside_a_sum(lanes):
    @wp.kernel
    def shift(a: wp.array[float], c: float, out: wp.array2d[float]):
        t = wp.tile_load(a, shape=6)
        wp.tile_store(out[0], t + 1.0)
        wp.tile_store(out[1], c - t)
        t += c
        wp.tile_store(out[2], t)

    a = whole(6).astype(np.float32)
    out = wp.zeros((3, 6))
    wp.launch_tiled(shift, dim=[1], inputs=[wp.array(a), 2.5, out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), [a + 1, 2.5 - a, a + 2.5])


# Maps.


@wp.func
def saxpy(x: float, y: float, z: float):
    return x * y + z


@wp.func
def generic(x: Any, y: Any):
    return x * y - y


@wp.func
def clamped(x: float):
    if x > 4.0:
        return 4.0
    return x


@wp.func
def kind(x: float, limit: int) -> int:
    return wp.where(x < float(limit), 1, -1)


@wp.func
def eight(a: float, b: float, c: float, d: float, e: float, f: float, g: float, h: int) -> float:
    return a + 2.0 * b + 3.0 * c + 4.0 * d + 5.0 * e + 6.0 * f + 7.0 * g + float(h)


CHOICES = [clamped, saxpy]


@wp.kernel
def maps(a: wp.array2d[float], b: wp.array2d[float], c: float, out: wp.array3d[float], kinds: wp.array2d[int]):
    t = wp.tile_load(a, shape=(3, 25))
    u = wp.tile_load(b, shape=(3, 25), storage="shared")
    wp.tile_store(out[0], wp.tile_map(wp.sin, t))
    wp.tile_store(out[1], wp.tile_map(wp.add, t, u))
    wp.tile_store(out[2], wp.tile_map(wp.max, t, u))
    wp.tile_store(out[3], wp.tile_map(wp.mul, t, -2.0))
    wp.tile_store(out[4], wp.tile_map(saxpy, t, u, c))
    wp.tile_store(out[5], wp.tile_map(saxpy, t, c, u))
    wp.tile_store(out[6], wp.tile_map(generic, t, u))
    wp.tile_store(out[7], wp.tile_map(wp.static(CHOICES[0]), t))
    wp.tile_store(out[8], wp.tile_map(eight, t, u, t, c, u, t, 1.0, 5))
    wp.tile_store(out[9], wp.tile_map(op=wp.abs, a=wp.tile_map(wp.sub, t, u)))
    wp.tile_store(kinds, wp.tile_map(kind, t, 5))


def test_built_in_and_own_functions(lanes):
    a, b = whole((2, 3, 25)).astype(np.float32)
    out, kinds = wp.zeros((10, 3, 25)), wp.zeros((3, 25), dtype=int)
    wp.launch_tiled(maps, dim=[1], inputs=[wp.array(a), wp.array(b), 1.5, out, kinds], block_dim=lanes)
    expected = [
        np.sin(a.astype(np.float64)),
        a + b,
        np.maximum(a, b),
        -2 * a,
        a * b + 1.5,
        a * 1.5 + b,
        a * b - b,
        np.minimum(a, 4),
        a + 2 * b + 3 * a + 4 * 1.5 + 5 * b + 6 * a + 7 + 5,
        np.abs(a - b),
    ]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(kinds.numpy(), np.where(a < 5, 1, -1))


@wp.func
def moment(x: wp.vec3, force: wp.vec3, weight: int) -> wp.vec3:
    return wp.cross(x, force) * float(weight)


@wp.func
def outer_of(x: wp.vec3, m: wp.mat33) -> wp.mat33:
    return wp.outer(x, x) + m


@wp.struct
class Contact:
    point: wp.vec3
    depth: float


@wp.func
def contact_of(x: wp.vec3, weight: int) -> Contact:
    c = Contact()
    c.point = x * 2.0
    c.depth = float(weight)
    return c


@wp.func
def depth_at(c: Contact, shift: Contact) -> float:
    return c.depth + c.point[0] + shift.depth


@wp.kernel
def vector_maps(
    x: wp.array[wp.vec3], weights: wp.array[int], force: wp.vec3, m: wp.mat33, out: wp.array[wp.vec3],
    dots: wp.array[float], matrices: wp.array[wp.mat33], depths: wp.array[float],
):  # fmt: skip
    t = wp.tile_load(x, shape=6)
    w = wp.tile_load(weights, shape=6)
    wp.tile_store(out, wp.tile_map(moment, t, force, w))
    wp.tile_store(dots, wp.tile_map(wp.dot, t, force))
    wp.tile_store(matrices, wp.tile_map(outer_of, t, m))
    shift = Contact()
    shift.depth = 10.0
    contacts = wp.tile_map(contact_of, t, w)
    wp.tile_store(depths, wp.tile_map(depth_at, contacts, shift))


def test_maps_of_vectors_matrices_and_structs(lanes):
    x = RNG.standard_normal((6, 3)).astype(np.float32)
    force, m = RNG.standard_normal(3).astype(np.float32), RNG.standard_normal((3, 3)).astype(np.float32)
    w = whole(6).astype(np.int32)
    out, dots, matrices, depths = (
        wp.zeros(6, dtype=wp.vec3),
        wp.zeros(6),
        wp.zeros(6, dtype=wp.mat33),
        wp.zeros(6),
    )
    inputs = [wp.array(x, dtype=wp.vec3), wp.array(w), wp.vec3(*force), wp.mat33(*m.ravel())]
    wp.launch_tiled(vector_maps, dim=[1], inputs=[*inputs, out, dots, matrices, depths], block_dim=lanes)
    np.testing.assert_allclose(out.numpy(), np.cross(x, force) * w[:, None], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dots.numpy(), x @ force, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(matrices.numpy(), x[:, :, None] * x[:, None, :] + m, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(depths.numpy(), w + 2 * x[:, 0] + 10, rtol=1e-5, atol=1e-6)


def apply_twice(op):
    @wp.kernel
    def apply(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
        t = wp.tile_map(op, wp.tile_load(a, shape=8), wp.tile_load(b, shape=8))
        wp.tile_store(out, wp.tile_map(op, t, wp.tile_load(b, shape=8)))

    return apply


def test_what_a_kernel_captures_decides_its_map(lanes):
    a, b = whole((2, 8)).astype(np.float32)

    @wp.func
    def weighted(x: float, y: float) -> float:
        return x + 10.0 * y

    cases = [(wp.add, a + 2 * b), (wp.mul, a * b * b), (wp.sub, a - 2 * b), (weighted, a + 20 * b)]
    kernels = [apply_twice(op) for op, _ in cases]
    for kernel, (_, expected) in zip(kernels, cases, strict=True):
        out = wp.zeros(8)
        wp.launch_tiled(kernel, dim=[1], inputs=[wp.array(a), wp.array(b), out], block_dim=lanes)
        np.testing.assert_array_equal(out.numpy(), expected)


def test_maps_of_views(lanes):
    @wp.kernel
    def views(a: wp.array2d[float], out: wp.array3d[float]):
        t = wp.tile_load(a, shape=(4, 6))
        wp.tile_store(out[0], wp.tile_map(wp.mul, wp.tile_transpose(t), 2.0))
        wp.tile_store(out[1], wp.tile_map(wp.add, t[::-1, :], t))
        row = wp.tile_broadcast(t[1], shape=(4, 6))
        wp.tile_store(out[2], wp.tile_map(wp.mul, row, t))
        wp.tile_store(out[3], t[:, ::2] + t[:, 1::2])

    a = whole((4, 6)).astype(np.float32)
    out = wp.zeros((4, 6, 6))
    wp.launch_tiled(views, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    for found, part in zip(out.numpy(), [2 * a.T, a[::-1] + a, a[1] * a, a[:, ::2] + a[:, 1::2]], strict=True):
        np.testing.assert_array_equal(found[: part.shape[0], : part.shape[1]], part)


@pytest.mark.parametrize("size", [1, 7, 129, 2048])
def test_chains_of_maps_of_any_extent(size, lanes):
    @wp.kernel
    def chain(a: wp.array[float], b: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        t = wp.tile_load(a, shape=size, offset=size * i)
        u = wp.tile_load(b, shape=size, offset=size * i)
        v = wp.tile_map(wp.sqrt, wp.tile_map(saxpy, t, t, u)) * 0.5 + u
        wp.tile_store(out, wp.tile_map(wp.min, v, t) - u / t, offset=size * i)

    n = 2 * size + size // 2 + 1
    a, b = RNG.uniform(1.0, 4.0, (2, n)).astype(np.float32)
    out = wp.zeros(n)
    wp.launch_tiled(chain, dim=[3], inputs=[wp.array(a), wp.array(b), out], block_dim=lanes)
    expected = np.minimum(np.sqrt(a * a + b) * 0.5 + b, a) - b / a
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)


def test_generic_kernels(lanes):
    @wp.kernel
    def twice(a: wp.array(dtype=Any), out: wp.array(dtype=Any)):
        t = wp.tile_load(a, shape=4)
        zeros = wp.tile_zeros(shape=4, dtype=a.dtype)
        wp.tile_store(out, a.dtype(2.0) * t + zeros)

    for dtype in (wp.float16, wp.float32, wp.float64):
        a = wp.array([1.0, 2.0, 3.0, 4.5], dtype=dtype)
        out = wp.zeros(4, dtype=dtype)
        wp.launch_tiled(twice, dim=[1], inputs=[a, out], block_dim=lanes)
        assert out.numpy().tolist() == [2.0, 4.0, 6.0, 9.0]

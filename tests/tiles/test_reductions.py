"""Sums, reductions by any function, extremes and their places, dot products."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(12)
by_name = {"ids": lambda value: getattr(value, "__name__", str(value))}


def numpy_type(dtype):
    return np.dtype(wp.dtype_to_numpy(dtype))


@pytest.mark.parametrize("size", [1, 2, 5, 63, 64, 65, 1000, 4097])
def test_sums_of_any_extent(size, lanes):
    @wp.kernel
    def add(a: wp.array2d[float], out: wp.array[float], n: wp.array[int]):
        i, lane = wp.tid()
        t = wp.tile_load(a[i], shape=size)
        s = wp.tile_sum(t)
        m = wp.tile_sum(wp.tile_astype(wp.tile_load(a[i], shape=size, storage="shared"), int))
        if lane == 0:
            out[i] = s[0]
            n[i] = m[0]

    a = RNG.integers(-9, 9, (2, size)).astype(np.float32)
    out, n = wp.zeros(2), wp.zeros(2, dtype=int)
    wp.launch_tiled(add, dim=[2], inputs=[wp.array(a), out, n], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), a.sum(axis=1))
    np.testing.assert_array_equal(n.numpy(), a.sum(axis=1))


SUMMED = [wp.int8, wp.uint8, wp.int16, wp.int32, wp.uint32, wp.int64, wp.uint64, wp.float16, wp.float32, wp.float64]


@pytest.mark.parametrize("dtype", SUMMED, **by_name)
def test_sums_of_any_scalar_wrap_to_their_width(dtype, lanes):
    @wp.kernel
    def add(a: wp.array2d[dtype], out: wp.array[dtype], rows: wp.array[dtype], columns: wp.array[dtype]):
        t = wp.tile_load(a, shape=(6, 20))
        wp.tile_store(out, wp.tile_sum(t))
        wp.tile_store(columns, wp.tile_sum(t, axis=0))
        wp.tile_store(rows, wp.tile_sum(t, 1))

    kind = numpy_type(dtype)
    a = RNG.integers(0, 8 if kind.kind == "f" else 120, (6, 20)).astype(kind)
    out, rows, columns = wp.zeros(1, dtype=dtype), wp.zeros(6, dtype=dtype), wp.zeros(20, dtype=dtype)
    wp.launch_tiled(add, dim=[1], inputs=[wp.array(a), out, rows, columns], block_dim=lanes)
    assert out.numpy()[0] == a.sum(dtype=kind)
    np.testing.assert_array_equal(rows.numpy(), a.sum(axis=1, dtype=kind))
    np.testing.assert_array_equal(columns.numpy(), a.sum(axis=0, dtype=kind))


@wp.kernel
def add_along(
    a: wp.array3d[float], x: wp.array3d[float], y: wp.array3d[float], z: wp.array3d[float], one: wp.array2d[float]
):
    t = wp.tile_load(a, shape=(3, 5, 7), storage="shared")
    wp.tile_store(x[0], wp.tile_sum(t, axis=0))
    wp.tile_store(y[0], wp.tile_sum(t, axis=1))
    wp.tile_store(z[0], wp.tile_sum(t, axis=2))
    wp.tile_store(x[1], wp.tile_reduce(wp.max, t, axis=0))
    wp.tile_store(y[1], wp.tile_reduce(wp.max, t, axis=1))
    wp.tile_store(z[1], wp.tile_reduce(wp.max, t, axis=2))
    wp.tile_store(
        x[2],
        wp.tile_sum(wp.tile_sum(wp.tile_transpose(t[0]), axis=1) * 2.0, axis=0)[0]
        * wp.tile_ones(shape=(1, 1), dtype=float),
    )
    line = wp.tile_sum(t[1, 2], axis=0)
    wp.tile_store(one[0], line)
    wp.tile_store(one[1], wp.tile_reduce(wp.min, t[1, 2], axis=0))


def test_reductions_along_an_axis(lanes):
    a = RNG.integers(-50, 50, (3, 5, 7)).astype(np.float32)
    x, y, z, one = wp.zeros((3, 5, 7)), wp.zeros((2, 3, 7)), wp.zeros((2, 3, 5)), wp.zeros((2, 1))
    wp.launch_tiled(add_along, dim=[1], inputs=[wp.array(a), x, y, z, one], block_dim=lanes)
    for axis, out in enumerate((x, y, z)):
        np.testing.assert_array_equal(out.numpy()[0], a.sum(axis=axis))
        np.testing.assert_array_equal(out.numpy()[1], a.max(axis=axis))
    assert x.numpy()[2, 0, 0] == 2 * a[0].sum()
    assert one.numpy().tolist() == [[a[1, 2].sum()], [a[1, 2].min()]]


@wp.kernel
def add_vectors(
    a: wp.array2d[wp.vec3], m: wp.array[wp.mat22], q: wp.array[wp.quat], v_out: wp.array[wp.vec3],
    rows: wp.array[wp.vec3], m_out: wp.array[wp.mat22], q_out: wp.array[wp.quat], low: wp.array[wp.vec3],
):  # fmt: skip
    t = wp.tile_load(a, shape=(4, 9))
    wp.tile_store(v_out, wp.tile_sum(t))
    wp.tile_store(rows, wp.tile_sum(t, axis=1))
    wp.tile_store(m_out, wp.tile_sum(wp.tile_load(m, shape=70)))
    wp.tile_store(q_out, wp.tile_sum(wp.tile_load(q, shape=70, storage="shared")))
    wp.tile_store(low, wp.tile_reduce(wp.min, t))


def test_sums_and_minima_of_vectors_are_by_component(lanes):
    a = RNG.integers(-9, 9, (4, 9, 3)).astype(np.float32)
    m, q = (RNG.integers(-9, 9, shape).astype(np.float32) for shape in ((70, 2, 2), (70, 4)))
    outs = [wp.zeros(n, dtype=t) for n, t in ((1, wp.vec3), (4, wp.vec3), (1, wp.mat22), (1, wp.quat), (1, wp.vec3))]
    inputs = [wp.array(a, dtype=wp.vec3), wp.array(m, dtype=wp.mat22), wp.array(q, dtype=wp.quat), *outs]
    wp.launch_tiled(add_vectors, dim=[1], inputs=inputs, block_dim=lanes)
    sums, rows, matrices, turns, low = (out.numpy() for out in outs)
    np.testing.assert_array_equal(sums[0], a.sum(axis=(0, 1)))
    np.testing.assert_array_equal(rows, a.sum(axis=1))
    np.testing.assert_array_equal(matrices[0], m.sum(axis=0))
    np.testing.assert_array_equal(turns[0], q.sum(axis=0))
    np.testing.assert_array_equal(low[0], a.min(axis=(0, 1)))


@wp.struct
class Best:
    cost: float
    index: int


@wp.func
def better(a: Best, b: Best):
    if b.cost < a.cost or (b.cost == a.cost and b.index < a.index):
        return b
    return a


@wp.func
def larger_magnitude(a: float, b: float):
    if wp.abs(a) > wp.abs(b):
        return a
    return b


@wp.kernel
def reduce(
    a: wp.array[float], n: wp.array[int], bests: wp.array[Best], floats: wp.array[float], ints: wp.array[int],
    best: wp.array[Best],
):  # fmt: skip
    t = wp.tile_load(a, shape=77)
    wp.tile_store(floats, wp.tile_reduce(wp.add, t))
    wp.tile_store(floats, wp.tile_reduce(wp.max, t), offset=1)
    wp.tile_store(floats, wp.tile_reduce(op=wp.min, a=t), offset=2)
    wp.tile_store(floats, wp.tile_reduce(larger_magnitude, t), offset=3)
    wp.tile_store(floats, wp.tile_reduce(wp.mul, wp.tile_view(t, offset=(3,), shape=(5,))), offset=4)
    u = wp.tile_load(n, shape=77, storage="shared")
    wp.tile_store(ints, wp.tile_reduce(wp.bit_or, u))
    wp.tile_store(ints, wp.tile_reduce(wp.bit_and, u), offset=1)
    wp.tile_store(ints, wp.tile_reduce(wp.bit_xor, u), offset=2)
    wp.tile_store(ints, wp.tile_reduce(wp.max, u), offset=3)
    wp.tile_store(best, wp.tile_reduce(better, wp.tile_load(bests, shape=77)))


def test_reductions_by_any_function(lanes):
    a = RNG.permutation(77).astype(np.float32) - 40.25
    n = (RNG.integers(0, 2**16, 77) | 64).astype(np.int32)
    bests = np.zeros(77, dtype=Best.numpy_dtype())
    bests["cost"], bests["index"] = RNG.integers(3, 20, 77), np.arange(77)
    floats, ints, best = wp.zeros(5), wp.zeros(4, dtype=int), wp.zeros(1, dtype=Best)
    inputs = [wp.array(a), wp.array(n), wp.array(bests, dtype=Best), floats, ints, best]
    wp.launch_tiled(reduce, dim=[1], inputs=inputs, block_dim=lanes)
    expected = [a.sum(), a.max(), a.min(), a[np.argmax(np.abs(a))], np.prod(a[3:8])]
    np.testing.assert_allclose(floats.numpy(), expected, rtol=1e-5)
    expected = [np.bitwise_or.reduce(n), np.bitwise_and.reduce(n), np.bitwise_xor.reduce(n), n.max()]
    assert ints.numpy().tolist() == expected
    first = np.argmin(bests["cost"])
    assert (best.numpy()["cost"][0], best.numpy()["index"][0]) == (bests["cost"][first], first)


@pytest.mark.parametrize("dtype", [wp.int8, wp.int32, wp.uint64, wp.float16, wp.float32, wp.float64], **by_name)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 32)])
def test_extremes_and_their_places(dtype, shape, lanes):
    m, n = shape

    @wp.kernel
    def extremes(a: wp.array3d[dtype], out: wp.array2d[dtype], places: wp.array2d[int]):
        i = wp.tid()
        t = wp.tile_load(a[i], shape=(m, n))
        wp.tile_store(out[i], wp.tile_min(t))
        wp.tile_store(out[i], wp.tile_max(t), offset=1)
        wp.tile_store(places[i], wp.tile_argmin(t))
        wp.tile_store(places[i], wp.tile_argmax(t), offset=1)

    a = RNG.integers(-60, 60, (4, *shape))
    kind = numpy_type(dtype)
    a = (a if kind.kind != "u" else a + 60).astype(kind)
    out, places = wp.zeros((4, 2), dtype=dtype), wp.zeros((4, 2), dtype=int)
    wp.launch_tiled(extremes, dim=[4], inputs=[wp.array(a), out, places], block_dim=lanes)
    flat = a.reshape(4, -1)
    np.testing.assert_array_equal(out.numpy(), np.stack([flat.min(axis=1), flat.max(axis=1)], axis=1))
    np.testing.assert_array_equal(flat[np.arange(4), places.numpy()[:, 0]], flat.min(axis=1))
    np.testing.assert_array_equal(flat[np.arange(4), places.numpy()[:, 1]], flat.max(axis=1))


@wp.kernel
def places_of_extremes(a: wp.array2d[float], places: wp.array2d[int], values: wp.array2d[float]):
    i = wp.tid()
    t = wp.tile_load(a[i], shape=70)
    wp.tile_store(places[i], wp.tile_argmin(t))
    wp.tile_store(places[i], wp.tile_argmax(t), offset=1)
    wp.tile_store(values[i], wp.tile_min(t))
    wp.tile_store(values[i], wp.tile_max(t), offset=1)


def test_the_lowest_of_equal_places(lanes):
    a = RNG.integers(0, 3, (6, 70)).astype(np.float32)
    a[0] = 1.0
    places, values = wp.zeros((6, 2), dtype=int), wp.zeros((6, 2))
    wp.launch_tiled(places_of_extremes, dim=[6], inputs=[wp.array(a), places, values], block_dim=lanes)
    np.testing.assert_array_equal(places.numpy(), np.stack([a.argmin(axis=1), a.argmax(axis=1)], axis=1))


def rows_with_nan():
    a = RNG.permutation(6 * 70).reshape(6, 70).astype(np.float32)
    a[0, 0] = np.nan
    a[1, 69] = np.nan
    a[2, ::2] = np.nan
    a[3, 1:] = np.nan
    a[4, :-1] = np.nan
    a[5, 3], a[5, 4], a[5, 5] = np.nan, np.inf, -np.inf
    return a


def test_extremes_skip_nan(lanes):
    a = rows_with_nan()
    places, values = wp.zeros((6, 2), dtype=int), wp.zeros((6, 2))
    wp.launch_tiled(places_of_extremes, dim=[6], inputs=[wp.array(a), places, values], block_dim=lanes)
    np.testing.assert_array_equal(values.numpy(), np.stack([np.nanmin(a, axis=1), np.nanmax(a, axis=1)], axis=1))


def test_places_of_extremes_agree_with_extremes_beside_nan(lanes):
    a = rows_with_nan()
    places, values = wp.zeros((6, 2), dtype=int), wp.zeros((6, 2))
    wp.launch_tiled(places_of_extremes, dim=[6], inputs=[wp.array(a), places, values], block_dim=lanes)
    np.testing.assert_array_equal(places.numpy(), np.stack([np.nanargmin(a, axis=1), np.nanargmax(a, axis=1)], axis=1))


def test_extremes_of_nan_alone_are_nan(lanes):
    a = np.full((1, 70), np.nan, np.float32)
    places, values = wp.full((1, 2), -1, dtype=int), wp.zeros((1, 2))
    wp.launch_tiled(places_of_extremes, dim=[1], inputs=[wp.array(a), places, values], block_dim=lanes)
    assert np.isnan(values.numpy()).all()


@wp.kernel
def products(
    a: wp.array[float], b: wp.array[float], v: wp.array[wp.vec3], m: wp.array[wp.mat22], alpha: float,
    out: wp.array[float], axpy: wp.array[float],
):  # fmt: skip
    t = wp.tile_load(a, shape=100)
    u = wp.tile_load(b, shape=100, storage="shared")
    wp.tile_store(out, wp.tile_dot(t, u))
    x = wp.tile_load(v, shape=10)
    wp.tile_store(out, wp.tile_dot(x, x), offset=1)
    y = wp.tile_load(m, shape=10)
    wp.tile_store(out, wp.tile_dot(a=y, b=y), offset=2)
    wp.tile_axpy(alpha, t, u)
    wp.tile_axpy(alpha=-1.0, src=t, dest=u)
    wp.tile_store(axpy, u)


def test_dot_products_and_axpy(lanes):
    a, b = RNG.integers(-9, 9, (2, 100)).astype(np.float32)
    v, m = RNG.integers(-9, 9, (10, 3)).astype(np.float32), RNG.integers(-9, 9, (10, 2, 2)).astype(np.float32)
    out, axpy = wp.zeros(3), wp.zeros(100)
    inputs = [wp.array(a), wp.array(b), wp.array(v, dtype=wp.vec3), wp.array(m, dtype=wp.mat22), 2.5, out, axpy]
    wp.launch_tiled(products, dim=[1], inputs=inputs, block_dim=lanes)
    assert out.numpy().tolist() == [a @ b, (v * v).sum(), (m * m).sum()]
    np.testing.assert_array_equal(axpy.numpy(), b + 2.5 * a - a)


def test_every_lane_reads_a_sum_of_all_lanes(lanes):
    @wp.kernel
    def spread(out: wp.array2d[float], tops: wp.array2d[int], vectors: wp.array2d[wp.vec2]):
        i, lane = wp.tid()
        out[i, lane] = wp.tile_sum(wp.tile(float(lane + i)))[0]
        tops[i, lane] = wp.tile_max(wp.tile(lane))[0] * 1000 + wp.tile_argmax(wp.tile(lane))[0]
        v = wp.vec2(float(lane), -1.0)
        s = wp.tile_sum(wp.tile(v), axis=1)
        r = wp.tile_reduce(wp.add, wp.tile(v, preserve_type=True))[0]
        vectors[i, lane] = wp.vec2(s[0], s[1]) + r

    out, tops = wp.zeros((2, lanes)), wp.zeros((2, lanes), dtype=int)
    vectors = wp.zeros((2, lanes), dtype=wp.vec2)
    wp.launch_tiled(spread, dim=[2], inputs=[out, tops, vectors], block_dim=lanes)
    total = lanes * (lanes - 1) // 2
    np.testing.assert_array_equal(out.numpy(), [[total] * lanes, [total + lanes] * lanes])
    np.testing.assert_array_equal(tops.numpy(), np.full((2, lanes), 1001 * (lanes - 1)))
    np.testing.assert_array_equal(vectors.numpy(), np.full((2, lanes, 2), [2.0 * total, -2.0 * lanes]))


def test_the_order_of_a_sum_does_not_depend_on_lanes(blocks):
    @wp.kernel
    def add(a: wp.array2d[float], out: wp.array2d[float]):
        i = wp.tid()
        t = wp.tile_load(a[i], shape=1000)
        wp.tile_store(out[i], wp.tile_sum(t))
        wp.tile_store(out[i], wp.tile_reduce(wp.add, t), offset=1)
        wp.tile_store(out[i], wp.tile_dot(t, t), offset=2)

    a = wp.array((RNG.standard_normal((8, 1000)) * 10.0 ** RNG.integers(-4, 5, (8, 1000))).astype(np.float32))
    found = []
    for block_dim in (1, 7, 32, 64, 256):
        out = wp.zeros((8, 3))
        wp.launch_tiled(add, dim=[8], inputs=[a, out], block_dim=block_dim)
        found.append(out.numpy())
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    exact = a.numpy().astype(np.float64)
    scale = np.abs(exact).sum(axis=1)
    np.testing.assert_array_less(np.abs(found[0][:, 0] - exact.sum(axis=1)), 1e-6 * scale)

"""Loads, stores and sums by tiles of indices, and values that single lanes scatter into a tile."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(8)


def gathered(a, indices, shape, offset, axis):
    """NumPy's account of tile_load_indexed: zero at each place outside of `a`."""
    out = np.zeros((*shape, *a.shape[len(shape) :]), a.dtype)
    for at in np.ndindex(*shape):
        there = [o + c for o, c in zip(offset, at)]
        there[axis] = offset[axis] + int(indices[at[axis]])
        if all(0 <= t < n for t, n in zip(there, a.shape)):
            out[at] = a[tuple(there)]
    return out


def scattered(a, indices, t, offset, axis, add=False):
    """Of stores and sums: those outside of `a` are dropped, equal indices add up."""
    out = a.copy()
    for at in np.ndindex(*t.shape[: len(offset)]):
        there = [o + c for o, c in zip(offset, at)]
        there[axis] = offset[axis] + int(indices[at[axis]])
        if all(0 <= i < n for i, n in zip(there, a.shape)):
            out[tuple(there)] = t[at] + (out[tuple(there)] if add else 0)
    return out


INDICES = [3, -1, 0, 7, 5, 2, 100, -5]


@wp.kernel
def rows_and_columns(
    a: wp.array[float], b: wp.array2d[float], indices: wp.array[int], x: int, y: int,
    line: wp.array[float], rows: wp.array2d[float], columns: wp.array2d[float],
    line_to: wp.array[float], rows_to: wp.array2d[float], columns_to: wp.array2d[float],
):  # fmt: skip
    ids = wp.tile_load(indices, shape=8)
    wp.tile_store(line, wp.tile_load_indexed(a, ids, shape=(8,)))
    wp.tile_store(rows, wp.tile_load_indexed(b, indices=ids, shape=(8, 4), offset=(x, y)))
    t = wp.tile_load_indexed(b, ids, shape=(4, 8), offset=(x, y), axis=1, storage="shared")
    wp.tile_store(columns, t)
    wp.tile_store_indexed(line_to, ids, wp.tile_arange(1.0, 9.0), offset=(x,))
    wp.tile_store_indexed(rows_to, ids, wp.tile_load(rows, shape=(8, 4)) * 2.0, offset=(x, y), axis=0)
    wp.tile_store_indexed(columns_to, indices=ids, t=t * 2.0, offset=(x, y), axis=1)


@pytest.mark.parametrize("offset", [(0, 0), (1, 2), (-1, 3), (2, -2), (6, 6)])
def test_loads_and_stores_along_an_axis(offset, lanes):
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((8,), (7, 8)))
    outs = [wp.full(shape, 9.0, dtype=float) for shape in ((8,), (8, 4), (4, 8))]
    targets = [wp.array(np.zeros_like(array)) for array in (a, b, b)]
    inputs = [wp.array(a), wp.array(b), wp.array(INDICES, dtype=int), *offset, *outs, *targets]
    wp.launch_tiled(rows_and_columns, dim=[1], inputs=inputs, block_dim=lanes)
    line, rows, columns = (out.numpy() for out in outs)
    np.testing.assert_array_equal(line, gathered(a, INDICES, (8,), (0,), 0))
    np.testing.assert_array_equal(rows, gathered(b, INDICES, (8, 4), offset, 0))
    np.testing.assert_array_equal(columns, gathered(b, INDICES, (4, 8), offset, 1))
    counted = np.arange(1, 9, dtype=np.float32)
    np.testing.assert_array_equal(targets[0].numpy(), scattered(np.zeros_like(a), INDICES, counted, offset[:1], 0))
    np.testing.assert_array_equal(targets[1].numpy(), scattered(np.zeros_like(b), INDICES, 2 * rows, offset, 0))
    np.testing.assert_array_equal(targets[2].numpy(), scattered(np.zeros_like(b), INDICES, 2 * columns, offset, 1))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sums_of_equal_indices_add_up(axis, lanes):
    shape = [3, 2, 4]
    shape[axis] = 6
    k, m, n = shape

    @wp.kernel
    def add(a: wp.array3d[wp.float64], indices: wp.array[int], values: wp.array3d[wp.float64]):
        ids = wp.tile_load(indices, shape=6)
        wp.tile_atomic_add_indexed(a, ids, wp.tile_load(values, shape=(k, m, n)), offset=(1, 0, 1), axis=axis)

    a = RNG.integers(-9, 9, (5, 4, 6)).astype(np.float64)
    values = RNG.integers(-9, 9, shape).astype(np.float64)
    indices = [2, 0, 2, -1, 40, 2]
    out = wp.array(a)
    inputs = [out, wp.array(indices, dtype=int), wp.array(values)]
    wp.launch_tiled(add, dim=[1], inputs=inputs, block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), scattered(a, indices, values, (1, 0, 1), axis, add=True))


def test_indexed_sums_return_the_old_values(lanes):
    @wp.kernel
    def add(a: wp.array2d[float], indices: wp.array[int], before: wp.array2d[float]):
        ids = wp.tile_load(indices, shape=4)
        old = wp.tile_atomic_add_indexed(a, indices=ids, t=wp.tile_ones(shape=(4, 3), dtype=float), offset=(0, 1))
        wp.tile_store(before, old)

    a = RNG.standard_normal((5, 3)).astype(np.float32)
    indices = [4, -1, 0, 9]
    out, before = wp.array(a), wp.full((4, 3), 9.0, dtype=float)
    wp.launch_tiled(add, dim=[1], inputs=[out, wp.array(indices, dtype=int), before], block_dim=lanes)
    np.testing.assert_array_equal(before.numpy(), gathered(a, indices, (4, 3), (0, 1), 0))
    ones = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(out.numpy(), scattered(a, indices, ones, (0, 1), 0, add=True))


def test_gathers_of_vectors_by_many_indices(lanes):
    @wp.kernel
    def turn(a: wp.array[wp.vec3], indices: wp.array[int], out: wp.array[wp.vec3]):
        i = wp.tid()
        ids = wp.tile_load(indices, shape=100, offset=100 * i)
        t = wp.tile_load_indexed(a, ids, shape=(100,))
        wp.tile_store_indexed(out, ids, t * -1.0)

    a = RNG.standard_normal((300, 3)).astype(np.float32)
    out = wp.zeros(300, dtype=wp.vec3)
    indices = wp.array(RNG.permutation(300), dtype=int)
    wp.launch_tiled(turn, dim=[3], inputs=[wp.array(a, dtype=wp.vec3), indices, out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), -a)


# Scattering: every lane has a value of its own.


@wp.kernel
def histogram(keys: wp.array[int], n: int, out: wp.array2d[float], counts: wp.array2d[int]):
    i, lane = wp.tid()
    t = wp.tile_zeros(shape=8, dtype=float)
    c = wp.tile_zeros(shape=8, dtype=int, storage="shared")
    step = wp.block_dim()
    for first in range(0, n, step):
        j = first + lane
        has = j < n and (keys[wp.min(j, n - 1)] % 2 == i or i == 2)
        key = keys[wp.min(j, n - 1)]
        wp.tile_scatter_add(t, key, 0.5, has)
        wp.tile_scatter_add(c, key, 1, has, True)
    wp.tile_store(out[i], t)
    wp.tile_store(counts[i], c)


def test_lanes_add_at_places_of_their_own(lanes):
    keys = RNG.integers(0, 8, 150).astype(np.int32)
    out, counts = wp.zeros((3, 8)), wp.zeros((3, 8), dtype=int)
    wp.launch_tiled(histogram, dim=[3], inputs=[wp.array(keys), 150, out, counts], block_dim=lanes)
    expected = [np.bincount(keys[keys % 2 == i], minlength=8) for i in range(2)] + [np.bincount(keys, minlength=8)]
    np.testing.assert_array_equal(counts.numpy(), expected)
    np.testing.assert_array_equal(out.numpy(), 0.5 * np.array(expected))


@wp.kernel
def scatter_ranks(n: int, a: wp.array[int], b: wp.array2d[int], c: wp.array3d[int], d: wp.array4d[int]):
    i, lane = wp.tid()
    t = wp.tile_full(shape=96, value=-1)
    u = wp.tile_full(shape=(8, 12), value=-1)
    v = wp.tile_full(shape=(4, 6, 4), value=-1)
    w = wp.tile_full(shape=(2, 2, 3, 8), value=-1, storage="shared")
    for first in range(0, n, wp.block_dim()):
        j = first + lane
        inside = j < n
        k = wp.where(inside, j, 0)
        wp.tile_scatter_masked(t, 95 - k, k, inside)
        wp.tile_scatter_masked(u, k % 8, k // 8, k, has_value=inside)
        wp.tile_scatter_add(v, k // 24, k // 4 % 6, k % 4, value=k, has_value=inside, atomic=False)
        wp.tile_scatter_add(w, k // 48, k // 24 % 2, k // 8 % 3, k % 8, k, inside)
    wp.tile_store(a, t)
    wp.tile_store(b, u)
    wp.tile_store(c, v)
    wp.tile_store(d, w)


def test_tiles_of_one_to_four_dimensions(lanes):
    n = 90
    shapes = [(96,), (8, 12), (4, 6, 4), (2, 2, 3, 8)]
    outs = [wp.zeros(shape, dtype=int) for shape in shapes]
    wp.launch_tiled(scatter_ranks, dim=[1], inputs=[n, *outs], block_dim=lanes)
    k = np.arange(96)
    counted = np.where(k < n, k, -1)
    np.testing.assert_array_equal(outs[0].numpy(), counted[::-1])
    np.testing.assert_array_equal(outs[1].numpy(), counted.reshape(12, 8).T)
    added = np.where(k < n, k - 1, -1)
    np.testing.assert_array_equal(outs[2].numpy(), added.reshape(4, 6, 4))
    np.testing.assert_array_equal(outs[3].numpy(), added.reshape(2, 2, 3, 8))


def test_one_lane_publishes_its_value(lanes):
    @wp.kernel
    def publish(out: wp.array2d[float]):
        i, lane = wp.tid()
        cell = wp.tile_zeros(shape=1, dtype=float, storage="shared")
        v = float(0.0)
        if lane == 0:
            for k in range(i + 1):
                v += float(k)
        wp.tile_scatter_masked(cell, 0, v, lane == 0)
        x = cell[0]
        wp.tile_scatter_masked(cell, 0, v + 100.0, lane == 0)
        out[i, lane] = x + 1000.0 * wp.tile_extract(cell, 0)

    out = wp.zeros((4, lanes))
    wp.launch_tiled(publish, dim=[4], inputs=[out], block_dim=lanes)
    sums = np.array([0.0, 1.0, 3.0, 6.0])
    expected = sums + 1000.0 * (sums + 100.0)
    np.testing.assert_array_equal(out.numpy(), np.repeat(expected[:, None], lanes, axis=1))


def test_scattering_no_value_leaves_a_tile_alone(lanes):
    @wp.kernel
    def nothing(x: wp.array[wp.vec2], out: wp.array[wp.vec2]):
        i, lane = wp.tid()
        t = wp.tile_load(x, shape=4)
        wp.tile_scatter_masked(t, 1, wp.vec2(7.0, 7.0), False)
        wp.tile_scatter_add(t, 2, wp.vec2(7.0, 7.0), lane < 0)
        wp.tile_scatter_add(t, 3, wp.vec2(1.0, 2.0), lane == 0)
        wp.tile_store(out, t)

    x = RNG.integers(-5, 5, (4, 2)).astype(np.float32)
    out = wp.zeros(4, dtype=wp.vec2)
    wp.launch_tiled(nothing, dim=[1], inputs=[wp.array(x, dtype=wp.vec2), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), x + [[0, 0], [0, 0], [0, 0], [1, 2]])


@pytest.mark.parametrize("dtype", [wp.int32, wp.uint32, wp.int64, wp.float32, wp.float64], ids=lambda t: t.__name__)
def test_every_lane_adds_to_one_element(dtype, lanes):
    @wp.kernel
    def add(out: wp.array[dtype]):
        i, lane = wp.tid()
        t = wp.tile_zeros(shape=2, dtype=dtype)
        wp.tile_scatter_add(t, lane % 2, dtype(lane + 1), True)
        wp.tile_store(out, t)

    out = wp.zeros(2, dtype=dtype)
    wp.launch_tiled(add, dim=[1], inputs=[out], block_dim=lanes)
    numbers = np.arange(1, lanes + 1)
    np.testing.assert_array_equal(out.numpy(), [numbers[::2].sum(), numbers[1::2].sum()])

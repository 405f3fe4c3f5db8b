"""Scans of tiles and sorts of pairs."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(13)
by_name = {"ids": lambda value: getattr(value, "__name__", str(value))}


@pytest.mark.parametrize("size", [1, 2, 31, 64, 100, 1025])
@pytest.mark.parametrize("dtype", [wp.float32, wp.int32, wp.uint32], **by_name)
def test_scans_of_lines(dtype, size, lanes):
    @wp.kernel
    def scan(a: wp.array2d[dtype], out: wp.array3d[dtype]):
        i = wp.tid()
        t = wp.tile_load(a[i], shape=size)
        wp.tile_store(out[i, 0], wp.tile_scan_inclusive(t))
        wp.tile_store(out[i, 1], wp.tile_scan_exclusive(t))
        wp.tile_store(out[i, 2], wp.tile_scan_max_inclusive(t))
        wp.tile_store(out[i, 3], wp.tile_scan_min_inclusive(t))
        wp.tile_store(out[i, 4], t)

    kind = np.dtype(wp.dtype_to_numpy(dtype))
    a = RNG.integers(0 if kind.kind == "u" else -40, 40, (2, size)).astype(kind)
    out = wp.zeros((2, 5, size), dtype=dtype)
    wp.launch_tiled(scan, dim=[2], inputs=[wp.array(a), out], block_dim=lanes)
    for row, found in zip(a, out.numpy()):
        sums = np.cumsum(row, dtype=kind)
        expected = [sums, sums - row, np.maximum.accumulate(row), np.minimum.accumulate(row), row]
        np.testing.assert_array_equal(found, expected)


def test_scans_of_rectangles_follow_their_rows(lanes):
    @wp.kernel
    def scan(a: wp.array2d[int], out: wp.array3d[int]):
        t = wp.tile_load(a, shape=(5, 7), storage="shared")
        wp.tile_store(out[0], wp.tile_scan_inclusive(t))
        wp.tile_store(out[1], wp.tile_scan_exclusive(t))
        wp.tile_store(out[2], wp.tile_scan_max_inclusive(t))
        wp.tile_store(out[3], wp.tile_scan_min_inclusive(t))

    a = RNG.integers(-40, 40, (5, 7)).astype(np.int32)
    out = wp.zeros((4, 5, 7), dtype=int)
    wp.launch_tiled(scan, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    flat = a.ravel()
    sums = np.cumsum(flat)
    expected = [sums, sums - flat, np.maximum.accumulate(flat), np.minimum.accumulate(flat)]
    np.testing.assert_array_equal(out.numpy().reshape(4, -1), expected)


def test_scans_of_extremes_skip_nan(lanes):
    @wp.kernel
    def scan(a: wp.array[float], out: wp.array2d[float]):
        t = wp.tile_load(a, shape=90)
        wp.tile_store(out[0], wp.tile_scan_max_inclusive(t))
        wp.tile_store(out[1], wp.tile_scan_min_inclusive(t))

    a = RNG.permutation(90).astype(np.float32)
    a[5::7] = np.nan
    out = wp.zeros((2, 90))
    wp.launch_tiled(scan, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), [np.fmax.accumulate(a), np.fmin.accumulate(a)])


def test_ranks_of_lanes_by_a_scan(lanes):
    """Compaction: each lane that keeps something gets the next free place of a row."""

    @wp.kernel
    def compact(a: wp.array2d[int], n: int, out: wp.array2d[int], counts: wp.array[int]):
        i, lane = wp.tid()
        base = int(0)
        for first in range(0, n, wp.block_dim()):
            j = first + lane
            keep = int(0)
            if j < n and a[i, j] % 3 == 0:
                keep = 1
            kept = wp.tile(keep)
            place = wp.untile(wp.tile_scan_exclusive(kept))
            if keep == 1:
                out[i, base + place] = a[i, j]
            base += wp.tile_sum(kept)[0]
        if lane == 0:
            counts[i] = base

    a = RNG.integers(1, 100, (3, 150)).astype(np.int32)
    out, counts = wp.zeros((3, 150), dtype=int), wp.zeros(3, dtype=int)
    wp.launch_tiled(compact, dim=[3], inputs=[wp.array(a), 150, out, counts], block_dim=lanes)
    for row, found, count in zip(a, out.numpy(), counts.numpy()):
        kept = row[row % 3 == 0]
        assert count == len(kept)
        np.testing.assert_array_equal(found, np.pad(kept, (0, 150 - count)))


@pytest.mark.parametrize("dtype", [wp.float32, wp.int32, wp.uint32, wp.int64, wp.uint64], **by_name)
@pytest.mark.parametrize("size", [1, 2, 3, 32, 37, 64, 100, 257])
def test_pairs_are_sorted_by_key(dtype, size, lanes):
    @wp.kernel
    def sort(keys: wp.array2d[dtype], values: wp.array2d[int]):
        i = wp.tid()
        k = wp.tile_load(keys[i], shape=size, storage="shared")
        v = wp.tile_load(values[i], shape=size, storage="shared")
        wp.tile_sort(k, v)
        wp.tile_store(keys[i], k)
        wp.tile_store(values[i], v)

    kind = np.dtype(wp.dtype_to_numpy(dtype))
    if kind.kind == "f":
        keys = (RNG.standard_normal((2, size)) * 10.0 ** RNG.integers(-30, 30, (2, size))).astype(kind)
    else:
        limits = np.iinfo(kind)
        keys = RNG.integers(limits.min, limits.max, (2, size), dtype=kind, endpoint=True)
    values = RNG.permutation(2 * size).reshape(2, size).astype(np.int32)
    order = np.argsort(keys, axis=1)
    k, v = wp.array(keys), wp.array(values)
    wp.launch_tiled(sort, dim=[2], inputs=[k, v], block_dim=lanes)
    np.testing.assert_array_equal(k.numpy(), np.take_along_axis(keys, order, axis=1))
    np.testing.assert_array_equal(v.numpy(), np.take_along_axis(values, order, axis=1))


@wp.kernel
def sort_registers(keys: wp.array[float], values: wp.array[int], n: wp.array[int]):
    k = wp.tile_load(keys, shape=70)
    v = wp.tile_arange(70, dtype=int)
    wp.tile_sort(k, v)
    wp.tile_store(keys, k)
    wp.tile_store(values, v)


def sorted_pairs(keys, lanes):
    k, v = wp.array(keys.astype(np.float32)), wp.zeros(70, dtype=int)
    wp.launch_tiled(sort_registers, dim=[1], inputs=[k, v, wp.zeros(1, dtype=int)], block_dim=lanes)
    return k.numpy(), v.numpy()


def test_the_order_of_a_sort(lanes):
    keys = RNG.permutation(70)
    k, v = sorted_pairs(keys, lanes)
    np.testing.assert_array_equal(k, np.arange(70))
    np.testing.assert_array_equal(v, np.argsort(keys))


def test_equal_keys_keep_their_order(lanes):
    keys = RNG.integers(0, 5, 70)
    k, v = sorted_pairs(keys, lanes)
    np.testing.assert_array_equal(v, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(k, np.sort(keys))


def test_infinite_keys_and_zeros_with_signs(lanes):
    keys = RNG.standard_normal(70)
    keys[[3, 50]], keys[[7, 20]], keys[[9, 30]], keys[11] = np.inf, -np.inf, 0.0, -0.0
    k, v = sorted_pairs(keys, lanes)
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(k, keys.astype(np.float32)[order])
    np.testing.assert_array_equal(v, order)


def test_nan_keys_come_last_and_the_values_are_a_permutation(lanes):
    keys = RNG.standard_normal(70)
    keys[::9] = np.nan
    keys[5] = np.inf
    keys[10] = -np.nan
    k, v = sorted_pairs(keys, lanes)
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(np.sort(v), np.arange(70))
    np.testing.assert_array_equal(v, order)
    np.testing.assert_array_equal(k, keys.astype(np.float32)[order])


@wp.struct
class Payload:
    position: wp.vec3
    tag: wp.int8


def test_values_of_any_type_and_two_dimensions(lanes):
    @wp.kernel
    def sort(keys: wp.array2d[int], values: wp.array2d[Payload], vectors: wp.array2d[wp.vec3]):
        k = wp.tile_load(keys, shape=(4, 9))
        v = wp.tile_load(values, shape=(4, 9))
        wp.tile_sort(k, v)
        again = wp.tile_load(keys, shape=(4, 9))
        x = wp.tile_load(vectors, shape=(4, 9))
        wp.tile_sort(again, x)
        wp.tile_store(keys, k)
        wp.tile_store(values, v)
        wp.tile_store(vectors, x)

    keys = RNG.permutation(36).reshape(4, 9).astype(np.int32)
    values = np.zeros((4, 9), dtype=Payload.numpy_dtype())
    values["position"] = RNG.standard_normal((4, 9, 3))
    values["tag"] = RNG.integers(-100, 100, (4, 9))
    k, v = wp.array(keys), wp.array(values, dtype=Payload)
    x = wp.array(values["position"], dtype=wp.vec3)
    wp.launch_tiled(sort, dim=[1], inputs=[k, v, x], block_dim=lanes)
    order = np.argsort(keys.ravel())
    np.testing.assert_array_equal(k.numpy().ravel(), np.arange(36))
    position = values["position"].reshape(36, 3)[order].reshape(4, 9, 3)
    np.testing.assert_array_equal(v.numpy()["position"], position)
    np.testing.assert_array_equal(x.numpy(), position)
    np.testing.assert_array_equal(v.numpy()["tag"].ravel(), values["tag"].ravel()[order])


def test_sorted_and_reversed_inputs(lanes):
    for keys in (np.arange(70), np.arange(70)[::-1], np.full(70, 3), np.arange(70) // 7 * (-1)):
        k, v = sorted_pairs(keys, lanes)
        np.testing.assert_array_equal(k, np.sort(keys))
        np.testing.assert_array_equal(keys[v], k)
        np.testing.assert_array_equal(np.sort(v), np.arange(70))

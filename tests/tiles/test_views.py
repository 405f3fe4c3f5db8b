"""Views of tiles: rows, slices, rectangles, transposes, other shapes, broadcasts, gathers, and writes through them."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(10)
A = RNG.standard_normal((6, 8)).astype(np.float32)


@wp.kernel
def rows(a: wp.array2d[float], k: int, lines: wp.array2d[float], columns: wp.array2d[float]):
    t = wp.tile_load(a, shape=(6, 8))
    wp.tile_store(lines[0], t[1])
    wp.tile_store(lines[1], t[-1, :])
    wp.tile_store(lines[2], t[k])
    wp.tile_store(lines[3], t[k - 6, :])
    wp.tile_store(lines[4], t[3][:])
    wp.tile_store(columns[0], t[:, 2])
    wp.tile_store(columns[1], t[:, -1])
    wp.tile_store(columns[2], t[:, k])
    wp.tile_store(columns[3], t[:, k - 8])


def test_an_index_drops_its_dimension(lanes):
    lines, columns = wp.zeros((5, 8)), wp.zeros((4, 6))
    wp.launch_tiled(rows, dim=[1], inputs=[wp.array(A), 4, lines, columns], block_dim=lanes)
    np.testing.assert_array_equal(lines.numpy(), A[[1, -1, 4, -2, 3]])
    np.testing.assert_array_equal(columns.numpy(), A[:, [2, -1, 4, -4]].T)


@wp.kernel
def slices(a: wp.array2d[float], out: wp.array3d[float]):
    t = wp.tile_load(a, shape=(6, 8), storage="shared")
    wp.tile_store(out[0], t[1:3])
    wp.tile_store(out[1], t[:, ::2])
    wp.tile_store(out[2], t[::-1, :])
    wp.tile_store(out[3], t[2:0:-1, 1:])
    wp.tile_store(out[4], t[-3:-1])
    wp.tile_store(out[5], t[2:10])
    wp.tile_store(out[6], t[::-2, 7:1:-3])
    wp.tile_store(out[7], t[1:5][::2, 1:7][:, ::-1])
    wp.tile_store(out[8], t[-100:2, -3:])


def test_slices_with_bounds_and_steps_as_in_numpy(lanes):
    out = wp.zeros((9, 6, 8))
    wp.launch_tiled(slices, dim=[1], inputs=[wp.array(A), out], block_dim=lanes)
    expected = [
        A[1:3],
        A[:, ::2],
        A[::-1],
        A[2:0:-1, 1:],
        A[-3:-1],
        A[2:10],
        A[::-2, 7:1:-3],
        A[1:5][::2, 1:7][:, ::-1],
        A[-100:2, -3:],
    ]
    for found, part in zip(out.numpy(), expected, strict=True):
        whole = np.zeros((6, 8), np.float32)
        whole[: part.shape[0], : part.shape[1]] = part
        np.testing.assert_array_equal(found, whole)


@wp.kernel
def slices_of_lines(a: wp.array[float], out: wp.array2d[float]):
    t = wp.tile_load(a, shape=7)
    wp.tile_store(out[0], t[::-1])
    wp.tile_store(out[1], t[1::2])
    wp.tile_store(out[2], t[-2:])
    wp.tile_store(out[3], t[5:1:-2])
    wp.tile_store(out[4], t[3:4])


def test_slices_of_one_dimension(lanes):
    a = RNG.standard_normal(7).astype(np.float32)
    out = wp.zeros((5, 7))
    wp.launch_tiled(slices_of_lines, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    for found, part in zip(out.numpy(), [a[::-1], a[1::2], a[-2:], a[5:1:-2], a[3:4]], strict=True):
        np.testing.assert_array_equal(found, np.pad(part, (0, 7 - len(part))))


@wp.kernel
def through_views(a: wp.array2d[float], k: int, out: wp.array3d[float]):
    t = wp.tile_load(a, shape=(6, 8))
    row = t[k]
    row += wp.tile_ones(shape=8, dtype=float)
    row[3] = 50.0
    wp.tile_store(out[0], t)
    s = wp.tile_load(a, shape=(6, 8), storage="shared")
    part = s[1:5:2, ::-1]
    part -= wp.tile_full(shape=(2, 8), value=2.0)
    part[0, 0] = 60.0
    wp.tile_store(out[1], s)
    s[0, 7] = 70.0
    turned = wp.tile_transpose(s)
    turned[0, 5] = 80.0
    wp.tile_store(out[2], s)
    flat = wp.tile_reshape(t, shape=(48,))
    flat[47] = 90.0
    line = wp.tile_view(t, offset=(0, k), shape=(6, 1))
    line -= wp.tile_ones(shape=(6, 1), dtype=float)
    wp.tile_store(out[3], t)
    t[5, 7] = 100.0
    wp.tile_store(out[4], wp.tile_reshape(flat, shape=(6, 8)))


def test_writing_through_a_view_changes_the_tile_and_the_reverse(lanes):
    out = wp.zeros((5, 6, 8))
    wp.launch_tiled(through_views, dim=[1], inputs=[wp.array(A), 2, out], block_dim=lanes)
    t, s = A.copy(), A.copy()
    t[2] += 1.0
    t[2, 3] = 50.0
    np.testing.assert_array_equal(out.numpy()[0], t)
    s[1:5:2] -= 2.0
    s[1, 7] = 60.0
    np.testing.assert_array_equal(out.numpy()[1], s)
    s[0, 7], s[5, 0] = 70.0, 80.0
    np.testing.assert_array_equal(out.numpy()[2], s)
    t[5, 7] = 90.0
    t[:, 2] -= 1.0
    np.testing.assert_array_equal(out.numpy()[3], t)
    t[5, 7] = 100.0
    np.testing.assert_array_equal(out.numpy()[4], t)


@wp.kernel
def rebinding(a: wp.array2d[float], n: int, out: wp.array2d[float]):
    t = wp.tile_load(a, shape=(6, 8), storage="shared")
    row = t[0]
    for k in range(n):
        row = t[k]
        row += wp.tile_full(shape=8, value=float(k))
    wp.tile_store(out, t)


def test_rebinding_a_name_to_another_view_writes_nothing(lanes):
    out = wp.zeros((6, 8))
    wp.launch_tiled(rebinding, dim=[1], inputs=[wp.array(A), 5, out], block_dim=lanes)
    expected = A.copy()
    expected[:5] += np.arange(5, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(out.numpy(), expected)


@wp.kernel
def gathers(a: wp.array2d[float], indices: wp.array[int], lines: wp.array2d[float], columns: wp.array2d[float],
            line: wp.array[float]):  # fmt: skip
    t = wp.tile_load(a, shape=(6, 8))
    ids = wp.tile_load(indices, shape=5)
    picked = t[ids]
    wp.tile_store(columns, t[:, ids])
    wp.tile_store(line, t[1][ids])
    picked[0, 0] = 77.0
    t[3, 1] = 88.0
    wp.tile_store(lines, picked)


def test_gathers_copy_and_count_negative_indices_from_the_end(lanes):
    indices = np.array([3, -1, 0, 3, -6], dtype=np.int32)
    lines, columns, line = wp.zeros((5, 8)), wp.zeros((6, 5)), wp.zeros(5)
    inputs = [wp.array(A), wp.array(indices), lines, columns, line]
    wp.launch_tiled(gathers, dim=[1], inputs=inputs, block_dim=lanes)
    expected = A[indices]
    expected[0, 0] = 77.0
    np.testing.assert_array_equal(lines.numpy(), expected)
    np.testing.assert_array_equal(columns.numpy(), A[:, indices])
    np.testing.assert_array_equal(line.numpy(), A[1, indices])


@wp.kernel
def gathers_by_name(a: wp.array2d[float], indices: wp.array[int], lines: wp.array2d[float], columns: wp.array2d[float]):
    t = wp.tile_load(a, shape=(6, 8))
    ids = wp.tile_load(indices, shape=5)
    wp.tile_store(lines, wp.tile_slice_indexed(t, (ids,)))
    wp.tile_store(columns, wp.tile_slice_indexed(t, (slice(0, 6, 1), ids)))


def test_a_gather_as_a_function(lanes):
    indices = np.array([3, -1, 0, 3, -6], dtype=np.int32)
    lines, columns = wp.zeros((5, 8)), wp.zeros((6, 5))
    wp.launch_tiled(gathers_by_name, dim=[1], inputs=[wp.array(A), wp.array(indices), lines, columns], block_dim=lanes)
    np.testing.assert_array_equal(lines.numpy(), A[indices])
    np.testing.assert_array_equal(columns.numpy(), A[:, indices])


@wp.kernel
def products_of_views(a: wp.array2d[float], out: wp.array2d[float]):
    t = wp.tile_load(a, shape=(6, 8))
    row = t[1]
    row *= 2.0
    wp.tile_store(out[0], row)
    other = t[2]
    other /= wp.tile_full(shape=8, value=4.0)
    wp.tile_store(out[1], other)
    wp.tile_store(out, t, offset=(2, 0))


def test_products_and_quotients_in_place_bind_a_new_tile(lanes):
    """Only sums, differences and operations on bits go through a view."""
    out = wp.zeros((8, 8))
    wp.launch_tiled(products_of_views, dim=[1], inputs=[wp.array(A), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), [2 * A[1], A[2] / 4, *A])


@wp.kernel
def rectangles(a: wp.array2d[float], x: int, y: int, lines: wp.array2d[float], out: wp.array3d[float]):
    t = wp.tile_load(a, shape=(6, 8), storage="shared")
    wp.tile_store(lines[0], wp.tile_view(t, offset=(x,)))
    wp.tile_store(lines[1], wp.tile_view(t, (3,)))
    wp.tile_store(out[0], wp.tile_view(t, offset=(x, y), shape=(3, 4)))
    wp.tile_store(out[1], wp.tile_view(t, offset=(x,), shape=(2, 8)))
    wp.tile_store(out[2], wp.tile_view(t, shape=(2, 2), offset=(4, 6)))
    wp.tile_store(out[3], wp.tile_view(t, offset=(slice(0, 4, 2), slice(6, 0, -3))))
    block = wp.tile_view(wp.tile_view(t, offset=(1, 1), shape=(4, 6)), offset=(x, y), shape=(2, 2))
    wp.tile_store(out[4], block)


@pytest.mark.parametrize("place", [(0, 0), (2, 3), (1, 4)])
def test_rectangles_at_offsets(place, lanes):
    x, y = place
    lines, out = wp.zeros((2, 8)), wp.zeros((5, 6, 8))
    wp.launch_tiled(rectangles, dim=[1], inputs=[wp.array(A), x, y, lines, out], block_dim=lanes)
    np.testing.assert_array_equal(lines.numpy(), A[[x, 3]])
    parts = [A[x : x + 3, y : y + 4], A[x : x + 2], A[4:, 6:], A[0:4:2, 6:0:-3], A[1 + x : 3 + x, 1 + y : 3 + y]]
    for found, part in zip(out.numpy(), parts, strict=True):
        whole = np.zeros((6, 8), np.float32)
        whole[: part.shape[0], : part.shape[1]] = part
        np.testing.assert_array_equal(found, whole)


@wp.kernel
def assigned(a: wp.array2d[float], k: int, out: wp.array3d[float]):
    t = wp.tile_load(a, shape=(6, 8))
    u = wp.tile_zeros(shape=(6, 8), dtype=float)
    u[1:3, :] = wp.tile_view(t, offset=(0, 0), shape=(2, 8))
    u[4] = t[1]
    u[:, 1] = t[:, 5]
    u[k] = t[3]
    wp.tile_store(out[0], u)
    v = wp.tile_load(a, shape=(6, 8), storage="shared")
    v[1:] = v[:-1]
    wp.tile_store(out[1], v)
    w = wp.tile_load(a, shape=(6, 8), storage="shared")
    w[:, ::2] = w[:, 1::2]
    w[::-1, 0] = w[:, 0]
    w[:, 1:4] = w[:, :3]
    wp.tile_store(out[2], w)


def test_a_tile_is_copied_into_a_slice(lanes):
    out = wp.zeros((3, 6, 8))
    wp.launch_tiled(assigned, dim=[1], inputs=[wp.array(A), 5, out], block_dim=lanes)
    u = np.zeros((6, 8), np.float32)
    u[1:3] = A[:2]
    u[4] = A[1]
    u[:, 1] = A[:, 5]
    u[5] = A[3]
    v = A.copy()
    v[1:] = A[:-1]
    w = A.copy()
    w[:, ::2] = A[:, 1::2]
    w[::-1, 0] = w[:, 0].copy()
    w[:, 1:4] = w[:, :3].copy()
    np.testing.assert_array_equal(out.numpy(), [u, v, w])


@wp.kernel
def assign(a: wp.array2d[float], n: wp.array2d[int], x: int, y: int, out: wp.array3d[float], line: wp.array[float]):
    t = wp.tile_load(a, shape=(6, 8))
    wp.tile_assign(t, wp.tile_zeros(shape=(2, 3), dtype=float), offset=(x, y))
    wp.tile_assign(dst=t, src=wp.tile_load(n, shape=(1, 2)))
    wp.tile_store(out[0], t)
    s = wp.tile_load(a, shape=(6, 8), storage="shared")
    wp.tile_assign(wp.tile_transpose(s), wp.tile_ones(shape=(3, 2), dtype=float), (y, x))
    wp.tile_store(out[1], s)
    u = wp.tile_zeros(shape=6, dtype=float)
    wp.tile_assign(u, wp.tile_ones(shape=2, dtype=float), offset=(x,))
    wp.tile_store(line, u)


def test_assign_copies_at_an_offset_and_converts(lanes):
    n = np.array([[7, -8]], dtype=np.int32)
    out, line = wp.zeros((2, 6, 8)), wp.zeros(6)
    wp.launch_tiled(assign, dim=[1], inputs=[wp.array(A), wp.array(n), 3, 4, out, line], block_dim=lanes)
    t, s = A.copy(), A.copy()
    t[3:5, 4:7] = 0.0
    t[0, :2] = n[0]
    s[3:5, 4:7] = 1.0
    np.testing.assert_array_equal(out.numpy(), [t, s])
    assert line.numpy().tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]


@wp.kernel
def reshaped(a: wp.array2d[float], out: wp.array3d[float], cubes: wp.array4d[float], flat: wp.array[float]):
    t = wp.tile_load(a, shape=(6, 8))
    wp.tile_store(out[0], wp.tile_transpose(t))
    wp.tile_store(out[1], wp.tile_reshape(t, shape=(4, 12)))
    wp.tile_store(out[2], wp.tile_reshape(t, (3, -1)))
    wp.tile_store(out[3], wp.tile_transpose(wp.tile_transpose(t)))
    wp.tile_store(cubes[0], wp.tile_reshape(t, shape=(2, 3, 8)))
    wp.tile_store(cubes[1], wp.tile_squeeze(wp.tile_reshape(t, (1, 2, 1, 24, 1)), axis=(2,))[0][0:2, :, :])
    wp.tile_store(flat, wp.tile_squeeze(wp.tile_reshape(t, shape=(1, 48, 1))))
    wp.tile_store(flat, wp.tile_reshape(t[2:4], (16,)), offset=48)
    five = wp.tile_reshape(t, (2, 3, 2, 2, 2))
    wp.tile_store(flat, wp.tile_reshape(five, (-1,)), offset=64)


def test_transposes_and_other_shapes(lanes):
    out, cubes, flat = wp.zeros((4, 12, 16)), wp.zeros((2, 3, 24, 8)), wp.zeros(112)
    wp.launch_tiled(reshaped, dim=[1], inputs=[wp.array(A), out, cubes, flat], block_dim=lanes)
    for found, part in zip(out.numpy(), [A.T, A.reshape(4, 12), A.reshape(3, 16), A], strict=True):
        np.testing.assert_array_equal(found[: part.shape[0], : part.shape[1]], part)
    np.testing.assert_array_equal(cubes.numpy()[0, :2, :3], A.reshape(2, 3, 8))
    np.testing.assert_array_equal(cubes.numpy()[1, :2, :24, 0], A.reshape(2, 24))
    np.testing.assert_array_equal(flat.numpy(), np.concatenate([A.ravel(), A[2:4].ravel(), A.ravel()]))


@wp.kernel
def squeezed(a: wp.array4d[float], out: wp.array4d[float]):
    t = wp.tile_load(a, shape=(1, 3, 1, 2))
    wp.tile_store(out[0, 0], wp.tile_squeeze(t))
    wp.tile_store(out[1], wp.tile_squeeze(t, axis=(0,)))
    wp.tile_store(out[2], wp.tile_squeeze(t, axis=(-2,)))
    wp.tile_store(out[3, 0], wp.tile_squeeze(t, axis=(0, 2)))


def test_extents_of_one_are_dropped(lanes):
    a = RNG.standard_normal((1, 3, 1, 2)).astype(np.float32)
    out = wp.zeros((4, 3, 3, 3))
    wp.launch_tiled(squeezed, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    found = out.numpy()
    np.testing.assert_array_equal(found[0, 0, :3, :2], a[0, :, 0])
    np.testing.assert_array_equal(found[1, :3, :1, :2], a[0])
    np.testing.assert_array_equal(found[2, :1, :3, :2], a[:, :, 0])
    np.testing.assert_array_equal(found[3, 0, :3, :2], a[0, :, 0])
    assert np.count_nonzero(found) == 4 * 6


@wp.kernel
def broadcasts(a: wp.array[float], out: wp.array3d[float], cubes: wp.array4d[float]):
    row = wp.tile_load(a, shape=4)
    column = wp.tile_reshape(wp.tile_load(a, shape=3, offset=4), (3, 1))
    wp.tile_store(out[0], wp.tile_broadcast(row, shape=(3, 4)))
    wp.tile_store(out[1], wp.tile_broadcast(column, (3, 4)))
    both = wp.tile_broadcast(row, shape=(3, 4)) + wp.tile_broadcast(column, shape=(3, 4))
    wp.tile_store(out[2], both)
    wp.tile_store(cubes[0], wp.tile_broadcast(column, shape=(2, 3, 4)))
    one = wp.tile_broadcast(wp.tile_ones(1, dtype=float), shape=(2, 2, 3, 2))
    wp.tile_store(cubes, one, offset=(1, 0, 0, 0))
    wide = wp.tile_broadcast(row, shape=(3, 4))
    wide[1, 2] = 99.0
    wp.tile_store(out[3], wide)
    wp.tile_store(out[4], wp.tile_reshape(row, (1, 4)))


def test_broadcasts_copy_nothing(lanes):
    a = RNG.standard_normal(7).astype(np.float32)
    out, cubes = wp.zeros((5, 3, 4)), wp.zeros((3, 2, 3, 4))
    wp.launch_tiled(broadcasts, dim=[1], inputs=[wp.array(a), out, cubes], block_dim=lanes)
    row, column = a[:4], a[4:, None]
    whole = np.zeros((3, 4), np.float32)
    found = out.numpy()
    np.testing.assert_array_equal(found[0], whole + row)
    np.testing.assert_array_equal(found[1], whole + column)
    np.testing.assert_array_equal(found[2], row + column)
    np.testing.assert_array_equal(cubes.numpy()[0], np.broadcast_to(column, (2, 3, 4)))
    ones = np.zeros((2, 2, 3, 4), np.float32)
    ones[..., :2] = 1.0
    np.testing.assert_array_equal(cubes.numpy()[1:], ones)
    changed = row.copy()
    changed[2] = 99.0
    np.testing.assert_array_equal(found[3], whole + changed)
    np.testing.assert_array_equal(found[4][0], changed)


@wp.kernel
def converted(
    a: wp.array[float], halves: wp.array[wp.float16], doubles: wp.array[wp.float64], ints: wp.array[int],
    bytes: wp.array[wp.int8], back: wp.array[float], same: wp.array[float],
):  # fmt: skip
    t = wp.tile_load(a, shape=6)
    wp.tile_store(halves, wp.tile_astype(t, dtype=wp.float16))
    wp.tile_store(doubles, wp.tile_astype(t, wp.float64))
    n = wp.tile_astype(t, wp.int32)
    wp.tile_store(ints, n)
    wp.tile_store(bytes, wp.tile_astype(n, wp.int8))
    wp.tile_store(back, wp.tile_astype(n, float))
    copied = wp.tile_astype(t, float)
    copied[0] = 5.0
    wp.tile_store(same, t)


def test_conversions_truncate(lanes):
    a = np.array([1.75, -1.75, 0.1, 3.0, 100.5, -0.999], dtype=np.float32)
    types = [wp.float16, wp.float64, int, wp.int8, float, float]
    outs = [wp.zeros(6, dtype=dtype) for dtype in types]
    wp.launch_tiled(converted, dim=[1], inputs=[wp.array(a), *outs], block_dim=lanes)
    whole = np.trunc(a)
    for found, expected in zip(outs, [a.astype(np.float16), a.astype(np.float64), whole, whole, whole, a], strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


@wp.kernel
def deep(a: wp.array3d[float], k: int, planes: wp.array3d[float], lines: wp.array2d[float]):
    t = wp.tile_load(a, shape=(3, 4, 5))
    wp.tile_store(planes[0], t[k])
    wp.tile_store(planes[1], t[:, 1, :])
    wp.tile_store(planes[2], t[::2, ::-1, 3])
    wp.tile_store(planes[3], t[1, 1:3, 1:4])
    wp.tile_store(lines[0], t[k, -1])
    wp.tile_store(lines[1], t[k][:, 2])
    wp.tile_store(lines[2], t[:, k, 0])


def test_views_of_three_dimensions(lanes):
    a = RNG.standard_normal((3, 4, 5)).astype(np.float32)
    planes, lines = wp.zeros((4, 4, 5)), wp.zeros((3, 5))
    wp.launch_tiled(deep, dim=[1], inputs=[wp.array(a), 2, planes, lines], block_dim=lanes)
    for found, part in zip(planes.numpy(), [a[2], a[:, 1], a[::2, ::-1, 3], a[1, 1:3, 1:4]], strict=True):
        whole = np.zeros((4, 5), np.float32)
        whole[: part.shape[0], : part.shape[1]] = part
        np.testing.assert_array_equal(found, whole)
    for found, part in zip(lines.numpy(), [a[2, -1], a[2, :, 2], a[:, 2, 0]], strict=True):
        np.testing.assert_array_equal(found, np.pad(part, (0, 5 - len(part))))


@wp.kernel
def scalars_in_slices(a: wp.array2d[float], out: wp.array3d[float]):
    t = wp.tile_load(a, shape=(6, 8))
    t[1:3] = 5.0
    t[:, 2] = 6.0
    wp.tile_store(out[0], t)
    s = wp.tile_load(a, shape=(6, 8), storage="shared")
    s[1:3] += wp.tile_ones(shape=(2, 8), dtype=float)
    wp.tile_store(out[1], s)


def test_scalars_in_slices_and_slices_changed_in_place(lanes):
    out = wp.zeros((2, 6, 8))
    wp.launch_tiled(scalars_in_slices, dim=[1], inputs=[wp.array(A), out], block_dim=lanes)
    t, s = A.copy(), A.copy()
    t[1:3] = 5.0
    t[:, 2] = 6.0
    s[1:3] += 1.0
    np.testing.assert_array_equal(out.numpy(), [t, s])

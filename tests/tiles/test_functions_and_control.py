"""Tiles in functions, branches and loops: by reference, as results, carried from turn to turn."""

from typing import Any

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(16)
N = 4
M = wp.constant(3)


@wp.func
def change(t: wp.tile[float, 4], u: wp.tile[float, 4]):
    t += u
    t[1] = 50.0


@wp.func
def rebind(t: wp.tile[float, 4]):
    t = t * 2.0
    return t


@wp.func
def both(t: wp.tile(dtype=float, shape=(4,))) -> wp.tile[float, 4]:
    return t * 3.0


@wp.func
def two(t: wp.tile[float, M, N], k: int):
    return t * 2.0, t[k] * 1.0


@wp.func
def any_tile(t: Any, factor: float):
    return t * factor


@wp.func
def any_shape(t: wp.tile[float]):
    return wp.tile_sum(t)


@wp.func
def with_tuple(t: wp.tile[float, (M, N)]):
    return wp.tile_sum(t, axis=1)


@wp.kernel
def call(a: wp.array2d[float], k: int, out: wp.array2d[float]):
    t = wp.tile_load(a[0], shape=4, storage="shared")
    u = wp.tile_load(a[1], shape=4, storage="shared")
    change(t, u)
    wp.tile_store(out[0], t)
    wp.tile_store(out[1], rebind(t))
    wp.tile_store(out[2], t)
    wp.tile_store(out[3], both(u))
    table = wp.tile_load(a, shape=(3, 4))
    doubled, row = two(table, k)
    wp.tile_store(out[4], doubled[1])
    wp.tile_store(out[5], row)
    change(table[k], u)
    wp.tile_store(out[6], table[k])
    wp.tile_store(out[7], any_tile(u, 0.5))
    wp.tile_store(out[8], any_shape(u))
    wp.tile_store(out[9], with_tuple(table))


def test_functions_take_tiles_by_reference_and_return_values(lanes):
    a = RNG.integers(-9, 9, (3, 4)).astype(np.float32)
    out = wp.zeros((10, 4))
    wp.launch_tiled(call, dim=[1], inputs=[wp.array(a), 2, out], block_dim=lanes)
    t = a[0] + a[1]
    t[1] = 50.0
    last = a[2] + a[1]
    last[1] = 50.0
    table = a.copy()
    table[2] = last
    one = np.eye(4, dtype=np.float32)[0]
    rows = np.append(table.sum(axis=1), 0)
    expected = [t, 2 * t, t, 3 * a[1], 2 * a[1], a[2], last, a[1] / 2, one * a[1].sum(), rows]
    np.testing.assert_array_equal(out.numpy(), expected)


@wp.func
def row_of(t: wp.tile[float, M, N], k: int):
    row = t[k]
    return row, t


def test_register_tiles_are_changed_by_functions_and_views_are_returned(lanes):
    @wp.kernel
    def call_both(a: wp.array2d[float], out: wp.array2d[float]):
        t = wp.tile_load(a[0], shape=4)
        change(t, wp.tile_load(a[1], shape=4))
        wp.tile_store(out[0], t)
        row, table = row_of(wp.tile_load(a, shape=(3, 4)), 2)
        wp.tile_store(out[1], row)
        wp.tile_store(out[2], table[0])

    a = RNG.integers(-9, 9, (3, 4)).astype(np.float32)
    out = wp.zeros((3, 4))
    wp.launch_tiled(call_both, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    first = a[0] + a[1]
    first[1] = 50.0
    np.testing.assert_array_equal(out.numpy(), [first, a[2], a[0]])


@wp.kernel
def call_with_shapes(a: wp.array2d[float], out: wp.array2d[float], sums: wp.array2d[float]):
    table = wp.tile_load(a, shape=(3, 4))
    wp.tile_store(out, any_tile(table, 0.5))
    wp.tile_store(out[3], any_tile(table[0], 2.0))
    wp.tile_store(sums[0], any_shape(table))
    wp.tile_store(sums[1], any_shape(table[0]))


def test_a_generic_function_takes_tiles_of_several_shapes(lanes):
    a = RNG.integers(-9, 9, (3, 4)).astype(np.float32)
    out, sums = wp.zeros((4, 4)), wp.zeros((2, 1))
    wp.launch_tiled(call_with_shapes, dim=[1], inputs=[wp.array(a), out, sums], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), [*(a / 2), 2 * a[0]])
    assert sums.numpy().tolist() == [[a.sum()], [a[0].sum()]]


@wp.func
def scale_in_place(t: wp.tile[float, 4]):
    t *= 2.0
    t /= wp.tile_full(shape=4, value=4.0)
    return t


@wp.func
def masks_in_place(t: wp.tile[int, 4]):
    t |= wp.tile_full(shape=4, value=8)
    t -= wp.tile_ones(shape=4, dtype=int)


def test_products_in_place_do_not_reach_the_caller(lanes):
    @wp.kernel
    def call_both(a: wp.array[float], out: wp.array2d[float], n: wp.array[int]):
        t = wp.tile_load(a, shape=4)
        wp.tile_store(out[0], scale_in_place(t))
        wp.tile_store(out[1], t)
        u = wp.tile_zeros(shape=4, dtype=int)
        masks_in_place(u)
        wp.tile_store(n, u)

    a = RNG.integers(-9, 9, 4).astype(np.float32)
    out, n = wp.zeros((2, 4)), wp.zeros(4, dtype=int)
    wp.launch_tiled(call_both, dim=[1], inputs=[wp.array(a), out, n], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), [a / 2, a])
    assert n.numpy().tolist() == [7] * 4


@wp.func
def sums(t: wp.tile[float, 3]):
    return wp.tile_sum(t)[0]


@wp.func
def sums(t: wp.tile[float, 5]):  # noqa: F811
    return 100.0 * wp.tile_sum(t)[0]


@wp.func
def sums(t: wp.tile[int, 3]):  # noqa: F811
    return 10000.0 * float(wp.tile_sum(t)[0])


def test_overloads_by_shape_and_element_type(lanes):
    @wp.kernel
    def call_each(out: wp.array[float]):
        i, lane = wp.tid()
        a = sums(wp.tile_ones(shape=3, dtype=float))
        b = sums(wp.tile_ones(shape=5, dtype=float, storage="shared"))
        c = sums(wp.tile_ones(shape=3, dtype=int))
        if lane == 0:
            out[0] = a
            out[1] = b
            out[2] = c

    out = wp.zeros(3)
    wp.launch_tiled(call_each, dim=[1], inputs=[out], block_dim=lanes)
    assert out.numpy().tolist() == [3.0, 500.0, 30000.0]


@wp.kernel
def choose(a: wp.array[float], n: int, flag: wp.bool, out: wp.array2d[float]):
    t = wp.tile_load(a, shape=6)
    s = wp.tile_load(a, shape=6, storage="shared") * 2.0
    if n > 2:
        t = t * 10.0
    else:
        t = s + t
    wp.tile_store(out[0], t)
    if flag:
        u = wp.tile_ones(shape=6, dtype=float)
    else:
        u = wp.tile_zeros(shape=6, dtype=float)
    wp.tile_store(out[1], u)
    wp.tile_store(out[2], s if n > 2 else t)
    wp.tile_store(out[3], wp.where(n > 2, t, s))
    if n > 2 and flag:
        s[0] = 77.0
    elif n > 1:
        s[1] = 88.0
    wp.tile_store(out[4], s)


@pytest.mark.parametrize("n, flag", [(3, True), (3, False), (2, True), (0, False)])
def test_branches(n, flag, lanes):
    a = RNG.integers(-9, 9, 6).astype(np.float32)
    out = wp.zeros((5, 6))
    wp.launch_tiled(choose, dim=[1], inputs=[wp.array(a), n, flag, out], block_dim=lanes)
    t, s = (10 * a if n > 2 else 3 * a), 2 * a
    u = np.full(6, float(flag))
    last = s.copy()
    if n > 2 and flag:
        last[0] = 77.0
    elif n > 1:
        last[1] = 88.0
    np.testing.assert_array_equal(out.numpy(), [t, u, s if n > 2 else t, t if n > 2 else s, last])


@wp.kernel
def repeat(a: wp.array2d[float], n: int, out: wp.array2d[float]):
    i, lane = wp.tid()
    t = wp.tile_zeros(shape=5, dtype=float)
    u = wp.tile_ones(shape=5, dtype=float, storage="shared")
    for k in range(n):
        row = wp.tile_load(a[k], shape=5)
        t += row * u
        u = row
        if k == 1:
            continue
        t[0] = t[0] + 1.0
        last = row
    wp.tile_store(out[0], t)
    wp.tile_store(out[1], u)
    wp.tile_store(out[2], last)
    k = int(0)
    v = wp.tile_load(a[0], shape=5)
    while wp.tile_sum(v)[0] < 100.0:
        v = v + wp.tile_ones(shape=5, dtype=float) * 7.0
        k += 1
        if k > 9:
            break
    wp.tile_store(out[3], v)
    x = wp.tile_load(a[0], shape=5)
    y = wp.tile_load(a[1], shape=5)
    for _ in range(n + 1):
        z = x
        x = y
        y = z
    wp.tile_store(out[4], x)
    wp.tile_store(out[5], y)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_tiles_carried_by_loops(n, lanes):
    a = RNG.integers(0, 9, (6, 5)).astype(np.float32)
    out = wp.zeros((6, 5))
    wp.launch_tiled(repeat, dim=[1], inputs=[wp.array(a), n, out], block_dim=lanes)
    t, u = np.zeros(5, np.float32), np.ones(5, np.float32)
    for k in range(n):
        t, u = t + a[k] * u, a[k]
        if k == 1:
            continue
        t[0] += 1
        last = a[k]
    v, k = a[0].copy(), 0
    while v.sum() < 100:
        v, k = v + 7, k + 1
        if k > 9:
            break
    x, y = (a[1], a[0]) if n % 2 == 0 else (a[0], a[1])
    np.testing.assert_array_equal(out.numpy(), [t, u, last, v, x, y])


def test_constant_loops_with_tiles_of_other_shapes(lanes):
    @wp.kernel
    def shrink(a: wp.array[float], out: wp.array2d[float]):
        t = wp.tile_load(a, shape=16)
        for k in range(wp.static(4)):
            wp.tile_store(out[k], t)
            t = t[::2] + t[1::2]
        wp.tile_store(out[4], t)

    a = RNG.integers(-9, 9, 16).astype(np.float32)
    out = wp.zeros((5, 16))
    wp.launch_tiled(shrink, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    for found in out.numpy():
        np.testing.assert_array_equal(found, np.pad(a, (0, 16 - len(a))))
        a = a[::2] + a[1::2]


def test_a_name_takes_another_shape(lanes):
    @wp.kernel
    def reshape(a: wp.array2d[float], out: wp.array[float]):
        t = wp.tile_load(a, shape=(3, 4))
        t = wp.tile_sum(t, axis=0)
        t = wp.tile_reshape(t, (2, 2))
        t = wp.tile_sum(t, axis=1)
        wp.tile_store(out, t)

    a = RNG.integers(-9, 9, (3, 4)).astype(np.float32)
    out = wp.zeros(2)
    wp.launch_tiled(reshape, dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), a.sum(axis=0).reshape(2, 2).sum(axis=1))


@wp.func
def solve_small(a: wp.tile[float, N, N], b: wp.tile[float, N]):
    return wp.tile_cholesky_solve(wp.tile_cholesky(a), b)


@wp.func
def solve_none(a: wp.tile[float, N, N], b: wp.tile[float, N]):
    return b * 1.0


def factory(solve, size, with_shift):
    @wp.kernel(enable_backward=False, module="unique")
    def template(a: wp.array2d[float], b: wp.array[float], out: wp.array[float]):
        t = wp.tile_load(a, shape=(size, size), storage="shared")
        u = wp.tile_load(b, shape=size, storage="shared")
        if wp.static(with_shift):
            u += wp.tile_ones(shape=wp.static(size), dtype=float)
        wp.tile_store(out, wp.static(solve)(t, u))

    return template


def test_kernels_of_a_factory(lanes):
    a = RNG.standard_normal((4, 4)).astype(np.float32)
    a, b = a @ a.T + 4 * np.eye(4, dtype=np.float32), np.ones(4, np.float32)
    for solve, shift in ((solve_small, False), (solve_none, False), (solve_small, True), (solve_none, True)):
        out = wp.zeros(4)
        inputs = [wp.array(a), wp.array(b), out]
        wp.launch_tiled(factory(solve, N, shift), dim=[1], inputs=inputs, block_dim=lanes)
        given = b + shift
        expected = np.linalg.solve(a, given) if solve is solve_small else given
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)


def test_static_conditions_compile_one_arm(lanes):
    def kernel_for(flat):
        @wp.kernel
        def load(a: wp.array2d[float], out: wp.array[float]):
            if wp.static(flat):
                t = wp.tile_load(a[0], shape=4)
            else:
                t = wp.tile_load(a, shape=(2, 4))
            wp.tile_store(out, wp.tile_sum(t))

        return load

    a = RNG.integers(-9, 9, (2, 4)).astype(np.float32)
    for flat, expected in ((True, a[0].sum()), (False, a.sum())):
        out = wp.zeros(1)
        wp.launch_tiled(kernel_for(flat), dim=[1], inputs=[wp.array(a), out], block_dim=lanes)
        assert out.numpy()[0] == expected


def test_lanes_that_have_left_do_not_count(blocks):
    @wp.kernel
    def leave(out: wp.array2d[float]):
        i, lane = wp.tid()
        if lane >= 5:
            return
        out[i, lane] = wp.tile_sum(wp.tile(float(lane + 1)))[0]

    out = wp.zeros((2, 8))
    wp.launch_tiled(leave, dim=[2], inputs=[out], block_dim=8)
    np.testing.assert_array_equal(out.numpy(), [[15.0] * 5 + [0.0] * 3] * 2)


def test_code_of_lanes_beside_operations_of_blocks(lanes):
    @wp.kernel
    def mix(a: wp.array2d[float], n: int, out: wp.array[float], each: wp.array2d[float]):
        i, lane = wp.tid()
        p = float(0.0)
        for j in range(lane, n, wp.block_dim()):
            if a[i, j] > 0.0:
                p += a[i, j]
            else:
                wp.atomic_add(each, i, j, 1.0)
        s = wp.tile_sum(wp.tile(p))[0]
        q = float(0.0)
        for j in range(lane, n, wp.block_dim()):
            q += wp.abs(a[i, j] - s)
        r = wp.tile_max(wp.tile(q))[0] + wp.tile_sum(wp.tile(q))[0] - wp.tile_max(wp.tile(q))[0]
        if lane == 0:
            out[i] = s + r

    a = RNG.integers(-9, 9, (4, 100)).astype(np.float32)
    out, each = wp.zeros(4), wp.zeros((4, 100))
    wp.launch_tiled(mix, dim=[4], inputs=[wp.array(a), 100, out, each], block_dim=lanes)
    s = np.where(a > 0, a, 0).sum(axis=1)
    np.testing.assert_array_equal(out.numpy(), s + np.abs(a - s[:, None]).sum(axis=1))
    np.testing.assert_array_equal(each.numpy(), a <= 0)


def test_tiles_are_printed_once_a_block(lanes, capfd):
    @wp.kernel
    def show():
        t = wp.tile_arange(4, dtype=int)
        print(wp.tile_reshape(t, (2, 2)))
        print(wp.tile_ones(shape=2, dtype=float, storage="shared"))

    wp.launch_tiled(show, dim=[1], inputs=[], block_dim=lanes)
    wp.synchronize()
    found = capfd.readouterr().out.translate(str.maketrans("", "", " ,\n")).replace("1.0", "1")
    assert found.count("[[01][23]]=tile(shape=(22)storage=") == 1
    assert found.count("[11]=tile(shape=(2)storage=shared)") == 1
    assert found.count("tile(") == 2

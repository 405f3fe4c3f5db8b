"""Blocks of many lanes on the CPU: values of lanes across operations of the block, masks, loops, memory, gradients."""

import numpy as np
import pytest
import warp as wp
import warp.config

RNG = np.random.default_rng(23)


@pytest.fixture(autouse=True)
def many_lanes(blocks):
    if not wp.get_device().is_cpu:
        pytest.skip("is about the CPU")


@wp.struct
class Pair:
    a: float
    place: wp.vec2


@wp.func
def on_both(x: float, lane: int):
    s = wp.tile_sum(wp.tile(x))[0]
    return s * float(lane), x - s


@wp.kernel
def across(a: wp.array2d[float], out: wp.array3d[float]):
    i, lane = wp.tid()
    x = a[i, lane]
    v = wp.vec3(x, 2.0 * x, float(lane))
    p = Pair()
    p.a = x * x
    p.place = wp.vec2(x, 1.0)
    row = a[i]
    first, second = on_both(x, lane)
    m = wp.tile_max(wp.tile(first))[0]
    out[i, lane, 0] = v[0] + v[1] + v[2]
    out[i, lane, 1] = p.a + p.place[0] + p.place[1]
    out[i, lane, 2] = second + m
    out[i, lane, 3] = row[wp.block_dim() - 1 - lane]
    columns = wp.tile_sum(wp.tile(v), axis=1)
    out[i, lane, 4] = columns[2] + wp.untile(wp.tile(x) * 3.0)


@pytest.mark.parametrize("n", [2, 5, 16, 17, 64])
def test_values_of_lanes_last_beyond_operations_of_the_block(n):
    a = RNG.integers(-9, 9, (3, n)).astype(np.float32)
    out = wp.zeros((3, n, 5))
    wp.launch_tiled(across, dim=[3], inputs=[wp.array(a), out], block_dim=n)
    lane, s = np.arange(n), a.sum(axis=1, keepdims=True)
    expected = np.empty((3, n, 5))
    expected[..., 0] = 3 * a + lane
    expected[..., 1] = a * a + a + 1
    expected[..., 2] = a - s + (s * lane).max(axis=1, keepdims=True)
    expected[..., 3] = a[:, ::-1]
    expected[..., 4] = lane.sum() + 3 * a
    np.testing.assert_array_equal(out.numpy(), expected)


@wp.kernel
def leave_one_by_one(left_at: wp.array[int], sums: wp.array2d[float], most: wp.array2d[int], where: wp.array2d[int]):
    lane = wp.tid()
    for k in range(6):
        if left_at[lane] == k:
            return
        sums[k, lane] = wp.tile_sum(wp.tile(float(lane + k)))[0]
        t = wp.tile(-lane - 1)
        most[k, lane] = wp.tile_max(t)[0]
        where[k, lane] = wp.tile_argmax(t)[0]


def test_lanes_leave_a_loop_one_by_one():
    left_at = np.array([0, 3, 9, 1, 9, 2, 9, 3])
    sums = wp.full((6, 8), -1.0, dtype=float)
    most, where = wp.zeros((6, 8), dtype=int), wp.full((6, 8), -1, dtype=int)
    inputs = [wp.array(left_at, dtype=int), sums, most, where]
    wp.launch(leave_one_by_one, dim=8, inputs=inputs, block_dim=8)
    lane = np.arange(8)
    for k in range(6):
        there = left_at > k
        expected = np.where(there, (lane + k)[there].sum(), -1)
        np.testing.assert_array_equal(sums.numpy()[k], expected)
        first = lane[there].min()
        np.testing.assert_array_equal(most.numpy()[k], np.where(there, -first - 1, 0))
        np.testing.assert_array_equal(where.numpy()[k], np.where(there, first, -1))


@wp.kernel
def rounds(n: wp.array[int], out: wp.array[float], counts: wp.array[int]):
    lane = wp.tid()
    total = float(0.0)
    for k in range(n[lane]):
        total += wp.tile_sum(wp.tile(float(lane * (k + 1))))[0]
    j = int(0)
    while j * j < n[lane]:
        j += 1
        if j > 2:
            continue
        total += 0.5 * wp.tile_sum(wp.tile(1.0))[0]
    out[lane] = total
    counts[lane] = j


def test_lanes_with_different_numbers_of_turns():
    n = np.array([3, 0, 7, 1, 5, 5, 2, 0])
    out, counts = wp.zeros(8), wp.zeros(8, dtype=int)
    wp.launch(rounds, dim=8, inputs=[wp.array(n, dtype=int), out, counts], block_dim=8)
    lane, expected = np.arange(8), np.zeros(8)
    for k in range(n.max()):
        expected[n > k] += (lane * (k + 1))[n > k].sum()
    turns = np.ceil(np.sqrt(n)).astype(int)
    for j in range(min(turns.max(), 2)):
        expected[turns > j] += 0.5 * (turns > j).sum()
    np.testing.assert_array_equal(counts.numpy(), turns)
    np.testing.assert_array_equal(out.numpy(), expected)


@wp.kernel
def own_memory(out: wp.array2d[float]):
    i, lane = wp.tid()
    a = wp.zeros(shape=4, dtype=float)
    for k in range(4):
        a[k] = float(lane * k)
    s = wp.tile_sum(wp.tile(a[1]))[0]
    a[2] += s
    wp.tile_sum(wp.tile(a[2]))
    out[i, lane] = a[2] + a[3]


def test_each_lane_has_arrays_of_its_own():
    out = wp.zeros((2, 8))
    wp.launch_tiled(own_memory, dim=[2], inputs=[out], block_dim=8)
    np.testing.assert_array_equal(out.numpy(), [5 * np.arange(8) + 28] * 2)


@wp.kernel
def elements(out: wp.array2d[float]):
    i, lane = wp.tid()
    t = wp.tile_zeros(shape=16, dtype=float)
    t[1] = t[1] + 1.0
    t[2] += 1.0
    t[3 + lane % 2] += float(lane)
    t[5] -= 2.0
    t[6 + lane % 3] = float(lane)
    v = wp.tile_zeros(shape=2, dtype=wp.vec3)
    v[1][lane % 3] += 1.0
    v[0][2] += 1.0
    wp.tile_store(out[i], t)
    if lane == 0:
        for c in range(3):
            out[i, 10 + c] = v[1][c]
        out[i, 13] = v[0][2]


def test_writes_of_elements_count_lanes_or_happen_once():
    out = wp.zeros((2, 16))
    wp.launch_tiled(elements, dim=[2], inputs=[out], block_dim=8)
    expected = np.zeros(16)
    expected[1:6] = [1, 8, 0 + 2 + 4 + 6, 1 + 3 + 5 + 7, -16]
    expected[6:9] = [6, 7, 5]
    expected[10:14] = [3, 3, 2, 8]
    np.testing.assert_array_equal(out.numpy(), [expected] * 2)


@wp.kernel
def grid_sums(out: wp.array3d[float]):
    i, j, k = wp.tid()
    t = wp.tile(float(100 * i + 10 * j + k))
    out[i, j, k] = wp.tile_sum(t)[0] + 10000.0 * wp.tile_min(t)[0]


@pytest.mark.parametrize("lanes", [2, 7, 24, 64])
def test_blocks_go_across_the_rows_of_a_launch(lanes):
    out = wp.zeros((2, 4, 3))
    wp.launch(grid_sums, dim=(2, 4, 3), inputs=[out], block_dim=lanes)
    i, j, k = np.indices((2, 4, 3)).reshape(3, -1)
    values = (100 * i + 10 * j + k).astype(float)
    expected = [b.sum() + 10000 * b.min() for b in np.split(values, range(lanes, 24, lanes)) for _ in b]
    np.testing.assert_array_equal(out.numpy().ravel(), expected)


@wp.kernel
def without_tiles(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = 2.0 * a[i]


def test_kernels_without_tiles_are_launched_as_always():
    a = RNG.standard_normal(1000).astype(np.float32)
    out = wp.zeros(1000)
    wp.launch(without_tiles, dim=1000, inputs=[wp.array(a), out], block_dim=64)
    np.testing.assert_array_equal(out.numpy(), 2 * a)


@wp.kernel
def normalized(a: wp.array2d[float], w: wp.array[float], out: wp.array2d[float]):
    i, lane = wp.tid()
    x = a[i, lane] * w[lane]
    y = x * x + 1.0
    s = wp.tile_sum(wp.tile(y))[0]
    n = float(0.0)
    for k in range(3):
        n += wp.tile_sum(wp.tile(y * float(k + 1)) * wp.tile(x))[0]
    if lane < 5:
        out[i, lane] = y / s + n * x


def test_gradients_of_values_of_lanes():
    a, w = RNG.uniform(0.5, 2.0, (3, 8)), RNG.uniform(0.5, 2.0, 8)
    seed = RNG.standard_normal((3, 8)).astype(np.float32)

    def loss(a, w):
        x = a * w
        y = x * x + 1
        s, n = y.sum(axis=1, keepdims=True), 6 * (y * x).sum(axis=1, keepdims=True)
        return ((y / s + n * x) * seed)[:, :5].sum()

    def differences(f, at):
        gradient = np.empty_like(at)
        for index in np.ndindex(at.shape):
            values = []
            for step in (1e-6, -1e-6):
                moved = at.copy()
                moved[index] += step
                values.append(f(moved))
            gradient[index] = (values[0] - values[1]) / 2e-6
        return gradient

    arrays = [wp.array(x, dtype=float, requires_grad=True) for x in (a, w)]
    out = wp.zeros((3, 8), requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(normalized, dim=[3], inputs=[*arrays, out], block_dim=8)
    tape.backward(grads={out: wp.array(seed)})
    np.testing.assert_allclose(arrays[0].grad.numpy(), differences(lambda x: loss(x, w), a), rtol=2e-4, atol=2e-3)
    np.testing.assert_allclose(arrays[1].grad.numpy(), differences(lambda x: loss(a, x), w), rtol=2e-4, atol=2e-3)


@wp.kernel
def shared_by_those_that_stay(a: wp.array[float], n: wp.array[int], out: wp.array[float]):
    lane = wp.tid()
    x = a[lane]
    t = wp.tile_zeros(shape=4, dtype=float)
    t[lane % 4] += x * x
    wp.tile_scatter_add(t, lane % 2, x, lane < 6)
    if n[lane] == 0:
        return
    y = float(1.0)
    for k in range(n[lane]):
        y += x * wp.tile_sum(wp.tile(y * x))[0]
    t[lane % 4] = y * t[(lane + 1) % 4]
    m = wp.tile_max(wp.tile(y))[0]
    out[lane] = t[lane % 4] * wp.untile(wp.tile(y) * wp.tile(x)) + m


def test_gradients_of_lanes_that_leave_and_wait():
    a, n = RNG.uniform(0.2, 0.7, 8), np.array([1, 0, 3, 2, 0, 2, 1, 3])
    seed = RNG.standard_normal(8).astype(np.float32)

    def run(a):
        t, lane = np.zeros(4), np.arange(8)
        for i in lane:
            t[i % 4] += a[i] ** 2
        for i in range(6):
            t[i % 2] += a[i]
        y = np.ones(8)
        for k in range(3):
            there = n > k
            y[there] += a[there] * (y * a)[there].sum()
        values = y * t[(lane + 1) % 4]
        m, out = y[n > 0].max(), np.zeros(8)
        for i in lane[n > 0]:
            t[i % 4] = values[i]
        for i in lane[n > 0]:
            out[i] = t[i % 4] * y[i] * a[i] + m
        return out

    array, out = wp.array(a, dtype=float, requires_grad=True), wp.zeros(8, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(shared_by_those_that_stay, dim=8, inputs=[array, wp.array(n, dtype=int), out], block_dim=8)
    np.testing.assert_allclose(out.numpy(), run(a), rtol=1e-5)
    tape.backward(grads={out: wp.array(seed)})
    expected = [(run(a + e) - run(a - e)) @ seed / 2e-6 for e in 1e-6 * np.eye(8)]
    np.testing.assert_allclose(array.grad.numpy(), expected, rtol=1e-3, atol=1e-3)


@wp.kernel
def divergent(out: wp.array[float]):
    lane = wp.tid()
    s = float(0.0)
    if lane < 3:
        s = wp.tile_sum(wp.tile(1.0))[0]
    out[lane] = s
    wp.tile_sum(wp.tile(s))
    out[lane] += 1.0


def test_debug_mode_names_an_operation_that_not_all_lanes_reach(monkeypatch):
    out = wp.zeros(8)
    wp.launch(divergent, dim=8, inputs=[out], block_dim=8)
    np.testing.assert_array_equal(out.numpy(), [4.0] * 3 + [1.0] * 5)
    monkeypatch.setattr(wp.config, "mode", "debug")
    with pytest.raises(RuntimeError, match="lanes of a block disagree"):
        wp.launch(divergent, dim=8, inputs=[out], block_dim=8)


@wp.kernel
def both_arms(out: wp.array[float]):
    lane = wp.tid()
    t = wp.tile_zeros(shape=4, dtype=float)
    if lane < 3:
        t[lane % 2] += 1.0
    else:
        t[1] += 2.0
        t[2] = 5.0
    wp.tile_store(out, t)


def test_both_arms_of_a_branch_change_a_tile():
    out = wp.zeros(4)
    wp.launch(both_arms, dim=8, inputs=[out], block_dim=8)
    assert out.numpy().tolist() == [2, 11, 5, 0]


@wp.kernel
def bound_anew(out: wp.array[float]):
    lane = wp.tid()
    t = wp.tile_zeros(shape=4, dtype=float)
    if lane < 3:
        t = t + wp.tile_ones(shape=4, dtype=float)
    else:
        t = t * 2.0
    wp.tile_store(out, t)


def test_a_name_that_both_arms_bind_to_another_tile_is_an_error():
    with pytest.raises(wp.CompileError, match="both arms of a branch"):
        wp.launch(bound_anew, dim=8, inputs=[wp.zeros(4)], block_dim=8)


def test_commands_and_adjoints_of_launches_of_threads():
    @wp.kernel
    def squares(a: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = wp.tile_sum(wp.tile(a[i]))[0] * a[i]

    a = RNG.integers(1, 9, 10).astype(np.float32)
    sums = np.array([a[:4].sum()] * 4 + [a[4:8].sum()] * 4 + [a[8:].sum()] * 2)
    out = wp.zeros(10)
    command = wp.launch(squares, dim=10, inputs=[wp.array(a), out], block_dim=4, record_cmd=True)
    assert not out.numpy().any()
    command.launch()
    np.testing.assert_array_equal(out.numpy(), sums * a)
    a_grad, seed = wp.zeros(10), wp.array(np.ones(10, np.float32))
    inputs = {"inputs": [wp.array(a), out], "adj_inputs": [a_grad, seed]}
    wp.launch(squares, dim=10, adjoint=True, block_dim=4, **inputs)
    np.testing.assert_array_equal(a_grad.numpy(), 2 * sums)

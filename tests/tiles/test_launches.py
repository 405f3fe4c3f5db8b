"""launch_tiled: grids of blocks, coordinates, numbers of lanes, recorded commands, graphs, bad arguments."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.own_launches("counts launches and records them")


@wp.kernel
def where_am_i(out: wp.array2d[int]):
    i, j, k, lane = wp.tid()
    n = wp.tile_sum(wp.tile(1))[0]
    if lane == 0:
        at = (i * 3 + j) * 2 + k
        out[at, 0] = i
        out[at, 1] = j
        out[at, 2] = k
        out[at, 3] = wp.block_dim()
        out[at, 4] = n


@pytest.mark.parametrize("dim", [(2, 3, 2), [2, 3, 2]], ids=["tuple", "list"])
def test_a_block_has_coordinates_and_lanes(dim, lanes):
    out = wp.full((12, 5), -1, dtype=int)
    wp.launch_tiled(where_am_i, dim=dim, inputs=[out], block_dim=lanes)
    expected = [[i, j, k, lanes, lanes] for i in range(2) for j in range(3) for k in range(2)]
    assert out.numpy().tolist() == expected


def test_fewer_and_more_names_than_coordinates(lanes):
    @wp.kernel
    def fewer(out: wp.array[int]):
        i = wp.tid()
        wp.atomic_add(out, i, 1)

    @wp.kernel
    def more(out: wp.array2d[int]):
        i, lane, a, b = wp.tid()
        wp.atomic_add(out, i, 0, 1)
        wp.atomic_add(out, i, 1, lane)
        wp.atomic_add(out, i, 2, a + b)

    out, sums = wp.zeros(3, dtype=int), wp.zeros((5, 3), dtype=int)
    wp.launch_tiled(fewer, dim=(3, 4), inputs=[out], block_dim=lanes)
    wp.launch_tiled(more, dim=5, inputs=[sums], block_dim=lanes)
    assert out.numpy().tolist() == [4 * lanes] * 3
    assert sums.numpy().tolist() == [[lanes, lanes * (lanes - 1) // 2, 0]] * 5


def test_a_plain_launch_has_blocks_of_consecutive_threads(blocks):
    @wp.kernel
    def sums(out: wp.array2d[int]):
        i, j = wp.tid()
        out[i, j] = wp.tile_sum(wp.tile(10 * i + j))[0]

    out = wp.zeros((2, 4), dtype=int)
    wp.launch(sums, dim=(2, 4), inputs=[out], block_dim=8)
    assert out.numpy().tolist() == [[0 + 1 + 2 + 3 + 10 + 11 + 12 + 13] * 4] * 2
    wp.launch(sums, dim=(2, 4), inputs=[out], block_dim=4)
    assert out.numpy().tolist() == [[6] * 4, [46] * 4]
    wp.launch(sums, dim=(2, 4), inputs=[out], block_dim=2)
    assert out.numpy().tolist() == [[1, 1, 5, 5], [21, 21, 25, 25]]


def test_an_incomplete_last_block(blocks):
    @wp.kernel
    def sums(a: wp.array[float], out: wp.array[float], loads: wp.array[float]):
        i = wp.tid()
        out[i] = wp.tile_sum(wp.tile(float(i)))[0]
        loads[i] = wp.tile_sum(wp.tile_load(a, shape=16))[0]

    out, loads = wp.zeros(10), wp.zeros(10)
    wp.launch(sums, dim=10, inputs=[wp.array(np.ones(16, np.float32)), out, loads], block_dim=8)
    assert out.numpy().tolist() == [28.0] * 8 + [17.0] * 2
    assert loads.numpy().tolist() == [16.0] * 10


@pytest.mark.parametrize("block_dim", [1, 2, 3, 31, 32, 33, 100, 256, 1024])
def test_any_number_of_lanes(block_dim, blocks):
    @wp.kernel
    def count(a: wp.array[float], out: wp.array2d[float]):
        i, lane = wp.tid()
        s = wp.tile_sum(wp.tile(float(lane)))
        t = wp.tile_sum(wp.tile_load(a, shape=300))
        m = wp.tile_max(wp.tile(lane * 7 % 11))
        if lane == 0:
            out[i, 0] = float(wp.block_dim())
            out[i, 1] = s[0]
            out[i, 2] = t[0]
            out[i, 3] = float(m[0])

    a = np.arange(300, dtype=np.float32)
    out = wp.zeros((2, 4))
    wp.launch_tiled(count, dim=[2], inputs=[wp.array(a), out], block_dim=block_dim)
    lane = np.arange(block_dim)
    expected = [block_dim, lane.sum(), a.sum(), (lane * 7 % 11).max()]
    assert out.numpy().tolist() == [expected] * 2


@wp.kernel
def lanes_of(out: wp.array2d[int]):
    i, lane = wp.tid()
    wp.atomic_add(out, i, 0, 1)
    wp.atomic_max(out, i, 1, wp.block_dim())
    wp.atomic_max(out, i, 2, lane)


def lanes_there(block_dim):
    out = wp.zeros((2, 3), dtype=int)
    wp.launch_tiled(lanes_of, dim=[2], inputs=[out], block_dim=block_dim)
    assert out.numpy()[0].tolist() == out.numpy()[1].tolist()
    return out.numpy()[0].tolist()


@pytest.mark.parametrize("block_dim", [64, 32, 1])
def test_a_block_of_the_cpu_has_one_lane_by_default(block_dim):
    if not wp.get_device().is_cpu:
        pytest.skip("is about the CPU")
    assert lanes_there(block_dim) == [1, 1, 0]


@pytest.mark.parametrize("block_dim", [None, 0, -3])
def test_the_default_number_of_lanes_is_one(block_dim):
    assert lanes_there(block_dim) == [1, 1, 0]


def test_a_number_of_lanes_may_be_a_float():
    assert lanes_there(8.0) == lanes_there(8)


def test_many_lanes_may_be_a_float(blocks):
    assert lanes_there(8.0) == [8, 8, 7]


@pytest.mark.parametrize("block_dim", [1025, 2048])
def test_more_than_1024_lanes_are_an_error(block_dim):
    with pytest.raises(ValueError, match="1024"):
        lanes_there(block_dim)


def test_dim_and_block_dim_must_be_named():
    out = wp.zeros((2, 3), dtype=int)
    with pytest.raises(RuntimeError, match="dim"):
        wp.launch_tiled(lanes_of, inputs=[out], block_dim=32)
    with pytest.raises(RuntimeError, match="block_dim"):
        wp.launch_tiled(lanes_of, dim=[2], inputs=[out])
    with pytest.raises(RuntimeError):
        wp.launch_tiled(lanes_of, dim=(1, 1, 1, 2), inputs=[out], block_dim=32)
    assert not out.numpy().any()
    wp.launch_tiled(kernel=lanes_of, dim=2, inputs=[out], block_dim=1)
    assert out.numpy().tolist() == [[1, 1, 0]] * 2


@pytest.mark.parametrize("dim", [0, [0], (3, 0)], ids=str)
def test_an_empty_grid_runs_nothing(dim, lanes):
    out = wp.zeros((2, 3), dtype=int)
    wp.launch_tiled(lanes_of, dim=dim, inputs=[out], block_dim=lanes)
    assert not out.numpy().any()


@wp.kernel
def scale(a: wp.array2d[float], factor: float, out: wp.array2d[float]):
    i = wp.tid()
    wp.tile_store(out[i], wp.tile_load(a[i], shape=10) * factor)


A = np.random.default_rng(17).integers(-9, 9, (3, 10)).astype(np.float32)


def test_inputs_and_outputs(lanes):
    out = wp.zeros((3, 10))
    wp.launch_tiled(scale, dim=[3], inputs=[wp.array(A), 2.0], outputs=[out], block_dim=lanes, device=out.device)
    np.testing.assert_array_equal(out.numpy(), 2 * A)


def test_recorded_commands(lanes):
    out = wp.zeros((3, 10))
    inputs = [wp.array(A), 2.0, out]
    command = wp.launch_tiled(scale, dim=[3], inputs=inputs, block_dim=lanes, record_cmd=True)
    assert not out.numpy().any()
    command.launch()
    np.testing.assert_array_equal(out.numpy(), 2 * A)
    command.set_param_by_name("factor", 3.0)
    command.launch()
    np.testing.assert_array_equal(out.numpy(), 3 * A)


def test_captured_launches(lanes):
    a, out = wp.array(A), wp.zeros((3, 10))
    wp.launch_tiled(scale, dim=[3], inputs=[a, 1.0, out], block_dim=lanes)  # code must be there before a capture
    with wp.ScopedCapture() as capture:
        wp.launch_tiled(scale, dim=[3], inputs=[a, 2.0, out], block_dim=lanes)
        wp.launch_tiled(scale, dim=[3], inputs=[out, 3.0, a], block_dim=lanes)
    for _ in range(2):
        wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(a.numpy(), 36 * A)


def test_a_limit_of_blocks_at_a_time(lanes):
    out = wp.zeros((3, 10))
    wp.launch_tiled(scale, dim=[3], inputs=[wp.array(A), 2.0, out], block_dim=lanes, max_blocks=1)
    np.testing.assert_array_equal(out.numpy(), 2 * A)


def test_launches_that_a_tape_does_not_record(lanes):
    a = wp.array(A, requires_grad=True)
    out = wp.zeros((3, 10), requires_grad=True)
    for recorded, factor in ((True, 2.0), (False, 0.0)):
        with wp.Tape() as tape:
            wp.launch_tiled(scale, dim=[3], inputs=[a, 2.0, out], block_dim=lanes, record_tape=recorded)
        tape.backward(grads={out: wp.array(np.ones((3, 10), np.float32))})
        np.testing.assert_array_equal(a.grad.numpy(), np.full((3, 10), factor))
        tape.zero()


def test_an_adjoint_launch(lanes):
    a, out = wp.array(A), wp.zeros((3, 10))
    a_grad, seed = wp.zeros((3, 10)), wp.array(A)
    wp.launch_tiled(
        scale, dim=[3], inputs=[a, 2.0, out], adj_inputs=[a_grad, None, seed], adjoint=True, block_dim=lanes
    )
    np.testing.assert_array_equal(a_grad.numpy(), 2 * A)


def test_options_that_change_no_values(lanes, monkeypatch):
    for name in ("enable_tiles_in_stack_memory", "enable_mathdx_gemm", "enable_mathdx_solver", "enable_mathdx_fft"):
        assert getattr(wp.config, name) is True
        monkeypatch.setattr(wp.config, name, False)

    @wp.kernel(module_options={"block_dim": 16}, module="unique")
    def square(a: wp.array2d[float], out: wp.array2d[float]):
        t = wp.tile_load(a, shape=(3, 3), storage="shared")
        wp.tile_store(out, wp.tile_matmul(t, t))

    out = wp.zeros((3, 3))
    wp.launch_tiled(square, dim=[1], inputs=[wp.array(A), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), A[:, :3] @ A[:, :3])


def test_launch_bounds_change_no_values(lanes):
    @wp.kernel(launch_bounds=128)
    def bounded(a: wp.array2d[float], out: wp.array[float]):
        i, lane = wp.tid()
        s = wp.tile_sum(wp.tile_load(a[i], shape=10))
        if lane == 0:
            out[i] = s[0]

    out = wp.zeros(3)
    wp.launch_tiled(bounded, dim=[3], inputs=[wp.array(A), out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), A.sum(axis=1))


def test_many_lanes_are_an_option_of_the_cpu():
    assert wp.config.enable_cpu_blocks is False
    assert wp.get_device("cpu").max_shared_memory_per_block == 0


def test_the_order_of_stores_of_one_block(lanes):
    @wp.kernel
    def twice(out: wp.array2d[float]):
        i = wp.tid()
        wp.tile_store(out[i], wp.tile_full(shape=70, value=1.0))
        wp.tile_store(out[i], wp.tile_full(shape=50, value=2.0))
        wp.tile_store(out[i], wp.tile_full(shape=3, value=3.0), offset=10)

    out = wp.zeros((4, 70))
    wp.launch_tiled(twice, dim=[4], inputs=[out], block_dim=lanes)
    expected = np.ones(70)
    expected[:50] = 2.0
    expected[10:13] = 3.0
    np.testing.assert_array_equal(out.numpy(), np.tile(expected, (4, 1)))


# Annotations.


def test_the_class_of_annotations():
    t = wp.tile[float, 4]
    assert t.dtype is wp.float32 and tuple(t.shape) == (4,)
    u = wp.tile[float, 2, 3]
    assert tuple(u.shape) == (2, 3) and tuple(wp.tile[float, (2, 3)].shape) == (2, 3)
    v = wp.tile(dtype=float, shape=(4,))
    assert v.dtype is wp.float32 and tuple(v.shape) == (4,)
    assert wp.types.is_tile(t) and wp.types.is_tile(v) and not wp.types.is_tile(wp.array(dtype=float))
    for name in ("dtype", "shape", "storage", "layout", "strides", "size", "owner"):
        assert hasattr(t, name), name
    assert t.size == 4 and u.size == 6
    assert wp.types.type_repr(t) == "tile(shape=(4,), dtype=float32)"

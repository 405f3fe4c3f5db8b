"""wp.launch_tiled: a launch of blocks, each of one lane."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


@wp.kernel
def rows(x: wp.array2d[float], seen: wp.array2d[int], out: wp.array[float]):
    """Sums of rows by strided lanes, as tiled programs are written."""
    i, lane = wp.tid()
    total = float(0.0)
    for j in range(lane, x.shape[1], wp.block_dim()):
        total += x[i, j]
    wp.atomic_add(out, i, total)
    wp.atomic_add(seen, i, lane, 1)


@wp.kernel
def count(seen: wp.array3d[int], last: wp.array[int]):
    i, j, k, lane = wp.tid()
    wp.atomic_add(seen, i, j, k, 1)
    wp.atomic_max(last, 0, 1000 * lane + wp.block_dim())


@wp.kernel
def square(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] * x[i]


def arrays(device):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    return (wp.array(x, device=device), wp.zeros((4, 2), dtype=int, device=device), wp.zeros(4, device=device)), x


@pytest.mark.parametrize("block_dim", [1, 2, 64, 1024, None, 0, -3, 8.5, np.int32(8), True])
def test_a_block_runs_once_whatever_block_dim_says(device, block_dim):
    (x, seen, out), values = arrays(device)
    assert wp.launch_tiled(rows, dim=4, inputs=[x, seen], outputs=[out], block_dim=block_dim, device=device) is None
    np.testing.assert_array_equal(out.numpy(), values.sum(1))
    np.testing.assert_array_equal(seen.numpy(), [[1, 0]] * 4)


@pytest.mark.parametrize("dim", [5, (5,), [5], np.int64(5), (2, 3), [2, 3], (2, 3, 2), (1, 1, 1), 1])
def test_blocks_are_the_leading_coordinates(device, dim):
    shape = (*dim, 1, 1)[:3] if isinstance(dim, (tuple, list)) else (int(dim), 1, 1)
    seen, last = wp.zeros(shape, dtype=int, device=device), wp.zeros(1, dtype=int, device=device)
    wp.launch_tiled(kernel=count, dim=dim, inputs=[seen, last], block_dim=32, device=device)
    assert (seen.numpy() == 1).all() and last.list() == [1]


@pytest.mark.parametrize("dim", [0, (0,), (3, 0), (0, 2, 2)])
def test_no_blocks_run_nothing(device, dim):
    (x, seen, out), _ = arrays(device)
    wp.launch_tiled(rows, dim=dim, inputs=[x, seen, out], block_dim=64, device=device)
    assert not seen.numpy().any()


def test_a_recorded_command(device):
    (x, seen, out), values = arrays(device)
    command = wp.launch_tiled(rows, dim=4, inputs=[x, seen, out], block_dim=64, device=device, record_cmd=True)
    assert isinstance(command, wp.Launch) and command.bounds.shape == (4, 1) and not seen.numpy().any()
    command.launch()
    np.testing.assert_array_equal(out.numpy(), values.sum(1))
    command.set_dim(2)
    command.launch()
    np.testing.assert_array_equal(seen.numpy()[:, 0], [2, 2, 1, 1])


def test_a_capture(device):
    (x, seen, out), values = arrays(device)
    with wp.ScopedCapture(device=device) as capture:
        wp.launch_tiled(rows, dim=4, inputs=[x, seen], outputs=[out], block_dim=64, device=device)
    for times in (1, 2):
        wp.capture_launch(capture.graph)
        np.testing.assert_array_equal(out.numpy(), times * values.sum(1))


def test_a_tape_records_it_unless_told_otherwise(device):
    for recorded in (True, False):
        x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True, device=device)
        y = wp.zeros(3, requires_grad=True, device=device)
        with wp.Tape() as tape:
            wp.launch_tiled(square, dim=3, inputs=[x], outputs=[y], block_dim=8, record_tape=recorded, device=device)
        tape.backward(grads={y: wp.ones(3, device=device)})
        assert y.list() == [1.0, 4.0, 9.0] and x.grad.list() == ([2.0, 4.0, 6.0] if recorded else [0.0] * 3)


def test_the_adjoint_alone(device):
    x, y = wp.array([1.0, 2.0], dtype=float, device=device), wp.array([1.0, 4.0], dtype=float, device=device)
    arguments = {"inputs": [x], "outputs": [y], "adj_outputs": [wp.ones(2, device=device)], "device": device}
    for command in (False, True):
        adj_x = wp.zeros(2, device=device)
        made = wp.launch_tiled(
            square, dim=2, block_dim=8, adjoint=True, adj_inputs=[adj_x], record_cmd=command, **arguments
        )
        if command:
            made.launch()
        assert adj_x.list() == [2.0, 4.0]


def test_a_stream_and_max_blocks(device):
    (x, seen, out), values = arrays(device)
    stream = wp.Stream(device)
    for most in (0, None, -1, 2, 1.5):
        out.zero_()
        wp.synchronize_device(device)
        wp.launch_tiled(rows, dim=4, inputs=[x, seen, out], block_dim=8, stream=stream, max_blocks=most)
        wp.synchronize_stream(stream)
        np.testing.assert_array_equal(out.numpy(), values.sum(1))


@pytest.mark.parametrize(
    "arguments, options, error, text",
    [
        ((rows, 4), {"block_dim": 8}, RuntimeError, "launch_tiled(): dim is given by position"),
        ((rows,), {"block_dim": 8}, RuntimeError, "launch_tiled(): dim is missing"),
        ((rows,), {"dim": 4}, RuntimeError, "launch_tiled(): block_dim is missing, expected it by keyword"),
        ((), {"dim": 4, "block_dim": 8}, TypeError, "launch_tiled(): argument 'kernel' is missing"),
        ((print,), {"dim": 4, "block_dim": 8}, TypeError, "launch_tiled(): the kernel is"),
        ((rows,), {"dim": (1, 1, 1, 1), "block_dim": 8}, RuntimeError, "dim has 4 extents, expected 1 to 3: the lanes"),
        (
            (rows,),
            {"dim": 4, "block_dim": 1025},
            ValueError,
            "launch_tiled(): block_dim is 1025, expected an int of at",
        ),
        ((rows,), {"dim": 0, "block_dim": 2048.0}, ValueError, "block_dim is 2048.0, expected an int of at most 1024"),
        ((rows,), {"dim": 4, "block_dim": 10**30}, ValueError, "expected an int of at most 1024"),
        ((rows,), {"dim": 4, "block_dim": "8"}, TypeError, "block_dim is '8', expected an int of at most 1024"),
        ((rows,), {"dim": 4, "block_dim": float("nan")}, TypeError, "block_dim is nan, expected an int"),
        ((rows,), {"dim": 4, "block_dim": 8, "max_blocks": "x"}, TypeError, "max_blocks is 'x', expected an int"),
        ((rows,), {"dim": 2.5, "block_dim": 8}, TypeError, "dim is"),
        ((rows,), {"dim": None, "block_dim": 8}, TypeError, "dim is None"),
        ((rows,), {"dim": -1, "block_dim": 8}, ValueError, "-1"),
        ((rows,), {"dim": 4, "block_dim": 8, "lanes": 3}, TypeError, "lanes"),
    ],
)
def test_errors(arguments, options, error, text):
    (x, seen, out), _ = arrays(None)
    with pytest.raises(error) as caught:
        wp.launch_tiled(*arguments, inputs=[x, seen, out], **options)
    assert isinstance(caught.value, wp.UsageError) and text in str(caught.value)
    assert not seen.numpy().any()


def test_plain_launches_check_their_blocks_too(device):
    x, y = wp.ones(3, device=device), wp.zeros(3, device=device)
    for block_dim in (None, 0, -1, 64.9, 1024):
        wp.launch(square, dim=3, inputs=[x, y], block_dim=block_dim, device=device)
        assert y.list() == [1.0] * 3
    with pytest.raises(ValueError, match=r"launch\(\): block_dim is 2048, expected an int of at most 1024"):
        wp.launch(square, dim=3, inputs=[x, y], block_dim=2048, device=device)
    with pytest.raises(TypeError, match=r"launch\(\): block_dim is \[8\]"):
        wp.launch(square, dim=3, inputs=[x, y], block_dim=[8], device=device)

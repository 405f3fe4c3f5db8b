"""Recorded launches: made empty, filled, changed; those of adjoints."""

import ctypes

import pytest
import warp as wp

pytestmark = pytest.mark.protected


@wp.kernel
def shift(v: wp.vec3, n: int, out: wp.array[wp.vec3]):
    i = wp.tid()
    out[i] = out[i] + v * float(n)


def recorded():
    out = wp.zeros(2, dtype=wp.vec3)
    return wp.launch(shift, dim=2, inputs=[(1.0, 2.0, 3.0), 1, out], record_cmd=True), out


@pytest.mark.host_memory('names the device "cpu"')
def test_what_a_command_shows():
    command, out = recorded()
    assert command.kernel is shift and command.device == "cpu" and (command.max_blocks, command.block_dim) == (0, 1)
    assert command.bounds.shape == (2,) and command.bounds.size == 2 and command.dim == (2,)
    assert command.params[1:] == [(1.0, 2.0, 3.0), 1, out] and command.params[0].size == 2


@pytest.mark.host_memory('names the device "cpu"')
def test_a_command_is_made_empty_and_filled():
    out = wp.zeros(2, dtype=wp.vec3)
    command = wp.Launch(shift, "cpu")
    command.launch()  # no threads
    command.set_dim(2)
    command.set_params([(1.0, 2.0, 3.0), 2, out])
    command.launch()
    command.set_param_by_name("n", 10)
    command.launch()
    assert out.numpy().tolist() == [[12.0, 24.0, 36.0]] * 2
    for wrong in (3, len):
        with pytest.raises(TypeError, match=r"Launch\(\): the kernel is"):
            wp.Launch(wrong)


@pytest.mark.seed("S-LCH-010")
def test_numbers_of_ctypes():
    command, out = recorded()
    command.set_param_at_index_from_ctype(1, ctypes.c_int(3))
    command.launch()
    command.set_param_by_name_from_ctype("n", ctypes.c_int(5))
    command.launch()
    command.set_params_from_ctypes([wp.vec3(1.0, 1.0, 1.0), ctypes.c_int(1), out])
    command.launch()
    assert out.numpy().tolist() == [[9.0, 17.0, 25.0]] * 2


def test_wrong_parameters_of_a_command():
    command, out = recorded()
    for change, kind, message in (
        (lambda: command.set_param_by_name("m", 1), ValueError, "no parameter 'm'; it has v, n or out"),
        (lambda: command.set_param_at_index(9, 1), IndexError, "there is no index 9"),
        (lambda: command.set_param_at_index(0, (1.0, 2.0)), ValueError, "tuple of length 2, expected vec3f"),
        (lambda: command.set_param_at_index(0, None), ValueError, "is None, expected vec3f"),
        (lambda: command.set_param_at_index(0, 1.0), TypeError, "float 1.0, expected vec3f"),
        (lambda: command.set_param_at_index(2, out, adjoint=True), IndexError, "made without gradients"),
    ):
        with pytest.raises(kind, match=message):
            change()
    command.launch()
    assert out.numpy().tolist() == [[1.0, 2.0, 3.0]] * 2


@wp.kernel
def square(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] * x[i]


def test_a_command_of_an_adjoint():
    x, y = wp.array([3.0, 4.0], dtype=float), wp.zeros(2)
    adj_x, adj_y = wp.zeros(2), wp.ones(2)
    command = wp.launch(
        square, dim=2, inputs=[x], outputs=[y], adj_inputs=[adj_x], adj_outputs=[adj_y], adjoint=True, record_cmd=True
    )
    assert isinstance(command, wp.Launch) and adj_x.list() == [0.0, 0.0]
    command.launch()
    assert adj_x.list() == [6.0, 8.0]
    other = wp.zeros(2)
    command.set_param_at_index(0, other, adjoint=True)
    command.set_param_by_name("x", wp.array([5.0, 6.0], dtype=float))
    command.launch()
    assert adj_x.list() == [6.0, 8.0] and other.list() == [10.0, 12.0]
    with pytest.raises(ValueError, match="no parameter 'z'"):
        command.set_param_by_name("z", 1)
    with pytest.raises(IndexError, match="there is no index 2"):
        command.set_param_at_index(2, 1)


@pytest.mark.parametrize("record_cmd", [False, True])
def test_more_gradients_than_arguments_are_an_error_of_an_adjoint_launch(record_cmd):
    x, y = wp.ones(2), wp.zeros(2)
    with pytest.raises(ValueError, match="adj_inputs has 2 entries for 1 arguments"):
        wp.launch(
            square, dim=2, inputs=[x], outputs=[y], adj_inputs=[wp.zeros(2), wp.ones(2)], adjoint=True,
            record_cmd=record_cmd,
        )  # fmt: skip


@wp.kernel
def scale(x: wp.array[float], n: int, y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] * float(n)


@pytest.mark.seed("S-LCH-010")
def test_numbers_of_ctypes_in_a_command_of_an_adjoint():
    x, y, adj_x, adj_y = wp.ones(2), wp.zeros(2), wp.zeros(2), wp.ones(2)
    command = wp.launch(
        scale, dim=2, inputs=[x, 1], outputs=[y], adj_inputs=[adj_x, None], adj_outputs=[adj_y], adjoint=True,
        record_cmd=True,
    )  # fmt: skip
    command.set_param_at_index_from_ctype(1, ctypes.c_int(3))
    command.launch()
    assert adj_x.list() == [3.0, 3.0]
    command.set_param_by_name_from_ctype("n", ctypes.c_int(10))
    command.launch()
    assert adj_x.list() == [13.0, 13.0]
    command.set_params_from_ctypes([x, ctypes.c_int(100), y])
    command.launch()
    assert adj_x.list() == [113.0, 113.0]
    others = wp.zeros(2), wp.zeros(2)
    command.set_param_at_index_from_ctype(0, others[0], adjoint=True)
    command.launch()
    command.set_param_by_name_from_ctype("x", others[1], adjoint=True)
    command.launch()
    assert adj_x.list() == [113.0, 113.0] and others[0].list() == others[1].list() == [100.0, 100.0]


def test_a_launch_of_no_threads_checks_nothing_but_the_count():
    wp.launch(shift, dim=0, inputs=["text", None, 3])
    wp.launch(shift, dim=(3, 0), inputs=["text", None, 3])
    with pytest.raises(RuntimeError, match="takes 3"):
        wp.launch(shift, dim=0, inputs=[1])

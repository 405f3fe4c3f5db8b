"""Gradients that an array without a gradient would end: a warning that names it, or an error."""

import re

import numpy as np
import pytest
import warp as wp
import warp.utils

pytestmark = pytest.mark.protected


class Heard:
    """A logger that keeps warnings."""

    def __init__(self):
        self.warnings = []

    def debug(self, message):
        pass

    info = error = debug

    def warning(self, message, category=None, stacklevel=1):
        self.warnings.append(message)


@pytest.fixture
def heard(monkeypatch):
    """The warnings; those that other tests have caused count as new."""
    from warp._gradients import tape

    monkeypatch.setattr(tape, "_stops_told", set())
    monkeypatch.setattr(tape, "_stops_searched", set())
    with wp.ScopedLogger(Heard()) as logger:
        yield logger.logger.warnings


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def add_up(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])


@wp.struct
class State:
    q: wp.array(dtype=float)


@wp.struct
class Number:
    value: float


@wp.kernel
def into_structs(x: wp.array(dtype=float), states: wp.array(dtype=Number)):
    i = wp.tid()
    states[i].value = 2.0 * x[i]


@wp.kernel
def out_of_structs(states: wp.array(dtype=Number), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = states[i].value


@wp.kernel
def double_into_state(x: wp.array(dtype=float), s: State):
    i = wp.tid()
    s.q[i] = 2.0 * x[i]


@wp.kernel
def count_positive(x: wp.array(dtype=float), flags: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 0.0:
        flags[i] = 1.0


@wp.kernel
def add_flagged(flags: wp.array(dtype=float), x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    if flags[i] > 0.5:
        wp.atomic_add(loss, 0, x[i])


def start():
    return wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True), wp.zeros(1, requires_grad=True)


def test_a_warning_names_the_argument_the_kernels_and_their_lines(heard):
    for _ in range(2):
        x, loss = start()
        y = wp.zeros(3)
        with wp.Tape() as tape:
            wp.launch(double, 3, [x], [y])
            wp.launch(add_up, 3, [y], [loss])
        tape.backward(loss)
        np.testing.assert_array_equal(x.grad.numpy(), np.zeros(3))
    assert len(heard) == 1, heard
    pattern = (
        r"the gradient stops at argument 'y' of kernel 'double' \(.*test_stopped_gradients.py:\d+\), an array of shape "
        r"\(3,\) without a gradient: it is written from arrays that have one, and read by argument 'y' of kernel "
        r"'add_up' \(.*test_stopped_gradients.py:\d+\). help: make it with requires_grad=True"
    )
    assert re.search(pattern, heard[0]), heard[0]


def test_it_is_an_error_where_the_program_asks_for_it(heard, monkeypatch):
    monkeypatch.setattr(wp.config, "verify_autograd_array_access", True)
    x, loss = start()
    y = wp.zeros(3)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(add_up, 3, [y], [loss])
    with pytest.raises(RuntimeError, match="the gradient stops at argument 'y' of kernel 'double'"):
        tape.backward(loss)
    y.requires_grad = True
    tape.backward(loss)
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0, 2.0])
    assert not heard


NUMPY = pytest.mark.host_memory("NumPy arrays in launches of a device of the host")


def through(name):
    """Programs by what the array without a gradient is written by, and what the warning says of it."""
    y = wp.zeros(3)

    def with_copy(x):
        wp.copy(y, x)

    def with_assign(x):
        y.assign(x)

    def into_slice(x):
        y[0:3] = x

    def with_view(x):
        wp.launch(double, 2, [x[1:]], [y[1:]])

    def with_map(x):
        wp.map(wp.sin, x, out=y)

    def with_scan(x):
        warp.utils.array_scan(x, y)

    def with_struct(x):
        state = State()
        state.q = y
        wp.launch(double_into_state, 3, [x, state])

    def with_command(x):
        wp.launch(double, 3, [x], [y], record_cmd=True).launch()

    def with_two_arrays(x):
        between = wp.zeros(3)
        wp.launch(double, 3, [x], [between])
        wp.launch(double, 3, [between], [y])

    def with_product(x):
        square = wp.array(np.eye(3), dtype=float)
        wp.matmul(square, x.reshape((3, 1)), y.reshape((3, 1)), y.reshape((3, 1)))

    def with_new_array(x):
        nonlocal y
        y = wp.array(x)

    def with_numpy_array(x):
        nonlocal y
        y = np.zeros(3, np.float32)
        wp.launch(double, 3, [x], [y])

    def with_elements_of_structs(x):
        states = wp.zeros(3, dtype=Number)
        wp.launch(into_structs, 3, [x], [states])
        wp.launch(out_of_structs, 3, [states], [y_with])

    y_with = wp.zeros(3, requires_grad=True)

    def write(x):
        locals_[name](x)
        return y_with if name == "with_elements_of_structs" else y

    locals_ = dict(locals())
    return write


@pytest.mark.parametrize(
    "name, where",
    [
        ("with_copy", "the destination of a copy"),
        ("with_assign", "the destination of a copy"),
        ("into_slice", "the destination of a copy"),
        ("with_view", "argument 'y' of kernel 'double'"),
        ("with_map", "argument 'y0' of kernel 'map_sin'"),
        ("with_scan", "argument 'out_array' of array_scan"),
        ("with_struct", "argument 's.q' of kernel 'double_into_state'"),
        ("with_command", "argument 'y' of kernel 'double'"),
        ("with_two_arrays", "argument 'y' of kernel 'double'"),
        ("with_product", "argument 'd' of matmul"),
        ("with_new_array", "the destination of a copy"),
        pytest.param("with_numpy_array", "argument 'y' of kernel 'double'", marks=NUMPY),
        ("with_elements_of_structs", "argument 'states' of kernel 'into_structs'"),
    ],
)
def test_whatever_writes_the_array_is_named(heard, name, where):
    write = through(name)
    x, loss = start()
    with wp.Tape() as tape:
        wp.launch(add_up, 3, [write(x)], [loss])
    tape.backward(loss)
    assert len(heard) == 1, heard
    assert f"the gradient stops at {where}" in heard[0], heard[0]


def test_whatever_reads_the_array_is_named(heard):
    x, _ = start()
    y = wp.zeros(3)
    total = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        warp.utils.array_sum(y, out=total)
    tape.backward(total)
    assert len(heard) == 1 and "and read by argument 'values' of array_sum()" in heard[0], heard


def test_without_a_loss_all_gradients_count(heard):
    x, loss = start()
    y = wp.zeros(3)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(add_up, 3, [y], [loss])
    loss.grad.fill_(1.0)
    tape.backward()
    assert len(heard) == 1, heard


def test_what_loses_nothing_is_no_warning(heard):
    x, loss = start()
    shown, constant, y = wp.zeros(3), wp.array([5.0, 6.0, 7.0], dtype=float), wp.zeros(3, requires_grad=True)
    counts, flags, other = wp.zeros(3, dtype=int), wp.zeros(3), wp.zeros(1, requires_grad=True)

    @wp.kernel
    def rounded(x: wp.array(dtype=float), counts: wp.array(dtype=int)):
        i = wp.tid()
        counts[i] = int(x[i])

    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [shown])  # nothing reads it
        wp.launch(add_up, 3, [shown], [other])  # nothing that the loss depends on
        wp.launch(rounded, 3, [x], [counts])  # integers
        wp.launch(count_positive, 3, [x], [flags])  # constants, in branches
        wp.launch(add_flagged, 3, [flags, x, loss])
        wp.launch(double, 3, [x], [y])
        wp.launch(add_up, 3, [y], [loss])
        wp.launch(add_up, 3, [constant], [loss])
        wp.launch(double, 3, [x], [shown])
        shown.fill_(3.0)  # overwritten before it is read
        wp.launch(add_up, 3, [shown], [loss])
        wp.launch(double, 3, [x], [shown])
        wp.launch(double, 3, [constant], [shown])
        wp.launch(add_up, 3, [shown], [loss])
    tape.backward(loss)
    assert not heard, heard
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0, 3.0])


def test_launches_that_are_not_recorded_are_constants(heard):
    x, loss = start()
    y = wp.zeros(3)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y], record_tape=False)
        wp.launch(add_up, 3, [y], [loss])
    tape.backward(loss)
    assert not heard


def test_a_kernel_that_is_left_out_has_its_own_warning_only(heard):
    @wp.kernel(enable_backward=False)
    def double_without(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 2.0 * x[i]

    x, loss = start()
    y = wp.zeros(3)
    with wp.Tape() as tape:
        wp.launch(double_without, 3, [x], [y])
        wp.launch(add_up, 3, [y], [loss])
    tape.backward(loss)
    assert len(heard) == 1 and "is left out, because it has enable_backward=False" in heard[0], heard


def test_a_gradient_of_integers_is_warned_of(heard):
    @wp.struct
    class Counts:
        n: int

    made = wp.zeros(3, dtype=Counts, requires_grad=True)
    assert made.requires_grad
    assert (
        len(heard) == 1 and "an array of Counts is made with requires_grad=True: integers pass no gradient" in heard[0]
    )
    wp.zeros(3, dtype=Counts, requires_grad=True)
    wp.zeros(3, dtype=wp.vec3, requires_grad=True)
    wp.zeros(3, dtype=State, requires_grad=True)
    assert len(heard) == 1


# ---- memory of an array with a gradient, shown by one without ----


def older_view(x):
    base = wp.array([1.0, 2.0, 3.0], dtype=float)
    view = base[:]
    base.requires_grad = True
    return view, base


def older_slice_of_rows(x):
    base = wp.zeros((2, 3), dtype=float)
    view = base[1]
    base.grad = wp.zeros((2, 3), dtype=float)
    return view, base


def shown_without_copy(x):
    return wp.array(x, copy=False), x


def tensor_of_torch(x):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return tensor, tensor


def tensor_of_paddle(x):
    paddle = pytest.importorskip("paddle")
    tensor = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    return tensor, tensor


BESIDE = {
    "an older view": (older_view, "older than the gradient"),
    "an older row": (older_slice_of_rows, "older than the gradient"),
    "wp.array(copy=False)": (shown_without_copy, r"wp.array\(..., copy=False\)"),
    "a tensor of torch": (tensor_of_torch, "which requires a gradient that a wp.Tape does not reach"),
    "a tensor of Paddle": (tensor_of_paddle, "which requires a gradient that a wp.Tape does not reach"),
}
HOSTS = {"a tensor of torch", "a tensor of Paddle"}
BESIDES = [pytest.param(name, marks=NUMPY) if name in HOSTS else name for name in BESIDE]


@pytest.mark.parametrize("name", BESIDES)
def test_a_reader_of_memory_that_has_a_gradient_elsewhere_is_named(heard, monkeypatch, name):
    make, why = BESIDE[name]
    x, loss = start()
    given, kept = make(x)
    y = wp.zeros(3, requires_grad=True)

    def record():
        tape = wp.Tape()
        with tape:
            wp.launch(double, 3, [given], [y])
            wp.launch(add_up, 3, [y], [loss])
        return tape

    record().backward(loss)
    record().backward(loss)
    assert len(heard) == 1, heard
    assert re.search(r"the gradient stops at argument 'x' of kernel 'double' \(.*:\d+\)", heard[0]), heard[0]
    assert re.search(why, heard[0]), heard[0]
    monkeypatch.setattr(wp.config, "verify_autograd_array_access", True)
    with pytest.raises(RuntimeError, match=why):
        record().backward(loss)
    del kept


def test_a_loss_read_through_an_array_without_its_gradient_is_named(heard):
    x, loss = start()
    y = wp.zeros(3, requires_grad=True)
    shown = wp.array(y, copy=False)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(add_up, 3, [shown], [loss])
    tape.backward(loss)
    assert len(heard) == 1 and "the gradient stops at argument 'y' of kernel 'add_up'" in heard[0], heard


def test_what_is_meant_to_be_constant_is_no_warning(heard):
    x, loss = start()
    y = wp.zeros(3, requires_grad=True)
    constant = wp.array(x, copy=False, requires_grad=False)
    view = x[:]
    view.requires_grad = False
    gone = wp.array([1.0, 2.0, 3.0], dtype=float)
    older = gone[:]
    gone.requires_grad = True
    gone.requires_grad = False
    late = wp.array([1.0, 2.0, 3.0], dtype=float)
    newer = late[:]
    late.requires_grad = True
    newer = late[:]
    with wp.Tape() as tape:
        for one in (constant, view, older, wp.clone(older), newer):
            wp.launch(double, 3, [one], [y])
            wp.launch(add_up, 3, [y], [loss])
    tape.backward(loss)
    assert not heard, heard
    np.testing.assert_array_equal(late.grad.numpy(), [2.0, 2.0, 2.0])

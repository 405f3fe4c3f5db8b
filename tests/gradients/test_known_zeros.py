"""Gradients that a backward pass leaves zero are known to be zero and not cleared again, until other code may have
written to them."""

import ctypes

import numpy as np
import pytest
import warp as wp
from tapes import doubles
from warp import _weft

SIZE = 6


@wp.kernel
def scale(x: wp.array[wp.float64], factor: wp.float64, y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = factor * x[i]


@wp.kernel
def add_scaled(x: wp.array[wp.float64], factor: wp.float64, y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = y[i] + factor * x[i]


@wp.kernel
def scale_even(x: wp.array[wp.float64], factor: wp.float64, y: wp.array[wp.float64]):
    i = wp.tid()
    if i % 2 == 0:
        y[i] = factor * x[i]


@wp.kernel
def scatter(x: wp.array[wp.float64], factor: wp.float64, y: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_add(y, i / 2, factor * x[i])


@wp.kernel
def write(to: wp.array[wp.float64]):
    to[wp.tid()] = wp.float64(3.0)


@wp.kernel
def write_gradient(of: wp.array[wp.float64]):
    i = wp.tid()
    of.grad[i] = wp.float64(3.0)


# ---- that they are not cleared ----


def times_cleared(x):
    """How often the gradient was cleared: nothing else here counts as a write to it."""
    return _weft.memory_of(x.grad)[3]


@pytest.mark.own_launches("counts what adjoints clear")
def test_what_an_adjoint_leaves_zero_is_not_cleared(device):
    x, y, z = (doubles(np.ones(SIZE), requires_grad=True, device=device) for _ in range(3))
    for _ in range(2):
        with wp.Tape() as tape:
            wp.launch(scale, SIZE, [x, 2.0, y], device=device)
            wp.launch(scale, SIZE, [y, 2.0, z], device=device)
        tape.backward(grads={z: doubles(np.ones(SIZE), device=device)})
        tape.zero()
    assert [times_cleared(one) for one in (x, y, z)] == [2, 0, 0]
    assert not any(one.grad.numpy().any() for one in (x, y, z))


@pytest.mark.own_launches("counts what adjoints clear")
def test_rows_of_one_array_are_not_cleared_either(device):
    states = wp.zeros((5, SIZE), dtype=wp.float64, requires_grad=True, device=device)
    rows = [states[i] for i in range(5)]
    for _ in range(2):
        with wp.Tape() as tape:
            for before, after in zip(rows, rows[1:], strict=False):
                wp.launch(scale, SIZE, [before, 2.0, after], device=device)
        tape.backward(grads={rows[-1]: doubles(np.ones(SIZE), device=device)})
        tape.zero()
    assert times_cleared(states) == 2  # of the first row
    assert not states.grad.numpy().any()


def test_what_is_only_added_to_is_cleared(device):
    x, y = (doubles(np.ones(SIZE), requires_grad=True, device=device) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(add_scaled, SIZE, [x, 2.0, y], device=device)
    tape.backward(grads={y: doubles(np.ones(SIZE), device=device)})
    tape.zero()
    assert not x.grad.numpy().any() and not y.grad.numpy().any()


def test_what_a_failing_pass_has_left_is_cleared():
    x, y, z = (doubles(np.ones(SIZE), requires_grad=True) for _ in range(3))

    def fail():
        raise KeyError("stop")

    with wp.Tape() as tape:
        tape.record_func(fail, [])
        wp.launch(scale, SIZE, [x, 2.0, y])
        wp.launch(scale, SIZE, [y, 2.0, z])
    with pytest.raises(KeyError):
        tape.backward(grads={z: doubles(np.ones(SIZE))})
    tape.zero()
    assert not any(one.grad.numpy().any() for one in (x, y, z))


def test_the_array_of_a_gradient_is_one_object():
    x = doubles(np.ones(SIZE), requires_grad=True)
    gradient = x.grad
    gradient.fill_(2.0)
    assert x.grad is gradient and x[2:].grad.numpy().tolist() == [2.0] * (SIZE - 2)
    assert x[SIZE:].grad.shape == (0,) and x.reshape((2, 3)).T.grad.shape == (3, 2)


# ---- who else may write ----


@wp.struct
class Holder:
    array: wp.array[wp.float64]


@wp.kernel
def write_gradient_of_field(of: Holder):
    of.array.grad[wp.tid()] = wp.float64(3.0)


@wp.kernel
def write_gradient_of_element(of: wp.array[Holder]):
    of[0].array.grad[wp.tid()] = wp.float64(3.0)


@wp.kernel
def store(holder: wp.array[Holder], array: wp.array[wp.float64]):
    kept = Holder()
    kept.array = array
    holder[0] = kept


@wp.func_native("((double*)of.grad)[i] = 3.0;")
def write_native(of: wp.array[wp.float64], i: int): ...


@wp.kernel
def write_by_native(of: wp.array[wp.float64]):
    write_native(of, wp.tid())


@wp.func
def write_in_function(of: wp.array[wp.float64], i: int):
    of.grad[i] = wp.float64(3.0)


@wp.kernel
def write_by_function(of: wp.array[wp.float64]):
    write_in_function(of, wp.tid())


def by_address(address):
    numbers = (ctypes.c_double * SIZE).from_address(address)
    return lambda: numbers.__setitem__(slice(None), [3.0] * SIZE)


def by_view(view):
    return lambda: view.__setitem__(slice(None), 3.0)


def by_launch(kernel, value):
    return lambda: wp.launch(kernel, SIZE, [value])


def by_command(x):
    command = wp.launch(write_gradient, SIZE, [x], record_cmd=True)
    return command.launch


def by_struct(x):
    holder = Holder()
    holder.array = x
    return by_launch(write_gradient_of_field, holder)


def by_element(x):
    holder = Holder()
    holder.array = x
    return by_launch(write_gradient_of_element, wp.array([holder], dtype=Holder))


def by_stored_element(x):
    holders = wp.zeros(1, dtype=Holder)
    wp.launch(store, 1, [holders, x])
    return by_launch(write_gradient_of_element, holders)


def by_struct_in_numpy(x):
    holder = Holder()
    holder.array = x
    return by_address(int(wp.array([holder], dtype=Holder).numpy()["array"]["grad"][0]))


def by_adjoint(x):
    other = doubles(np.ones(SIZE), requires_grad=True)
    other.grad.fill_(1.5)
    return lambda: wp.launch(scale, SIZE, [x, 2.0], [other], adj_inputs=[None, None], adj_outputs=[None], adjoint=True)


def by_other_tape(x):
    other = doubles(np.ones(SIZE), requires_grad=True)

    def run():
        with wp.Tape() as tape:
            wp.launch(scale, SIZE, [x, 2.0, other])
        tape.backward(grads={other: doubles(np.full(SIZE, 1.5))})

    return run


def by_function_on_tape(x):
    def run():
        with wp.Tape() as tape:
            tape.record_func(lambda: x.grad.fill_(3.0), [x])
        tape.backward()

    return run


def by_copy_with_gradient(x):
    other = doubles(np.ones(SIZE), requires_grad=True)
    other.grad.fill_(3.0)
    return lambda: wp.copy(x, other)


def by_operator(x):
    def run():
        with wp.Tape() as tape:
            other = 2.0 * x
        tape.backward(grads={other: doubles(np.full(SIZE, 1.5))})

    return run


def by_copy_on_tape(x):
    other = doubles(np.ones(SIZE), requires_grad=True)

    def run():
        with wp.Tape() as tape:
            wp.copy(other, x)
        tape.backward(grads={other: doubles(np.full(SIZE, 3.0))})

    return run


def by_shared_gradient(x):
    other = doubles(np.ones(SIZE), requires_grad=True)
    other.grad = x.grad
    return by_launch(write_gradient, other)


WAYS = {
    "numpy": lambda x: by_view(x.grad.numpy()),
    "asarray": lambda x: by_view(np.asarray(x.grad)),
    "interface": lambda x: by_address(x.grad.__array_interface__["data"][0]),
    "buffer": lambda x: by_view(np.frombuffer(x.grad)),
    "dlpack": lambda x: by_view(np.from_dlpack(x.grad)),
    "address": lambda x: by_address(x.grad.ptr),
    "structure of C": lambda x: by_address(x.__ctype__().grad),
    "view": lambda x: by_view(x.reshape((2, 3)).T.grad.numpy()),
    "launch": lambda x: by_launch(write, x.grad),
    "kernel that names it": lambda x: by_launch(write_gradient, x),
    "function that names it": lambda x: by_launch(write_by_function, x),
    "native function": lambda x: by_launch(write_by_native, x),
    "command": by_command,
    "field": by_struct,
    "element": by_element,
    "element that a kernel stored": by_stored_element,
    "struct in NumPy": by_struct_in_numpy,
    "fill": lambda x: lambda: x.grad.fill_(3.0),
    "item": lambda x: by_view(x.grad),
    "adjoint": by_adjoint,
    "other tape": by_other_tape,
    "function on a tape": by_function_on_tape,
    "copy with gradient": by_copy_with_gradient,
    "copy on a tape": by_copy_on_tape,
    "operator": by_operator,
    "shared": by_shared_gradient,
}
ON_HOST = {"numpy", "asarray", "interface", "buffer", "dlpack", "address", "structure of C", "view", "struct in NumPy"}


def ways():
    for name, way in WAYS.items():
        marks = []
        if name in ON_HOST:
            marks.append(pytest.mark.host_memory("writes through NumPy"))
        yield pytest.param(way, id=name, marks=marks)


@pytest.mark.parametrize("first", [True, False], ids=["known before the pass", "known after it"])
@pytest.mark.parametrize("way", ways())
def test_what_others_wrote_is_cleared(way, first):
    x, y = (doubles(np.ones(SIZE), requires_grad=True) for _ in range(2))
    write_now = way(y) if first else None
    with wp.Tape() as tape:
        wp.launch(scale, SIZE, [x, 2.0, y])
    tape.backward(grads={y: doubles(np.ones(SIZE))})
    (write_now or way(y))()
    tape.zero()
    assert not y.grad.numpy().any()


@pytest.mark.parametrize("way", ways())
def test_each_of_these_ways_writes(way):
    y = doubles(np.ones(SIZE), requires_grad=True)
    way(y)()
    assert y.grad.numpy().tolist() == [3.0] * SIZE


@pytest.mark.needs("torch")
@pytest.mark.host_memory("shares memory with PyTorch")
def test_what_a_tensor_wrote_is_cleared():
    x, y = (doubles(np.ones(SIZE), requires_grad=True) for _ in range(2))
    tensor = wp.to_torch(y)
    with wp.Tape() as tape:
        wp.launch(scale, SIZE, [x, 2.0, y])
    tape.backward(grads={y: doubles(np.ones(SIZE))})
    tensor.grad[:] = 3.0
    tape.zero()
    assert not y.grad.numpy().any()


# ---- random programs ----


class Model:
    """A program of arrays with gradients, run by Weft and by NumPy: all it does is linear, so that gradients depend on
    nothing but what was recorded."""

    def __init__(self, rng, device):
        self.rng, self.device = rng, device
        whole = wp.zeros((3, SIZE), dtype=wp.float64, requires_grad=True, device=device)
        rows = np.zeros((3, SIZE))
        self.arrays = [(whole[i], rows[i]) for i in range(3)]
        for _ in range(4):
            self.arrays.append((wp.zeros(SIZE, dtype=wp.float64, requires_grad=True, device=device), np.zeros(SIZE)))
        for i in (0, 3):  # views of the same elements, and of half of them
            array, gradient = self.arrays[i]
            self.arrays.append((array.flatten(), gradient))
        self.halves = [(array[:3], gradient[:3]) for array, gradient in self.arrays[2:5]]
        self.shown = []
        self.tapes = [(wp.Tape(), []), (wp.Tape(), [])]

    def pick(self, arrays=None):
        arrays = self.arrays if arrays is None else arrays
        return arrays[self.rng.integers(len(arrays))]

    def pair(self):
        while True:
            arrays = self.halves if self.rng.random() < 0.3 else self.arrays
            one, other = self.pick(arrays), self.pick(arrays)
            if not np.shares_memory(one[1], other[1]):
                return one, other

    # Each records (the array read, the array written, the backward step of the latter's gradient).

    def launch(self, kernel, back):
        (x, x_gradient), (y, y_gradient) = self.pair()
        factor = float(self.rng.integers(-2, 3))
        tape, entries = self.pick(self.tapes)
        with tape:
            wp.launch(kernel, len(x), [x, factor, y], device=self.device)
        entries.append(((x_gradient, y_gradient), lambda: back(factor, x_gradient, y_gradient)))

    def scale(self):
        def back(factor, x, y):
            x += factor * y
            y[:] = 0.0

        self.launch(scale, back)

    def add_scaled(self):
        def back(factor, x, y):
            x += factor * y

        self.launch(add_scaled, back)

    def scale_even(self):
        def back(factor, x, y):
            x[::2] += factor * y[::2]
            y[::2] = 0.0

        self.launch(scale_even, back)

    def scatter(self):
        def back(factor, x, y):
            x += factor * y[np.arange(len(x)) // 2]

        self.launch(scatter, back)

    def copy(self):
        def back():
            x_gradient[:] += y_gradient
            y_gradient[:] = 0.0

        (x, x_gradient), (y, y_gradient) = self.pair()
        tape, entries = self.pick(self.tapes)
        with tape:
            wp.copy(y, x)
        entries.append(((x_gradient, y_gradient), back))

    def fill(self):
        y, gradient = self.pick()
        tape, entries = self.pick(self.tapes)
        with tape:
            y.fill_(2.0)
        entries.append(((gradient,), lambda: gradient.fill(0.0)))

    def backward(self):
        tape, entries = self.pick(self.tapes)
        y, gradient = self.pick()
        seed = self.rng.integers(-3, 4, len(gradient)).astype(np.float64)
        tape.backward(grads={y: wp.array(seed, dtype=wp.float64, device=self.device)})
        gradient[:] = seed
        for _, back in reversed(entries):
            back()

    def zero(self):
        tape, entries = self.pick(self.tapes)
        tape.zero()
        for gradients, _ in entries:
            for gradient in gradients:
                gradient[:] = 0.0

    def forget(self):
        if self.rng.random() < 0.3:
            at = self.rng.integers(2)
            self.tapes[at] = (wp.Tape(), [])

    def show(self):
        array, gradient = self.pick()
        np.testing.assert_array_equal(array.grad.numpy(), gradient)
        self.shown.append((array.grad, gradient))

    def write_shown(self):
        if self.shown:
            array, gradient = self.pick(self.shown)
            wp.launch(write, len(array), [array], device=self.device)
            gradient[:] = 3.0

    def write_by_name(self):
        array, gradient = self.pick()
        wp.launch(write_gradient, len(array), [array], device=self.device)
        gradient[:] = 3.0

    def check(self):
        for array, gradient in self.arrays:
            np.testing.assert_array_equal(array.grad.numpy(), gradient)


OFTEN = [
    "scale",
    "scale",
    "scale",
    "add_scaled",
    "scale_even",
    "scatter",
    "copy",
    "fill",
    "backward",
    "backward",
    "zero",
]
SELDOM = ["forget", "show", "write_shown", "write_by_name"]


def run_random_program(seed, device):
    rng = np.random.default_rng(seed)
    model = Model(rng, device)
    for _ in range(40):
        seldom = rng.random() < 0.1
        getattr(model, rng.choice(SELDOM if seldom else OFTEN))()
    for tape, _ in model.tapes:
        tape.zero()
    for _, entries in model.tapes:
        for gradients, _ in entries:
            for gradient in gradients:
                gradient[:] = 0.0
    model.check()


def test_random_programs(device):
    for seed in range(60):
        print("seed", seed)  # shown if it fails
        run_random_program(seed, device)

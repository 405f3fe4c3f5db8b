"""Tapes in the hands of programs: failures, threads, processes, structs, views, memory that is let go."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from functools import partial

import numpy as np
import pytest
import tapes
import warp as wp
from kept_warnings import Warnings
from run_in_threads import run_in_threads
from tapes import multiply, square

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(17)


doubles = partial(tapes.doubles, requires_grad=True)


# ---- failures ----


def test_an_exception_inside_leaves_no_tape_behind():
    x = doubles([2.0])
    tape = wp.Tape()
    with pytest.raises(ZeroDivisionError):
        with tape:
            wp.launch(square, dim=1, inputs=[x])
            raise ZeroDivisionError
    wp.launch(square, dim=1, inputs=[x])
    assert len(tape.launches) == 1
    with tape:  # continues the recording
        wp.launch(square, dim=1, inputs=[x])
    assert len(tape.launches) == 2


def test_launches_that_raise_are_not_recorded():
    @wp.kernel(module_options={"mode": "debug"})
    def outside(x: wp.array[wp.float64], at: int):
        x[at] = x[at] * wp.float64(2.0)

    x = doubles([2.0, 3.0])
    command = wp.launch(outside, dim=1, inputs=[x, 7], record_cmd=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=2, inputs=[x])
        with pytest.raises(IndexError):
            wp.launch(outside, dim=1, inputs=[x, 5])
        with pytest.raises(IndexError):
            command.launch()
        wp.launch(square, dim=2, inputs=[x])
    assert [entry.kernel.key for entry in tape.launches] == ["square", "square"]
    tape.backward(grads={x: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [32.0, 108.0])


def test_a_backward_that_raises_can_be_repeated():
    x, y = doubles([2.0]), doubles([0.0])
    fails = [False, True]

    def by_hand():
        if fails.pop():
            raise KeyError("by hand")

    with wp.Tape() as tape:
        wp.launch(multiply, dim=1, inputs=[x, x, y])
        tape.record_func(by_hand, [])
    with pytest.raises(KeyError):
        tape.backward(y)
    tape.zero()
    tape.backward(y)
    assert x.grad.numpy()[0] == 4.0


def test_a_function_on_a_tape_may_run_another_tape_but_not_its_own():
    x, y, u, v = (doubles([3.0]) for _ in range(4))
    with wp.Tape() as inner:
        wp.launch(multiply, dim=1, inputs=[u, u, v])

    def by_hand():
        with wp.Tape() as made:  # none records in the backward pass
            wp.launch(multiply, dim=1, inputs=[u, u, v])
        made.backward(grads={v: y.grad})
        x.grad.assign(u.grad)

    with wp.Tape() as tape:
        tape.record_func(by_hand, [x, y])
    tape.backward(y)
    assert x.grad.numpy()[0] == 6.0
    assert len(inner.launches) == 1
    again = wp.Tape()
    again.record_func(lambda: again.backward(y), [])
    with pytest.raises(RuntimeError, match="in its backward pass already"):
        again.backward(y)
    with pytest.raises(RuntimeError, match="in its backward pass already"):  # and not stuck in that state
        again.backward(y)


# ---- threads and processes ----


@pytest.mark.host_memory('other threads have "cpu" as their default device')
def test_a_tape_records_the_thread_that_entered_it():
    x, y = doubles([2.0]), doubles([2.0])
    tapes = {}
    entered = threading.Barrier(2, timeout=60)

    def work(name, array, count):
        with wp.Tape() as tapes[name]:
            entered.wait()
            for _ in range(count):
                wp.launch(square, dim=1, inputs=[array])
            entered.wait()

    with wp.Tape() as outer:
        run_in_threads(lambda one: work(*one), (("a", x, 2), ("b", y, 3)))
    assert not outer.launches
    assert len(tapes["a"].launches) == 2 and len(tapes["b"].launches) == 3
    tapes["a"].backward(grads={x: doubles([1.0])})
    tapes["b"].backward(grads={y: doubles([1.0])})
    assert x.grad.numpy()[0] == 4 * 2.0**3 and y.grad.numpy()[0] == 8 * 2.0**7


def test_a_tape_can_go_back_in_another_thread():
    x, y = doubles([3.0]), doubles([0.0])
    with wp.Tape() as tape:
        wp.launch(multiply, dim=1, inputs=[x, x, y])
    thread = threading.Thread(target=tape.backward, args=(y,))
    with wp.Tape() as other:
        thread.start()
        thread.join()
        wp.launch(square, dim=1, inputs=[y])
    assert x.grad.numpy()[0] == 6.0 and len(other.launches) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
@pytest.mark.host_memory("CUDA is for one of two processes", on="cuda")
def test_a_forked_process_has_a_tape_of_its_own(tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(
        "import os, sys\n"
        "import warp as wp\n"
        "@wp.kernel\n"
        "def square(x: wp.array[float]):\n"
        "    i = wp.tid()\n"
        "    x[i] = x[i] * x[i]\n"
        "x = wp.full(1, 3.0, requires_grad=True)\n"
        "with wp.Tape() as tape:\n"
        "    wp.launch(square, dim=1, inputs=[x])\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        wp.launch(square, dim=1, inputs=[x])\n"
        "tape.backward(x)\n"
        "expected = 4 * 27.0 if child == 0 else 6.0\n"
        "good = float(x.grad) == expected and len(tape.launches) == (2 if child == 0 else 1)\n"
        "if child == 0:\n"
        "    os._exit(0 if good else 1)\n"
        "_, status = os.waitpid(child, 0)\n"
        "sys.exit(0 if good and status == 0 else 1)\n"
    )
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


# ---- what launches took ----


@wp.struct
class Links:
    weights: wp.array[wp.float64]
    scale: wp.float64


@wp.struct
class Body:
    links: Links
    positions: wp.array[wp.vec3d]
    kind: int


@wp.kernel
def weigh(body: Body, factor: wp.vec2d, y: wp.array[wp.float64]):
    i = wp.tid()
    w = body.links.weights[i]
    y[i] = w * w * body.links.scale * wp.dot(body.positions[i], body.positions[i]) * factor[1]


def made_body():
    body = Body()
    body.links.weights = doubles([2.0, 3.0])
    body.links.scale = 0.5
    body.positions = wp.array(RNG.standard_normal((2, 3)), dtype=wp.vec3d, requires_grad=True)
    return body


def test_structs_and_vectors_are_taken_as_they_were():
    body, factor, y = made_body(), wp.vec2d(0.0, 3.0), doubles([0.0, 0.0])
    weights, positions = body.links.weights, body.positions
    with wp.Tape() as tape:
        wp.launch(weigh, dim=2, inputs=[body, factor, y])
    body.links.weights = doubles([0.0, 0.0])
    body.links.scale = 100.0
    body.positions = None
    factor[1] = 7.0
    tape.backward(grads={y: doubles([1.0, 1.0])})
    lengths = (positions.numpy() ** 2).sum(axis=1)
    np.testing.assert_allclose(weights.grad.numpy(), 2.0 * weights.numpy() * 0.5 * lengths * 3.0)
    expected = 2.0 * positions.numpy() * (weights.numpy() ** 2 * 0.5 * 3.0)[:, None]
    np.testing.assert_allclose(positions.grad.numpy(), expected)


def test_the_gradient_of_a_struct_is_a_struct_of_gradients():
    body, y = made_body(), doubles([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(weigh, dim=2, inputs=[body, wp.vec2d(0.0, 1.0), y])
    tape.backward(grads={y: doubles([1.0, 1.0])})
    for found in (tape.gradients[body], tape.get_adjoint(body)):
        assert isinstance(found, Body)
        np.testing.assert_array_equal(found.links.weights.numpy(), body.links.weights.grad.numpy())
        np.testing.assert_array_equal(found.positions.numpy(), body.positions.grad.numpy())
        assert found.links.scale == 0.0 and found.kind == 0
    assert np.abs(body.positions.grad.numpy()).min() > 0.0
    tape.zero()
    assert not body.links.weights.grad.numpy().any()
    with pytest.raises(TypeError, match="expected an array or a struct, got 3"):
        tape.get_adjoint(3)


def test_arrays_in_structs_are_kept_when_they_are_overwritten():
    body, y = made_body(), doubles([0.0, 0.0])
    before = body.links.weights.numpy().copy()
    with wp.Tape() as tape:
        wp.launch(weigh, dim=2, inputs=[body, wp.vec2d(0.0, 1.0), y])
        wp.launch(square, dim=2, inputs=[body.links.weights])
    tape.backward(grads={y: doubles([1.0, 1.0])})
    lengths = (body.positions.numpy() ** 2).sum(axis=1)
    np.testing.assert_allclose(body.links.weights.grad.numpy(), before * lengths)
    assert tape.memory.copies >= 1


# ---- arrays ----


def test_slices_share_the_gradient_and_its_retention():
    x, y = doubles([1.0, 2.0, 3.0, 4.0]), doubles([0.0] * 4)
    y.retain_grad = True
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[x[::2], x[1::2], y[1:3]])
    tape.backward(grads={y: doubles([9.0, 1.0, 10.0, 9.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 1.0, 40.0, 30.0])
    np.testing.assert_array_equal(y.grad.numpy(), [9.0, 1.0, 10.0, 9.0])
    assert y[1:3].retain_grad and y[1:3].grad.ptr == y.grad[1:3].ptr


def test_retained_gradients_are_those_of_the_last_pass():
    x, y, z = (doubles([2.0]) for _ in range(3))
    y.retain_grad = True
    with wp.Tape() as tape:
        wp.launch(multiply, dim=1, inputs=[x, x, y])
        wp.launch(multiply, dim=1, inputs=[y, y, z])
    tape.backward(z)
    tape.backward(z)
    assert x.grad.numpy()[0] == 2 * 32.0 and y.grad.numpy()[0] == 8.0


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
def test_arrays_that_the_program_let_go_live_with_the_tape():
    freed = []
    memory = np.array([3.0, 4.0])

    def record():
        a = wp.array(
            ptr=memory.ctypes.data, dtype=wp.float64, shape=2, requires_grad=True, deleter=lambda *_: freed.append(1)
        )
        b = doubles([1.0, 1.0])
        c = a * b
        return b, c * c

    with wp.Tape() as tape:
        b, c = record()
    gc.collect()
    assert not freed
    tape.backward(grads={c: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(b.grad.numpy(), [18.0, 32.0])
    tape.reset()
    gc.collect()
    assert freed


def test_rows_and_columns_of_one_array_are_kept_where_they_meet():
    x = doubles(RNG.uniform(0.5, 1.5, (4, 3)))
    start = x.numpy().copy()
    with wp.Tape() as tape:
        for row in range(3):
            wp.launch(multiply, dim=3, inputs=[x[row], x[row], x[row + 1]])  # reads the row, writes the next
        assert tape.memory.copies == 0
        wp.launch(square, dim=4, inputs=[x[:, 1]])  # meets its own column and every row that was read
        assert tape.memory.copies == 4
        wp.launch(square, dim=3, inputs=[x[0]])  # the first row is kept, the column's part too
        assert tape.memory.copies == 5
    tape.backward(grads={x: doubles(np.ones((4, 3)))})
    # x[3] is x0 ** 8, its column 1 squared once more; the rows between are their squares, and so on.
    powers = np.array([1.0, 2.0, 4.0, 8.0])[:, None] * np.array([1.0, 2.0, 1.0])
    powers[0] *= 2.0
    expected = (powers * start[0] ** (powers - 1.0)).sum(axis=0)
    np.testing.assert_allclose(x.grad.numpy()[0], expected, rtol=1e-12)
    assert not x.grad.numpy()[1:].any()


def test_nothing_to_do_is_no_mistake():
    none, x, y = doubles([]), doubles([2.0]), doubles([5.0])
    with wp.Tape() as tape:
        wp.launch(square, dim=0, inputs=[none])
        wp.launch(multiply, dim=0, inputs=[x, x, y])
        wp.copy(none, none)
        none.fill_(1.0)
        product = none * none + none
        wp.utils.array_scan(none, none)
        wp.launch(multiply, dim=1, inputs=[x, x, y])
    tape.backward(grads={y: doubles([1.0]), product: none})
    assert x.grad.numpy()[0] == 4.0
    assert none.grad.numpy().shape == (0,)


def test_lists_that_stand_for_vectors_are_taken_as_they_were():
    @wp.kernel
    def scaled(x: wp.array[wp.float64], factor: wp.vec2d, y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = x[i] * factor[1]

    x, y, factor = doubles([2.0]), doubles([0.0]), [1.0, 5.0]
    with wp.Tape() as tape:
        wp.launch(scaled, dim=1, inputs=[x, factor, y])
    factor[1] = 100.0
    tape.backward(y)
    assert x.grad.numpy()[0] == 5.0


def test_requires_grad_takes_true_and_false_only():
    x = doubles([1.0])
    for wrong in ("x", 2, None, [True]):
        with pytest.raises(TypeError, match="expected True or False"):
            x.requires_grad = wrong
        with pytest.raises(TypeError, match="expected True or False"):
            x.retain_grad = wrong
    with pytest.raises(TypeError, match="expected True or False, got"):
        wp.zeros(3, requires_grad="no")
    x.requires_grad = np.bool_(False)
    assert x.grad is None and not x.requires_grad
    x.requires_grad = True
    assert x.grad.numpy()[0] == 0.0
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del x.requires_grad


def test_a_gradient_must_be_laid_out_as_its_array():
    x = doubles([1.0, 2.0, 3.0])
    wide = wp.zeros(6, dtype=wp.float64)
    with pytest.raises(ValueError, match="the gradient must have the strides of the array"):
        x.grad = wide[::2]
    with pytest.raises(ValueError, match="shape and dtype"):
        x.grad = wp.zeros(3, dtype=wp.float32)
    x.grad = wide[1:4]
    with wp.Tape() as tape:
        wp.launch(square, dim=3, inputs=[x])
    tape.backward(grads={x: doubles([1.0, 1.0, 1.0])})
    np.testing.assert_array_equal(wide.numpy(), [0.0, 2.0, 4.0, 6.0, 0.0, 0.0])


def test_gradients_can_be_cleared_while_a_tape_records():
    x, y = doubles([2.0]), doubles([0.0])
    x.grad.fill_(5.0)
    with wp.Tape() as tape:
        x.grad.zero_()
        wp.launch(multiply, dim=1, inputs=[x, x, y])
    tape.backward(y)
    assert x.grad.numpy()[0] == 4.0


def test_kernels_declared_while_backward_is_off_have_none():
    wp.config.enable_backward = False
    try:

        @wp.kernel
        def off(x: wp.array[float]):
            x[0] = x[0] * 2.0

        @wp.kernel(enable_backward=True)
        def on(x: wp.array[float]):
            x[0] = x[0] * 2.0
    finally:
        wp.config.enable_backward = True

    @wp.kernel
    def later(x: wp.array[float]):
        x[0] = x[0] * 2.0

    x = wp.ones(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(off, dim=1, inputs=[x])
        wp.launch(on, dim=1, inputs=[x])
        wp.launch(later, dim=1, inputs=[x])
    with Warnings() as found:
        tape.backward(x)
    assert len(found) == 1 and "kernel 'off' is left out" in found[0]
    assert x.grad.numpy()[0] == 4.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: wp.ones(2, dtype=wp.float64, requires_grad=True),
        lambda: wp.full(2, 1.0, dtype=wp.float64, requires_grad=True),
        lambda: wp.full_like(doubles([0.0, 0.0]), 1.0, requires_grad=True),
        lambda: wp.ones_like(doubles([0.0, 0.0]), requires_grad=True),
        lambda: wp.clone(wp.ones(2, dtype=wp.float64), requires_grad=True),
        lambda: wp.array([1.0, 1.0], dtype=wp.float64, requires_grad=True),
        lambda: wp.array(wp.ones(2, dtype=wp.float64), requires_grad=True),
        lambda: wp.from_numpy(np.ones(2), dtype=wp.float64, requires_grad=True),
    ],
)
def test_an_array_that_is_made_while_a_tape_records_keeps_its_gradient(make):
    """Nothing was there before that its gradient could belong to."""
    y = doubles([0.0, 0.0], requires_grad=True)
    with wp.Tape() as tape:
        x = make()
        wp.launch(multiply, dim=2, inputs=[x, x, y])
    assert len(tape.launches) == 1
    tape.backward(grads={y: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])


def test_retain_grad_of_new_arrays():
    source, plain = (wp.array([1.0], dtype=wp.float64, requires_grad=wants) for wants in (True, False))
    options = {"requires_grad": True, "retain_grad": True}
    made = [wp.zeros(2, **options), wp.ones(2, **options), wp.empty(2, **options), wp.full(2, 1.0, **options)]
    made += [wp.array([1.0], dtype=float, **options), wp.from_numpy(np.ones(2), dtype=float, **options)]
    made += [like(source, retain_grad=True) for like in (wp.zeros_like, wp.ones_like, wp.empty_like, wp.clone)]
    made += [
        wp.full_like(source, 2.0, retain_grad=True),
        wp.array([1.0], grad=wp.zeros(1), retain_grad=True, dtype=float),
    ]
    assert all(one.requires_grad and one.retain_grad for one in made)
    assert not wp.zeros_like(made[0]).retain_grad and wp.zeros_like(made[0]).requires_grad
    for wrong in (
        lambda: wp.zeros(2, retain_grad=True),
        lambda: wp.zeros(2, requires_grad=False, retain_grad=True),
        lambda: wp.empty_like(plain, retain_grad=True),
        lambda: wp.clone(plain, retain_grad=True),
        lambda: wp.array([1.0], dtype=float, retain_grad=True),
        lambda: setattr(plain, "retain_grad", True),
    ):
        with pytest.raises(ValueError, match="retain_grad=True is for an array with a gradient"):
            wrong()
    made[0].requires_grad = False
    assert not made[0].retain_grad


# ---- who writes ----


@wp.struct
class Rows:
    row: wp.array[wp.float64]


def made(values, dtype=wp.float64):
    return wp.array(values, dtype=dtype)


def grid(a):
    return a.reshape((2, 2))


def nested(a):
    rows = Rows()
    rows.row = a
    return made([rows], Rows)


@wp.kernel
def double(a: wp.array[wp.float64]):
    i = wp.tid()
    a[i] = wp.float64(2.0) * a[i]


@wp.kernel
def double_nested(rows: wp.array[Rows]):
    i = wp.tid()
    rows[0].row[i] = wp.float64(2.0) * rows[0].row[i]


NUMBERS = [3.0, 1.0, 2.0, 5.0]
# Each writes the array of four numbers `a`, which is of float64 or, if the name says so, of int32.
WRITERS = {
    "launch": lambda a: wp.launch(double, dim=4, inputs=[a]),
    "recorded launch": lambda a: wp.launch(double, dim=4, inputs=[a], record_cmd=True).launch(),
    "launch that writes through memory": lambda a: wp.launch(double_nested, dim=4, inputs=[nested(a)]),
    "fill": lambda a: a.fill_(7.0),
    "zero": lambda a: a.zero_(),
    "assign": lambda a: a.assign(made(NUMBERS)),
    "assign a list": lambda a: a.assign(NUMBERS),
    "copy": lambda a: wp.copy(a, made(NUMBERS)),
    "copy a part": lambda a: wp.copy(a, made(NUMBERS), 1, 0, 2),
    "element": lambda a: a.__setitem__(1, 9.0),
    "slice": lambda a: a.__setitem__(slice(1, 3), made([8.0, 9.0])),
    "through a view": lambda a: grid(a)[1].fill_(4.0),
    "chosen elements": lambda a: a[made([2, 0], int)].assign([4.0, 5.0]),
    "in place": lambda a: a.__iadd__(made(NUMBERS)),
    "matmul": lambda a: wp.matmul(grid(made(NUMBERS)), grid(made(NUMBERS)), grid(a), grid(a)),
    "sum": lambda a: wp.utils.array_sum(made([NUMBERS, NUMBERS]), out=a, axis=0),
    "inner": lambda a: wp.utils.array_inner(made([NUMBERS] * 2), made([NUMBERS] * 2), out=a, axis=0),
    "scan": lambda a: wp.utils.array_scan(made(NUMBERS), a),
    "cast": lambda a: wp.utils.array_cast(made(NUMBERS, float), a),
    "map": lambda a: wp.map(wp.sin, made(NUMBERS), out=a),
    "values of radix sort": lambda a: wp.utils.radix_sort_pairs(made([3, 1, 2, 0], int), a, 4),
    "keys of radix sort, int": lambda a: wp.utils.radix_sort_pairs(a, made(NUMBERS), 4),
    "values of segmented sort": lambda a: wp.utils.segmented_sort_pairs(
        made([3, 1, 2, 0], int), a, 4, made([0, 2, 4], int)
    ),
    "keys of segmented sort, int": lambda a: wp.utils.segmented_sort_pairs(a, made(NUMBERS), 4, made([0, 2, 4], int)),
    "values of runs": lambda a: wp.utils.runlength_encode(made([4.0, 4.0, 2.0, 1.0]), a, made([0] * 4, int)),
    "lengths of runs, int": lambda a: wp.utils.runlength_encode(made([4.0, 4.0, 2.0, 1.0]), made(NUMBERS), a),
}


@pytest.mark.parametrize("name", WRITERS)
def test_whoever_writes_an_array_counts_it(name):
    """Earlier contents are kept, the last ones are read in place, and later writes are noticed."""
    dtype, write = (int if name.endswith("int") else wp.float64), WRITERS[name]

    @wp.kernel
    def weigh(p: wp.array[wp.float64], a: wp.array(dtype=dtype), y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] += p[i] * wp.float64(a[i])

    p, a, y = doubles([1.0] * 4), made([30, 10, 20, 0], dtype), doubles([0.0] * 4)
    with wp.Tape() as tape:
        before = a.numpy().copy()
        wp.launch(weigh, dim=4, inputs=[p, a, y])
        write(a)
        after = a.numpy().copy()
        wp.launch(weigh, dim=4, inputs=[p, a, y])
    assert (after != before).any()
    tape.backward(grads={y: doubles([1.0] * 4)})
    np.testing.assert_array_equal(p.grad.numpy(), before + after)
    write(a)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(grads={y: doubles([1.0] * 4)})


def in_a_cycle(how):
    x = doubles([2.0])
    tape = wp.Tape()
    with tape:
        wp.launch(square, dim=1, inputs=[x])
        x.fill_(3.0)
        wp.utils.array_scan(x, x)
        if how == "function":
            tape.record_func(lambda: tape.zero(), [x])
    if how == "array":
        x.owner = tape
    if how == "launches":
        x.owner = [tape, tape.launches, tape.launches[1]]
    return [weakref.ref(tape), weakref.ref(x)], tape.launches[0]


@pytest.mark.parametrize("how", ["function", "array", "launches"])
def test_tapes_that_lead_to_themselves_are_collected(how):
    gone, launch = in_a_cycle(how)
    gc.collect()
    # A held launch keeps its arrays, as they are.
    assert launch.values[0].grad is not None
    del launch
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_what_a_tape_recorded_lives_as_long_as_somebody_has_it():
    x, y = doubles([2.0]), doubles([0.0])
    tape = wp.Tape()
    with tape:
        wp.copy(y, x)
        wp.utils.array_scan(x, y)
    copy, scan = tape.launches
    assert tape.launches[0] is copy
    known = weakref.ref(x)
    tape.reset()
    del tape, x
    gc.collect()
    assert copy.source is known() and known() in scan.reads.values()
    del copy, scan
    gc.collect()
    assert known() is None

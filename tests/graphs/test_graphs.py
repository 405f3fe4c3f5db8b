"""Graphs: work that is captured once, and run again and again."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest
import warp as wp
from graph_kernels import add_one, axpy, captured, countdown

pytestmark = [pytest.mark.protected, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


@pytest.mark.seed("S-GRF-001", "S-GRF-002", "S-GRF-003", "S-GRF-004", "S-GRF-009", "P-51", "P-52")
def test_a_hundred_launches_are_captured_and_not_run():
    a = wp.zeros(1024, dtype=float)
    said = []
    wp.capture_begin()
    for step in range(100):
        wp.launch(add_one, inputs=[a])
        said.append(step)
    graph = wp.capture_end()
    assert len(said) == 100 and not a.numpy().any()
    wp.capture_launch(graph)
    assert a.numpy().tolist() == [100.0] * 1024 and len(said) == 100
    wp.capture_launch(graph)
    assert a.numpy().tolist() == [200.0] * 1024


@pytest.mark.seed("S-GRF-005", "S-GRF-006", "S-GRF-007")
def test_arguments_of_capture(device):
    with wp.ScopedDevice(device):
        a = wp.zeros(3)
        stream = wp.get_stream(device)
        wp.capture_begin(device=device, stream=stream, force_module_load=True)
        wp.launch(add_one, dim=3, inputs=[a], device=device)
        graph = wp.capture_end(device=device, stream=stream)
        assert isinstance(graph, wp.Graph) and graph.device == device
        wp.capture_launch(graph, stream=stream)
        assert a.numpy().tolist() == [1.0] * 3


@pytest.mark.seed("S-GRF-010")
def test_copies_and_fills_are_captured_in_order(device):
    with wp.ScopedDevice(device):
        a, b, c = wp.full(4, 7.0, dtype=float), wp.zeros(4), wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)

        def work():
            wp.copy(b, a)
            wp.launch(add_one, dim=4, inputs=[b])
            a.zero_()
            a[1:3].fill_(5.0)
            c.assign([9.0, 8.0, 7.0, 6.0])
            wp.launch(axpy, dim=4, inputs=[2.0, c, a])
            c[0] = 100.0
            c[2:] = np.array([30.0, 40.0], dtype=np.float32)

        graph = captured(work, device)
        assert (a.list(), b.list(), c.list()) == ([7.0] * 4, [0.0] * 4, [1.0, 2.0, 3.0, 4.0])
        for _ in range(3):
            wp.capture_launch(graph)
            assert b.list() == [8.0] * 4
            assert a.list() == [18.0, 21.0, 19.0, 12.0]
            assert c.list() == [100.0, 8.0, 30.0, 40.0]
            a.fill_(7.0)


def test_host_data_are_those_of_the_capture():
    a, host = wp.zeros(3), np.array([1, 2, 3], dtype=np.float32)
    values = [4.0, 5.0, 6.0]

    def work():
        a.assign(host)
        made = wp.array(values, dtype=float)
        from_numpy = wp.array(host, dtype=float)
        wp.launch(axpy, dim=3, inputs=[1.0, made, a])
        wp.launch(axpy, dim=3, inputs=[1.0, from_numpy, a])
        wp.launch(add_one, dim=3, inputs=[made])

    graph = captured(work)
    host[:], values[:] = 50.0, [0.0, 0.0, 0.0]
    for _ in range(2):  # objects made inside begin anew
        wp.capture_launch(graph)
        assert a.list() == [6.0, 9.0, 12.0]


def test_arrays_that_are_made_inside_begin_anew_each_time(device):
    with wp.ScopedDevice(device):
        out = wp.zeros(3)

        def work():
            zeros, full, copied = wp.zeros(3), wp.full(3, 2.0, dtype=float), wp.clone(out)
            wp.launch(add_one, dim=3, inputs=[zeros])
            wp.launch(axpy, dim=3, inputs=[1.0, zeros, full])
            wp.launch(axpy, dim=3, inputs=[1.0, full, copied])
            wp.copy(out, copied)

        graph = captured(work, device)
        gc.collect()
        litter = [wp.full(3, 99.0, dtype=float) for _ in range(50)]
        for n in range(1, 4):
            wp.capture_launch(graph)
            assert out.list() == [3.0 * n] * 3
        assert all(one.list() == [99.0] * 3 for one in litter)


def test_memory_lives_as_long_as_the_graph(device):
    with wp.ScopedDevice(device):
        out = wp.zeros(1000)

        def make():
            x = wp.full(1000, 3.0, dtype=float)
            return captured(lambda: wp.launch(axpy, dim=1000, inputs=[1.0, x, out]), device)

        graph = make()
        gc.collect()
        litter = [wp.full(1000, 99.0, dtype=float) for _ in range(50)]
        wp.capture_launch(graph)
        assert set(out.list()) == {3.0} and all(one.list()[5] == 99.0 for one in litter)
        # The other way: an array outlives its graph.
        y = wp.zeros(1000)
        graph = captured(lambda: wp.launch(add_one, dim=1000, inputs=[y]), device)
        wp.capture_launch(graph)
        del graph
        gc.collect()
        assert set(y.list()) == {1.0}


@pytest.mark.host_memory("launches with the memory of NumPy")
def test_foreign_memory_lives_as_long_as_the_graph_and_no_longer():
    class Owned(np.ndarray):
        pass

    out = wp.zeros(1000)
    x = np.full(1000, 3.0, dtype=np.float32).view(Owned)
    gone = weakref.ref(x)
    graphs = [captured(lambda: wp.launch(axpy, dim=1000, inputs=[1.0, x, out])) for _ in range(2)]  # noqa: F821
    y = wp.array(x, copy=False)
    graphs.append(captured(lambda: wp.launch(axpy, dim=1000, inputs=[1.0, y, out])))  # noqa: F821
    del x, y
    gc.collect()
    assert gone() is not None
    while graphs:
        wp.capture_launch(graphs[0])
        del graphs[0]
        gc.collect()
    assert set(out.list()) == {9.0} and gone() is None


def test_a_kernel_that_is_gone_stays_in_the_graph():
    def make(factor):
        @wp.kernel(module="unique")
        def scaled(a: wp.array(dtype=float)):
            i = wp.tid()
            a[i] = a[i] * factor

        return scaled

    a = wp.full(5, 2.0, dtype=float)
    graph = captured(lambda: wp.launch(make(3.0), dim=5, inputs=[a]))
    gc.collect()
    wp.capture_launch(graph)
    assert a.list() == [6.0] * 5


def test_recorded_launches_and_launches_of_adjoints():
    x, y = wp.full(4, 2.0, dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)
    command = wp.launch(axpy, dim=4, inputs=[3.0, x, y], record_cmd=True)

    def work():
        command.launch()
        y.grad.fill_(1.0)
        wp.launch(axpy, 4, [3.0, x, y], adj_inputs=[None, x.grad, y.grad], adjoint=True)

    graph = captured(work)
    assert y.list() == [0.0] * 4 and x.grad.list() == [0.0] * 4
    command.set_param_at_index(0, 100.0)  # the graph has what was set then
    wp.capture_launch(graph)
    assert y.list() == [6.0] * 4 and x.grad.list() == [3.0] * 4


@wp.kernel
def square(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i] * x[i])


@wp.kernel
def damp(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = wp.sin(x[i]) + 0.5 * x[i]


@wp.kernel
def descend(x: wp.array(dtype=float), gradient: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] - 0.05 * gradient[i]


def test_a_training_step_in_a_graph_is_the_one_outside():
    """Forward, backward and update, with an array that is overwritten on the tape."""
    start = np.linspace(0.1, 1.0, 50).astype(np.float32)

    def run(in_graph):
        x, state = wp.array(start, dtype=float, requires_grad=True), wp.zeros(50, requires_grad=True)
        loss = wp.zeros(1, requires_grad=True)
        tape = wp.Tape()

        def step():
            tape.reset()
            loss.zero_()
            with tape:
                wp.copy(state, x)
                for _ in range(3):
                    wp.launch(damp, dim=50, inputs=[state])
                wp.launch(square, dim=50, inputs=[state, loss])
            tape.backward(loss)
            wp.launch(descend, dim=50, inputs=[x, x.grad])
            tape.zero()

        losses = []
        graph = captured(step) if in_graph else None
        for _ in range(6):
            wp.capture_launch(graph) if in_graph else step()
            losses.append(loss.list()[0])
        return losses, x.list()

    eager, replayed = run(False), run(True)
    assert eager[0][0] > eager[0][-1]
    np.testing.assert_allclose(replayed[0], eager[0], rtol=1e-6)
    np.testing.assert_allclose(replayed[1], eager[1], rtol=1e-6)


def test_a_tape_knows_that_a_graph_has_overwritten_an_array():
    x, y = wp.full(4, 2.0, dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)

    @wp.kernel
    def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i] * x[i]

    graph = captured(lambda: wp.launch(add_one, dim=4, inputs=[x]))
    tape = wp.Tape()
    with tape:
        wp.launch(damp, dim=4, inputs=[x])
        wp.launch(cube, dim=4, inputs=[x, y])
        with pytest.raises(RuntimeError, match="a tape is recording, and cannot record the work of a graph"):
            wp.capture_launch(graph)
    wp.capture_launch(graph)
    y.grad.fill_(1.0)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward()


def test_gradients_that_are_known_to_be_zero_are_cleared_in_a_graph():
    x, y = wp.full(4, 2.0, dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)
    tape = wp.Tape()

    def step():
        with tape:
            wp.launch(axpy, dim=4, inputs=[3.0, x, y])
        tape.backward(grads={y: wp.ones(4, dtype=float)})
        tape.zero()
        tape.reset()

    graph = captured(step)
    for _ in range(2):
        wp.capture_launch(graph)
        assert x.grad.list() == [0.0] * 4
    x.grad.fill_(5.0)
    tape.zero()
    wp.capture_launch(graph)
    assert x.grad.list() == [0.0] * 4


def test_operations_on_whole_arrays():
    rng = np.random.default_rng(1)
    keys, values = wp.zeros(200, dtype=int), wp.zeros(200, dtype=int)
    sums, total = wp.zeros(100), wp.zeros(1)
    x = wp.array(rng.random(100), dtype=float)
    a, b, c = (wp.array(rng.random((8, 8)), dtype=float) for _ in range(3))
    numbers = rng.integers(0, 50, 100).astype(np.int32)
    source = wp.array(numbers, dtype=int)

    def work():
        wp.copy(keys, source, count=100)
        values.zero_()
        wp.utils.radix_sort_pairs(keys, values, 100)
        wp.utils.array_scan(x, sums, inclusive=True)
        wp.utils.array_sum(x, out=total)
        wp.matmul(a, b, c, c, beta=1.0)
        wp.copy(a, a + b)

    before = [array.numpy().copy() for array in (a, b, c)]
    graph = captured(work)
    assert not sums.numpy().any() and not total.numpy().any()
    np.testing.assert_array_equal(a.numpy(), before[0])
    for n in range(2):
        wp.capture_launch(graph)
        product = before[0] @ before[1] + before[2]
        np.testing.assert_array_equal(keys.numpy()[:100], np.sort(numbers))
        np.testing.assert_allclose(sums.numpy(), np.cumsum(x.numpy()), rtol=1e-5)
        np.testing.assert_allclose(total.numpy(), x.numpy().sum(), rtol=1e-5)
        np.testing.assert_allclose(c.numpy(), product, rtol=1e-4)
        np.testing.assert_allclose(a.numpy(), before[0] + before[1], rtol=1e-6)
        before[0], before[2] = a.numpy().copy(), c.numpy().copy()
        x.fill_(float(n))


def test_what_needs_numbers_at_once_is_an_error(device):
    with wp.ScopedDevice(device):
        a = wp.zeros(3)
        for ask in (
            lambda: a.numpy(),
            lambda: a.list(),
            lambda: a[0],
            lambda: a.__array__(),
            lambda: wp.utils.array_sum(a),
            lambda: wp.utils.array_inner(a, a),
            lambda: wp.synchronize_stream(wp.get_stream()),
        ):
            with wp.ScopedCapture(device=device) as capture:
                with pytest.raises(RuntimeError, match="a graph is being captured, and its launches have not"):
                    ask()
                wp.launch(add_one, dim=3, inputs=[a])
            a.zero_()
            wp.capture_launch(capture.graph)
            assert a.list() == [1.0] * 3


def test_a_picture_of_a_graph(tmp_path):
    a, count, steps = wp.zeros(3), wp.zeros(1, dtype=int), wp.zeros(1, dtype=int)

    def work():
        wp.launch(add_one, dim=(3,), inputs=[a])
        a.zero_()
        wp.capture_while(count, lambda: wp.launch(countdown, dim=1, inputs=[count, steps]))

    graph = captured(work)
    wp.capture_debug_dot_print(graph, str(tmp_path / "graph.dot"))
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph") and "add_one\\ndim (3)" in text and "countdown" in text and "fill" in text
    wp.capture_debug_dot_print(graph, str(tmp_path / "graph.dot"), verbose=False)
    assert "dim" not in (tmp_path / "graph.dot").read_text()


def test_a_long_graph_ends_at_an_interrupt(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
import warp as wp
wp.set_device("cpu")  # nothing stops a GPU

@wp.kernel
def nothing(a: wp.array(dtype=int)):
    a[0] = 1

a = wp.ones(1, dtype=int)
with wp.ScopedCapture() as capture:
    wp.capture_while(a, lambda: wp.launch(nothing, dim=1, inputs=[a]))
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    wp.capture_launch(capture.graph)
except KeyboardInterrupt:
    print("interrupted")
wp.launch(nothing, dim=1, inputs=[a])
print(a.list())
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["interrupted", "[1]"], done.stderr

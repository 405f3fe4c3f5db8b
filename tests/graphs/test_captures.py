"""Captures: conditions, graphs in graphs, mistakes, threads and streams."""

import gc
import threading

import pytest
import warp as wp
from graph_kernels import add_one, axpy, captured, countdown
from run_in_threads import run_in_threads

pytestmark = [pytest.mark.protected, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


def test_conditions_are_asked_when_the_graph_runs(device):
    with wp.ScopedDevice(device):
        condition, a, b = wp.array([0], dtype=int), wp.zeros(1), wp.zeros(1)
        count, steps = wp.array([3], dtype=int), wp.zeros(1, dtype=int)
        other = captured(lambda: wp.launch(add_one, dim=1, inputs=[b]), device)

        def work():
            wp.capture_if(condition, lambda x: wp.launch(add_one, dim=1, inputs=[x]), other, x=a)
            wp.capture_while(count, lambda: wp.launch(countdown, dim=1, inputs=[count, steps]))
            count.fill_(2)

        graph = captured(work, device)
        assert a.list() == b.list() == [0.0] and count.list() == [3]
        wp.capture_launch(graph)
        assert (a.list(), b.list(), steps.list(), count.list()) == ([0.0], [1.0], [3], [2])
        condition.fill_(1)
        wp.capture_launch(graph)
        assert (a.list(), b.list(), steps.list()) == ([1.0], [1.0], [5])
        wp.capture_while(count, captured(lambda: wp.launch(countdown, dim=1, inputs=[count, steps]), device))
        assert steps.list() == [7]


def test_a_graph_in_a_graph(device):
    with wp.ScopedDevice(device):
        a = wp.zeros(2)
        inner = captured(lambda: wp.launch(add_one, dim=2, inputs=[a]), device)

        def work():
            for _ in range(3):
                wp.capture_launch(inner)
            wp.launch(axpy, dim=2, inputs=[1.0, a, a])

        outer = captured(work, device)
        inner = None
        gc.collect()
        wp.capture_launch(outer)
        assert a.list() == [6.0, 6.0]


@pytest.mark.seed("S-GRF-008")
def test_mistakes_leave_everything_usable():
    a = wp.zeros(2)
    with pytest.raises(RuntimeError, match=f"nothing is being captured on this stream of '{wp.get_device()}'"):
        wp.capture_end()
    wp.capture_begin()
    with pytest.raises(RuntimeError, match="is being captured already"):
        wp.capture_begin()
    wp.launch(add_one, dim=2, inputs=[a])
    wp.capture_launch(wp.capture_end())
    assert a.list() == [1.0, 1.0]
    with pytest.raises(ZeroDivisionError), wp.ScopedCapture() as capture:
        wp.launch(add_one, dim=2, inputs=[a])
        raise ZeroDivisionError
    assert capture.graph is None and not wp.get_device().is_capturing
    wp.launch(add_one, dim=2, inputs=[a])
    assert a.list() == [2.0, 2.0]
    with pytest.raises(TypeError, match="expected a wp.Graph, got None"):
        wp.capture_launch(None)
    with pytest.raises(RuntimeError, match="graphs come from"):
        wp.Graph()
    with wp.ScopedCapture() as capture:
        with pytest.raises(TypeError):
            wp.launch(add_one, dim=2, inputs=["nothing"])
        wp.launch(add_one, dim=2, inputs=[a])
    wp.capture_launch(capture.graph)
    assert a.list() == [3.0, 3.0]


@pytest.mark.parametrize("condition", [wp.capture_if, wp.capture_while], ids=["if", "while"])
def test_the_body_of_a_condition_leaves_the_capture_as_it_is(condition):
    """It ended the process."""
    n, a = wp.array([1], dtype=int), wp.zeros(2)
    stream = wp.Stream()
    mistakes = [
        (wp.capture_end, "the body of a condition is being captured, which ends with it"),
        (lambda: wp.set_stream(stream), "has made another stream of"),
    ]
    before = wp.get_stream()
    for body, message in mistakes:
        with pytest.raises(RuntimeError, match=message), wp.ScopedCapture() as capture:
            try:
                condition(n, body)
            finally:
                wp.set_stream(before)
        assert capture.graph is None and not wp.get_device().is_capturing
    with wp.ScopedCapture() as capture:
        wp.launch(add_one, dim=2, inputs=[a])
    wp.capture_launch(capture.graph)
    assert a.list() == [1.0, 1.0]


def test_a_graph_on_a_stream_of_another_device_is_an_error():
    from protected_device import NAME, add

    add()
    here, a = wp.get_device(), wp.zeros(1)
    other = "cpu" if here.alias == NAME else NAME
    graph = captured(lambda: wp.launch(add_one, dim=1, inputs=[a]))
    with pytest.raises(RuntimeError, match=f"captured on '{here}', the stream is of '{other}'"):
        wp.capture_launch(graph, stream=wp.Stream(other))
    with pytest.raises(RuntimeError, match="the stream is of"):
        wp.launch(add_one, dim=1, inputs=[a], device=here, stream=wp.Stream(other))
    with pytest.raises(TypeError, match="stream is int 3, expected a wp.Stream or None"):
        wp.launch(add_one, dim=1, inputs=[a], stream=3)


def test_faults_and_prints_come_when_the_graph_runs(capfd):
    @wp.kernel(module_options={"mode": "debug"})
    def reads(a: wp.array(dtype=float), at: wp.array(dtype=int)):
        a[0] = a[at[0]]

    @wp.kernel
    def says(a: wp.array(dtype=float)):
        print(a[0])

    a, at = wp.array([5.0], dtype=float), wp.array([7], dtype=int)
    graph = captured(lambda: wp.launch(reads, dim=1, inputs=[a, at]))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 of 'a', which has size 1") as caught:
        wp.capture_launch(graph)
    assert "a[0] = a[at[0]]" in str(caught.value)
    at.zero_()
    a.fill_(5.0)
    wp.capture_launch(graph)
    graph = captured(lambda: wp.launch(says, dim=1, inputs=[a]))
    assert "5" not in capfd.readouterr().out
    wp.capture_launch(graph)
    wp.synchronize()
    assert capfd.readouterr().out.strip() == "5"


def test_other_threads_go_on_while_one_captures():
    a, b = wp.zeros(1), wp.zeros(1)
    wp.capture_begin()
    wp.launch(add_one, dim=1, inputs=[a])

    def other():
        wp.launch(add_one, dim=1, inputs=[b])
        with pytest.raises(RuntimeError, match="another thread has begun this capture, .*: the thread 'MainThread'"):
            wp.capture_end()
        if wp.get_device().is_cuda:
            with pytest.raises(
                RuntimeError, match="is being captured already, by the thread 'MainThread'. help: capture on"
            ):
                wp.capture_begin()
        results.append(b.list())

    results = []
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    graph = wp.capture_end()
    assert results == [[1.0]] and a.list() == [0.0]
    wp.capture_launch(graph)
    assert a.list() == [1.0] and b.list() == [1.0]


@pytest.mark.host_memory("is about the default stream of the CPU")
def test_threads_capture_at_the_same_time_on_the_cpu():
    """Each has the graph of its own work, without a stream of its own."""
    results, barrier = {}, threading.Barrier(4)

    def work(n):
        x = wp.zeros(8, device="cpu")
        stream = wp.get_stream("cpu")
        for k in range(20):
            barrier.wait(60)
            if k % 2:
                with wp.ScopedCapture(device="cpu") as capture:
                    barrier.wait(60)
                    for _ in range(n + 1):
                        wp.launch(add_one, dim=8, inputs=[x], device="cpu")
                graph = capture.graph
            else:
                wp.capture_begin(device="cpu")
                barrier.wait(60)
                for _ in range(n + 1):
                    wp.launch(add_one, dim=8, inputs=[x], device="cpu")
                graph = wp.capture_end(device="cpu")
            assert wp.get_stream("cpu") == stream
            wp.capture_launch(graph)
        results[n] = set(x.list())

    run_in_threads(work, range(4))
    assert results == {n: {20.0 * (n + 1)} for n in range(4)}


@pytest.mark.host_memory("is about the default stream of the CPU")
def test_a_capture_beside_another_one_ends_after_an_exception():
    x = wp.zeros(1, device="cpu")
    wp.capture_begin(device="cpu")

    def other():
        before = wp.get_stream("cpu")
        with pytest.raises(ValueError, match="mine"), wp.ScopedCapture(device="cpu"):
            raise ValueError("mine")
        assert wp.get_stream("cpu") == before
        with wp.ScopedCapture(device="cpu") as capture:
            wp.launch(add_one, dim=1, inputs=[x], device="cpu")
        wp.capture_launch(capture.graph)
        done.append(x.list())

    done = []
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    wp.launch(add_one, dim=1, inputs=[x], device="cpu")
    graph = wp.capture_end(device="cpu")
    assert done == [[1.0]]
    wp.capture_launch(graph)
    assert x.list() == [2.0]


def test_two_threads_capture_on_streams_of_their_own():
    results, barrier = {}, threading.Barrier(4)

    def work(n):
        x = wp.zeros(64)
        stream = wp.Stream()
        barrier.wait()
        stream.wait_stream(wp.get_stream())
        with wp.ScopedStream(stream, sync_exit=True):
            for _ in range(20):
                with wp.ScopedCapture() as capture:
                    for _ in range(n + 1):
                        wp.launch(add_one, dim=64, inputs=[x])
                wp.capture_launch(capture.graph)
        results[n] = set(x.list())

    run_in_threads(work, range(4))
    assert results == {n: {20.0 * (n + 1)} for n in range(4)}


def test_streams_fork_and_join_in_a_capture():
    a, b = wp.zeros(4), wp.zeros(4)
    first, second = wp.Stream(), wp.Stream()
    wp.capture_begin(stream=first)
    wp.launch(add_one, dim=4, inputs=[a], stream=first)
    second.wait_event(first.record_event())
    assert second.is_capturing
    wp.launch(axpy, dim=4, inputs=[2.0, a, b], stream=second)
    first.wait_stream(second)
    wp.launch(axpy, dim=4, inputs=[1.0, b, a], stream=first)
    graph = wp.capture_end(stream=first)
    assert not second.is_capturing and b.list() == [0.0] * 4
    wp.capture_launch(graph)
    assert (a.list(), b.list()) == ([3.0] * 4, [2.0] * 4)


@pytest.mark.seed("S-STM-007")
def test_streams_and_events_of_the_cpu(device):
    with wp.ScopedDevice(device):
        ours, stream = wp.get_stream(), wp.Stream(device)
        assert ours == wp.get_device(device).stream != stream and stream.device == device
        start, end = (wp.Event(device, enable_timing=True) for _ in range(2))
        a = wp.zeros(1000)
        with wp.ScopedStream(stream, sync_exit=True):
            assert wp.get_stream() == stream
            assert wp.record_event(start).device == device
            wp.launch(add_one, dim=1000, inputs=[a])
            wp.record_event(end)
        assert wp.get_stream() == ours
        assert 0.0 <= wp.get_event_elapsed_time(start, end) < 10_000.0
        wp.wait_event(end)
        wp.wait_stream(stream)
        wp.synchronize_event(end)
        wp.synchronize_stream(stream)
        wp.launch(add_one, dim=1000, inputs=[a], stream=stream)
        wp.wait_stream(stream)
        copy = wp.clone(a)
        stream.wait_stream(ours)
        wp.copy(a, copy, stream=stream)
        wp.synchronize_stream(stream)
        assert set(a.list()) == {2.0}
        wp.set_stream(stream)
        assert wp.get_stream() == stream
        wp.set_stream(ours)
        other = wp.Event(device)
        with pytest.raises(RuntimeError, match="does not measure time"):
            wp.get_event_elapsed_time(start, other)
        with pytest.raises(RuntimeError, match="was not recorded"):
            wp.get_event_elapsed_time(start, wp.Event(device, enable_timing=True))
    for ask in (lambda: wp.ScopedStream(3), lambda: wp.synchronize_event(None), lambda: wp.set_stream(None)):
        with pytest.raises(TypeError, match=r"expected a wp.(Stream|Event), got"):
            ask()
    with wp.ScopedStream(None) as nothing:
        assert nothing is None

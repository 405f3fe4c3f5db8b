"""Captures, conditions and checks of CUDA devices that the CPU cannot show."""

import ctypes
import gc

import numpy as np
import pytest
import warp as wp
from cuda_graph_kernels import DEVICE, add_one, captured, countdown

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


# ---- verify_cuda ----
@pytest.mark.seed("S-INI-007", "P-44")
def test_verify_cuda_names_the_kernel_that_failed_and_its_line(run):
    printed = run("""
        wp.config.verify_cuda = True
        wp.init()

        @wp.kernel
        def fine(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + 1.0

        @wp.kernel
        def wrong(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 1.0

        x = wp.zeros(10, device="cuda:0")
        nowhere = wp.array(ptr=4096, shape=10, dtype=float, device="cuda:0")
        wp.launch(fine, dim=10, inputs=[x], device="cuda:0")
        try:
            wp.launch(wrong, dim=10, inputs=[nowhere], device="cuda:0")
        except RuntimeError as error:
            print("launch:", error)
        try:
            x.zero_()
        except RuntimeError as error:
            print("zero_:", error)
    """)
    launch, zero = printed.split("zero_:")
    assert launch.startswith("launch: launch(): kernel 'wrong' (") and "program.py:13:" in launch, launch
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in launch and "CUDA_ERROR_ILLEGAL_ADDRESS" in zero


@pytest.mark.seed("S-INI-007")
def test_without_verify_cuda_the_error_comes_from_who_waits(run):
    printed = run("""
        @wp.kernel
        def wrong(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 1.0

        nowhere = wp.array(ptr=4096, shape=10, dtype=float, device="cuda:0")
        wp.launch(wrong, dim=10, inputs=[nowhere], device="cuda:0")
        print("launched")
        try:
            wp.synchronize_device("cuda:0")
        except RuntimeError as error:
            print("waited:", error)
    """)
    assert printed.startswith("launched\nwaited: ") and "CUDA_ERROR_ILLEGAL_ADDRESS" in printed


@pytest.mark.seed("S-INI-009")
def test_a_capture_refuses_verify_cuda(monkeypatch):
    a = wp.zeros(3, device=DEVICE)
    monkeypatch.setattr(wp.config, "verify_cuda", True)
    for begin in (lambda: wp.capture_begin(device=DEVICE), lambda: captured(lambda: None)):
        with pytest.raises(RuntimeError, match=r"capture_begin\(\): wp.config.verify_cuda is on"):
            begin()
    assert not wp.get_device(DEVICE).is_capturing
    with wp.ScopedCapture(device="cpu") as on_cpu:  # which has nothing to check
        pass
    assert on_cpu.graph is not None
    monkeypatch.setattr(wp.config, "verify_cuda", False)
    graph = captured(lambda: wp.launch(add_one, dim=3, inputs=[a], device=DEVICE))
    monkeypatch.setattr(wp.config, "verify_cuda", True)  # graphs that are there can be launched, and are waited for
    wp.capture_launch(graph)
    assert a.list() == [1.0] * 3


@pytest.mark.seed("D-22", "D-24")
def test_a_handle_is_a_graph_object_on_cuda_as_on_the_cpu():
    graph = captured(lambda: None)
    assert isinstance(graph, wp.Graph) and graph.device == DEVICE
    wp.capture_launch(graph)


@pytest.mark.seed("S-GRF-007")
def test_a_kernel_may_be_compiled_inside_of_a_capture():
    @wp.kernel(module="unique")
    def never_seen(a: wp.array(dtype=float)):
        i = wp.tid()
        a[i] = a[i] * 3.0 + 0.125

    a = wp.ones(4, dtype=float, device=DEVICE)
    graph = captured(lambda: wp.launch(never_seen, dim=4, inputs=[a], device=DEVICE))
    assert a.list() == [1.0] * 4
    wp.capture_launch(graph)
    assert a.list() == [3.125] * 4


def test_the_graph_is_ordered_with_the_stream_that_it_is_launched_in():
    a, b = wp.zeros(8, device=DEVICE), wp.zeros(8, device=DEVICE)
    graph = captured(lambda: wp.copy(b, a))
    stream = wp.Stream(DEVICE)
    stream.wait_stream(wp.get_stream(DEVICE))
    with wp.ScopedStream(stream, sync_exit=True):
        a.fill_(4.0)
        wp.capture_launch(graph)
        a.fill_(5.0)
        wp.capture_launch(graph, stream=stream)
        wp.launch(add_one, dim=8, inputs=[b], device=DEVICE)
    assert b.list() == [6.0] * 8


def test_work_of_other_streams_falls_between_the_nodes_of_a_graph(run):
    """The orders that the emulated device draws keep what streams and graphs promise, and nothing more."""
    program = """
        @wp.kernel
        def note(log: wp.array(dtype=int), at: wp.array(dtype=int), value: int):
            log[wp.atomic_add(at, 0, 1)] = value

        log, at = wp.zeros(20, dtype=int, device="cuda:0"), wp.zeros(1, dtype=int, device="cuda:0")
        wp.launch(note, 1, inputs=[log, at, 0], device="cuda:0")
        at.zero_()
        wp.synchronize()
        first, second = wp.Stream("cuda:0"), wp.Stream("cuda:0")
        with wp.ScopedCapture(stream=first) as capture:
            for value in range(1, 7):
                wp.launch(note, 1, inputs=[log, at, value], stream=first)
        wp.capture_launch(capture.graph, stream=first)
        for value in range(10, 13):
            wp.launch(note, 1, inputs=[log, at, value], stream=second)
        wp.synchronize()
        print(*log.list()[:9])
    """
    are_mixed = []
    for seed in ("0", "1", "2", "3"):
        values = [int(text) for text in run(program, WEFT_EMULATED_STREAMS=seed).split()]
        assert [value for value in values if value < 10] == list(range(1, 7))
        assert [value for value in values if value >= 10] == [10, 11, 12]
        between = values[values.index(1) : values.index(6)]
        are_mixed.append(any(value >= 10 for value in between))
    assert any(are_mixed), are_mixed


def test_what_a_graph_keeps_is_freed_after_its_last_launch():
    """In whatever stream it was launched: the emulated device finds memory that is freed too early."""
    out = wp.zeros(1000, device=DEVICE)
    stream = wp.Stream(DEVICE)
    stream.wait_stream(wp.get_stream(DEVICE))

    def work():
        made = wp.full(1000, 2.0, dtype=float, device=DEVICE)
        wp.launch(add_one, dim=1000, inputs=[made], device=DEVICE)
        wp.copy(out, made)

    for _ in range(3):
        graph = captured(work)
        wp.capture_launch(graph, stream=stream)
        del graph
        gc.collect()
    wp.synchronize_device(DEVICE)
    assert set(out.list()) == {3.0}


def test_waiting_inside_of_a_capture_is_an_error_and_nothing_more():
    a = wp.zeros(3, device=DEVICE)
    event = wp.Event(DEVICE)
    for ask in (
        wp.synchronize,
        lambda: wp.synchronize_device(DEVICE),
        lambda: wp.synchronize_stream(DEVICE),
        lambda: a.numpy(),
        lambda: wp.synchronize_event(wp.get_stream(DEVICE).record_event(event)),
        lambda: wp.get_stream(DEVICE).record_event().is_complete,
    ):
        with wp.ScopedCapture(device=DEVICE) as capture:
            with pytest.raises(RuntimeError, match=r"a graph is being captured|was recorded in a capture"):
                ask()
            wp.launch(add_one, dim=3, inputs=[a], device=DEVICE)
        a.zero_()
        wp.capture_launch(capture.graph)
        assert a.list() == [1.0] * 3
    before = wp.get_stream(DEVICE).record_event()
    with wp.ScopedCapture(device=DEVICE):
        with pytest.raises(RuntimeError, match="recorded outside of the capture"):
            wp.wait_event(before)
    inside = []
    captured(lambda: inside.append(wp.get_stream(DEVICE).record_event()))
    with pytest.raises(RuntimeError, match="a capture that is over"):
        wp.wait_event(inside[0])


def test_a_stream_that_did_not_come_back_ends_the_capture():
    a, stream = wp.zeros(3, device=DEVICE), wp.Stream(DEVICE)
    with pytest.raises(RuntimeError, match="STREAM_CAPTURE_UNJOINED"):
        with wp.ScopedCapture(device=DEVICE):
            stream.wait_stream(wp.get_stream(DEVICE))
            wp.launch(add_one, dim=3, inputs=[a], stream=stream)
    assert not stream.is_capturing and not wp.get_stream(DEVICE).is_capturing
    wp.launch(add_one, dim=3, inputs=[a], device=DEVICE)
    assert a.list() == [1.0] * 3


def test_prints_of_loops_and_launches_are_all_kept(capfd):
    @wp.kernel
    def says(count: wp.array(dtype=int)):
        print(count[0])

    count = wp.array([3], dtype=int, device=DEVICE)

    def body():
        wp.launch(says, dim=1, inputs=[count], device=DEVICE)
        wp.launch(countdown, dim=1, inputs=[count], device=DEVICE)

    def work():
        wp.capture_while(count, body)
        count.fill_(2)

    graph = captured(work)
    for expected in ("3 2 1 2 1", "2 1 2 1"):
        for _ in range(2):
            wp.capture_launch(graph)
        wp.synchronize_device(DEVICE)
        assert capfd.readouterr().out.split() == expected.split()


def test_faults_of_graphs_inside_of_bodies_are_raised_once():
    @wp.kernel(module_options={"mode": "debug"})
    def reads(a: wp.array(dtype=float), at: wp.array(dtype=int)):
        a[0] = a[at[0]]

    a, at = wp.array([5.0], dtype=float, device=DEVICE), wp.array([7], dtype=int, device=DEVICE)
    flag = wp.ones(1, dtype=int, device=DEVICE)
    inner = captured(lambda: wp.launch(reads, dim=1, inputs=[a, at], device=DEVICE))
    for graph in (
        captured(lambda: wp.capture_launch(inner)),
        captured(lambda: wp.capture_if(flag, inner)),
        captured(lambda: wp.capture_if(flag, lambda: wp.launch(reads, dim=1, inputs=[a, at], device=DEVICE))),
    ):
        at.fill_(7)
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            wp.capture_launch(graph)
        at.zero_()
        wp.capture_launch(graph)
        wp.synchronize_device(DEVICE)


# ---- conditions ----
def test_conditions_in_conditions():
    assert wp.is_conditional_graph_supported()
    outer, inner = wp.array([2], dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    flag, a, b = wp.zeros(1, dtype=int, device=DEVICE), wp.zeros(1, device=DEVICE), wp.zeros(1, device=DEVICE)

    def inner_body():
        wp.launch(add_one, dim=1, inputs=[a], device=DEVICE)
        wp.launch(countdown, dim=1, inputs=[inner], device=DEVICE)

    def on_false():
        b.fill_(7.0)
        flag.fill_(0)

    def body():
        inner.fill_(3)
        wp.capture_while(inner, inner_body)
        wp.capture_if(flag, lambda: wp.launch(add_one, dim=1, inputs=[b], device=DEVICE), on_false)
        wp.launch(countdown, dim=1, inputs=[outer], device=DEVICE)

    graph = captured(lambda: wp.capture_while(outer, body))
    wp.capture_launch(graph)
    assert (a.list(), b.list(), outer.list()) == ([6.0], [7.0], [0])
    outer.fill_(1)
    flag.fill_(1)
    wp.capture_launch(graph)
    assert (a.list(), b.list()) == ([9.0], [8.0])


def test_a_body_that_changes_its_condition_does_not_start_the_other():
    flag, a = wp.ones(1, dtype=int, device=DEVICE), wp.zeros(1, device=DEVICE)
    graph = captured(lambda: wp.capture_if(flag, flag.zero_, lambda: a.fill_(1.0)))
    wp.capture_launch(graph)
    assert (flag.list(), a.list()) == ([0], [0.0])
    wp.capture_launch(graph)
    assert a.list() == [1.0]


@wp.kernel
def record(a: wp.array(dtype=float), at: wp.array(dtype=int), value: float):
    i = at[0]
    a[i] = value
    at[0] = i + 1


def test_a_graph_with_conditions_becomes_a_part_of_another():
    """Its nodes become nodes of the other graph: launches, copies, fills, the host's numbers, events, and in bodies."""
    count, flag = wp.zeros(1, dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    log, at = wp.zeros(100, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    wide = wp.zeros((4, 6), dtype=wp.vec3, device=DEVICE)
    event = wp.Event(DEVICE, enable_timing=True)

    def note(value):
        wp.launch(record, dim=1, inputs=[log, at, float(value)], device=DEVICE)

    def inner_work():
        note(1)
        made = wp.full(3, 5.0, device=DEVICE)  # begins anew each time
        wp.launch(add_one, dim=3, inputs=[made], device=DEVICE)
        wp.copy(log, made, dest_offset=90)
        wide[1:3, ::2].fill_(wp.vec3(1.0, 2.0, 3.0))
        wp.copy(wide[0], wp.array(np.arange(18).reshape(6, 3), dtype=wp.vec3, device="cpu"))
        count.assign([3])
        wp.get_stream(DEVICE).record_event(event, external=True)

        def turn():
            note(2)
            wp.capture_if(flag, lambda: note(3), lambda: note(4))
            wp.launch(countdown, dim=1, inputs=[count], device=DEVICE)

        wp.capture_while(count, turn)
        note(5)

    graphs = [captured(inner_work)]

    def outer_work():
        note(10)
        wp.capture_launch(graphs[0])
        note(11)
        wp.capture_launch(graphs[0])

    graphs.append(captured(outer_work))
    outermost = captured(lambda: (wp.capture_launch(graphs[1]), note(20)))
    graphs.clear()
    gc.collect()
    once = [1.0, 2.0, 4.0, 2.0, 4.0, 2.0, 4.0, 5.0]
    expected = [10.0, *once, 11.0, *once, 20.0]
    for with_flag in (False, True):
        flag.fill_(int(with_flag))
        at.zero_()
        wide.zero_()
        wp.capture_launch(outermost)
        done = [3.0 if with_flag and value == 4.0 else value for value in expected]
        assert log.list()[: len(done)] == done and at.list() == [len(done)] and count.list() == [0]
        assert log.list()[90:93] == [6.0] * 3
        found = wide.numpy()
        np.testing.assert_array_equal(found[0], np.arange(18).reshape(6, 3))
        np.testing.assert_array_equal(found[1:3, ::2], np.broadcast_to([1.0, 2.0, 3.0], (2, 3, 3)))
        assert not found[1:3, 1::2].any() and not found[3].any()


def test_a_graph_with_conditions_is_a_body_and_prints_and_raises_there(capfd):
    @wp.kernel
    def says(count: wp.array(dtype=int)):
        print(count[0])

    @wp.kernel
    def refuses(count: wp.array(dtype=int), limit: int):
        if count[0] > limit:
            raise ValueError("too many")

    count, flag = wp.zeros(1, dtype=int, device=DEVICE), wp.ones(1, dtype=int, device=DEVICE)

    def turn():
        wp.launch(says, dim=1, inputs=[count], device=DEVICE)
        wp.launch(refuses, dim=1, inputs=[count, 5], device=DEVICE)
        wp.launch(countdown, dim=1, inputs=[count], device=DEVICE)

    inner = [captured(lambda: wp.capture_while(count, turn))]
    outer = captured(lambda: wp.capture_if(flag, inner[0]))
    inner.clear()
    gc.collect()
    count.fill_(3)
    wp.capture_launch(outer)
    wp.synchronize()
    assert capfd.readouterr().out.split() == ["3", "2", "1"]
    count.fill_(6)
    wp.capture_launch(outer)
    with pytest.raises(ValueError, match="too many"):
        wp.synchronize()
    assert count.list() == [0]
    count.fill_(1)
    wp.capture_launch(outer)


def test_work_of_another_library_in_a_graph_with_conditions_is_not_lost(other):
    """Weft cannot capture it once more: an error, and not a graph without it."""
    count, x = wp.zeros(1, dtype=int, device=DEVICE), wp.zeros(4, device=DEVICE)
    stream = wp.Stream(DEVICE)
    wp.synchronize()
    with wp.ScopedCapture(stream=stream) as capture:
        handle = ctypes.c_void_p(stream.cuda_stream)
        other.call("cuMemsetD32Async", ctypes.c_uint64(x.ptr), 0x40000000, ctypes.c_size_t(4), handle)
        with wp.ScopedStream(stream, sync_enter=False):
            wp.capture_while(count, lambda: wp.launch(countdown, dim=1, inputs=[count], device=DEVICE))
    wp.capture_launch(capture.graph, stream=stream)
    wp.synchronize_stream(stream)
    assert x.list() == [2.0] * 4
    with pytest.raises(RuntimeError, match="there is no graph: a graph with conditions could not become a part of it"):
        with wp.ScopedCapture(device=DEVICE):
            with pytest.raises(RuntimeError, match=r"conditions, and work of another library"):
                wp.capture_launch(capture.graph)
    x.zero_()
    wp.synchronize()


def test_an_exception_in_a_body_ends_the_capture():
    count = wp.array([2], dtype=int, device=DEVICE)

    def body():
        wp.launch(countdown, dim=1, inputs=[count], device=DEVICE)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        captured(lambda: wp.capture_while(count, body))
    with pytest.raises(RuntimeError, match="there is no graph: an exception has left the body of a condition"):
        with wp.ScopedCapture(device=DEVICE):
            with pytest.raises(ZeroDivisionError):
                wp.capture_while(count, body)
    wp.launch(countdown, dim=1, inputs=[count], device=DEVICE)
    assert count.list() == [1]

"""Streams and events of CUDA devices: those of two devices, those of other libraries, and events that measure time, in
graphs too."""

import ctypes

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE, OTHER = "cuda:0", "cuda:1"


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def spin(x: wp.array[float], turns: int):
    i = wp.tid()
    for _ in range(turns):
        x[i] = x[i] * 0.5 + 1.0


@wp.kernel
def add(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = y[i] + x[i]


@pytest.fixture
def two(two_gpus):
    if not wp.is_mempool_access_supported(OTHER, DEVICE):
        pytest.skip("the GPUs cannot reach each other's memory")


# ---- two devices ----


def orders(make_wait):
    """Whether work on cuda:0 reads the results of work on cuda:1, if `make_wait(first, second)` orders two streams.

    On the emulated device work that nothing orders is done in the wrong order.
    """
    first, second = wp.Stream(OTHER), wp.Stream(DEVICE)
    x, y = wp.zeros(100, dtype=float, device=OTHER), wp.zeros(100, dtype=float, device=DEVICE)
    wp.synchronize()
    with wp.ScopedMempoolAccess(OTHER, DEVICE, True):
        for _ in range(3):
            wp.launch(add_one, 100, inputs=[x], device=OTHER, stream=first)
        make_wait(first, second)
        wp.launch(add, 100, inputs=[x, y], device=DEVICE, stream=second)
        wp.synchronize_stream(second)
        done = y.numpy()[0] == 3.0
        wp.synchronize()
    return done


def waits_for_the_stream(first, second):
    second.wait_stream(first)


def waits_with_an_event_of_the_program(first, second):
    second.wait_stream(first, wp.Event(OTHER))


def waits_for_an_event(first, second):
    second.wait_event(first.record_event())


def waits_by_functions(first, second):
    with wp.ScopedDevice(DEVICE), wp.ScopedStream(first, sync_enter=False), wp.ScopedStream(second, sync_enter=False):
        wp.wait_event(wp.record_event(wp.Event(OTHER)))


def waits_by_the_function_for_streams(first, second):
    with wp.ScopedDevice(DEVICE), wp.ScopedStream(second, sync_enter=False):
        wp.wait_stream(first)


@pytest.mark.parametrize(
    "way",
    [
        waits_for_the_stream,
        waits_with_an_event_of_the_program,
        waits_for_an_event,
        waits_by_functions,
        waits_by_the_function_for_streams,
    ],
)
def test_streams_of_two_devices_wait_for_each_other(two, way):
    assert orders(way)


def test_without_waiting_nothing_orders_two_devices(two):
    if wp.get_device(DEVICE).is_emulated:
        assert not orders(lambda first, second: None)


def test_an_event_is_recorded_on_its_own_device_and_waited_for_by_another_after_that_is_gone(two):
    def through_a_lost_event(first, second):
        event = first.record_event()
        second.wait_event(event)
        del event

    assert orders(through_a_lost_event)
    event = wp.Event(DEVICE)
    text = "the event is of 'cuda:0', the stream of 'cuda:1'. help: an event is recorded in streams of its own device"
    for record in (
        lambda: wp.Stream(OTHER).record_event(event),
        lambda: wp.Stream(DEVICE).wait_stream(wp.Stream(OTHER), event),
    ):
        with pytest.raises(RuntimeError, match=text):
            record()
    measured = [wp.Event(device, enable_timing=True) for device in (DEVICE, OTHER)]
    for each in measured:
        wp.record_event(each)
    with pytest.raises(RuntimeError, match="the events are of 'cuda:0' and 'cuda:1', expected one device"):
        wp.get_event_elapsed_time(*measured)


def test_streams_of_a_gpu_and_of_the_cpu_do_not_wait_for_each_other():
    ours, theirs = wp.Stream(DEVICE), wp.Stream("cpu")
    for wait in (
        lambda: ours.wait_stream(theirs),
        lambda: theirs.wait_stream(ours),
        lambda: ours.wait_event(theirs.record_event()),
        lambda: theirs.wait_event(ours.record_event()),
    ):
        with pytest.raises(RuntimeError, match="those of CUDA devices for each other; the host waits by"):
            wait()


def test_a_capture_takes_no_stream_of_another_device(two):
    a = wp.zeros(3, dtype=float, device=DEVICE)
    other = wp.Stream(OTHER)
    with wp.ScopedCapture(device=DEVICE) as capture:
        event = wp.get_stream(DEVICE).record_event()
        with pytest.raises(RuntimeError, match="a graph stays on one device"):
            other.wait_event(event)
        wp.launch(add_one, 3, inputs=[a], device=DEVICE)
    assert not other.is_capturing
    wp.capture_launch(capture.graph)
    assert a.list() == [1.0] * 3


def test_arguments_that_no_stream_or_event_has():
    with pytest.raises(TypeError):
        wp.Event(DEVICE, timing=True)
    with pytest.raises(TypeError):
        wp.Stream(DEVICE, cuda_event=1)
    with pytest.raises(RuntimeError, match="events of 'cpu' cannot be shared with other processes"):
        wp.Event("cpu", interprocess=True)
    with pytest.raises(ValueError, match="events of several processes have no time"):
        wp.Event(DEVICE, interprocess=True, enable_timing=True)
    with pytest.raises(ValueError, match="cuda_event is given"):
        wp.Event(DEVICE, interprocess=True, cuda_event=1)
    for wrong, error in ((0, ValueError), ("x", TypeError)):
        with pytest.raises(error, match=r"cuda_event is .*expected the handle of an event"):
            wp.Event(DEVICE, cuda_event=wrong)
    with pytest.raises(ValueError, match="cuda_event is for CUDA devices"):
        wp.Event("cpu", cuda_event=1)


# ---- what streams say ----


def test_a_stream_says_whether_its_work_is_done():
    stream, x = wp.Stream(DEVICE), wp.zeros(10, dtype=float, device=DEVICE)
    wp.synchronize()
    assert stream.is_complete
    for _ in range(5):
        wp.launch(add_one, 10, inputs=[x], stream=stream)
    if wp.get_device(DEVICE).is_emulated:
        assert not stream.is_complete
    for _ in range(1000):  # who asks again and again comes to the end
        if stream.is_complete:
            break
    wp.synchronize_stream(stream)
    assert stream.is_complete and set(x.list()) == {5.0}
    assert wp.Stream("cpu").is_complete
    with wp.ScopedCapture(device=DEVICE):
        with pytest.raises(RuntimeError, match=r"Stream.is_complete: a graph is being captured"):
            _ = wp.get_stream(DEVICE).is_complete


def test_priorities_of_streams():
    usual, urgent = wp.Stream(DEVICE), wp.Stream(DEVICE, priority=-1)
    assert (usual.priority, urgent.priority, wp.Stream("cpu").priority) == (0, -1, 0)
    lent = wp.Stream(DEVICE, cuda_stream=urgent.cuda_stream)
    assert lent.priority == -1


# ---- events of other libraries ----


@pytest.fixture
def driver():
    """The emulated driver, as another library of the process calls it."""
    if not wp.get_device(DEVICE).is_emulated:
        pytest.skip("uses the emulated driver by itself")
    wp.synchronize()
    from pathlib import Path

    loaded = ctypes.CDLL(str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")))
    context = ctypes.c_void_p()
    assert loaded.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert loaded.cuCtxSetCurrent(context) == 0
    return loaded


def made(driver, name, *arguments):
    handle = ctypes.c_void_p()
    assert getattr(driver, name)(ctypes.byref(handle), *arguments) == 0
    return handle


def test_an_event_of_another_library_orders_our_work(driver):
    handle, stream = made(driver, "cuEventCreate", 0), made(driver, "cuStreamCreate", 1)
    event = wp.Event(DEVICE, cuda_event=handle.value)
    assert event.cuda_event == handle.value and event.device == DEVICE
    x, y = wp.zeros(10, dtype=float, device=DEVICE), wp.zeros(10, dtype=float, device=DEVICE)
    ours = wp.Stream(DEVICE)
    wp.synchronize()
    # their library fills x, and records its event behind that; our stream waits
    assert driver.cuMemsetD32Async(ctypes.c_uint64(x.ptr), 0x40000000, ctypes.c_size_t(10), stream) == 0
    assert driver.cuEventRecord(handle, stream) == 0
    ours.wait_event(event)
    wp.launch(add, 10, inputs=[x, y], stream=ours)
    wp.synchronize_stream(ours)
    assert set(y.list()) == {2.0}
    wp.synchronize_event(event)
    assert event.is_complete
    # the other way: we record, their stream waits
    wp.launch(add_one, 10, inputs=[x], stream=ours)
    assert ours.record_event(event) is event
    assert driver.cuStreamWaitEvent(stream, handle, 0) == 0
    host = np.zeros(10, dtype=np.float32)
    assert driver.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(host.ctypes.data), ctypes.c_uint64(x.ptr), 40, stream) == 0
    assert driver.cuStreamSynchronize(stream) == 0
    assert set(host.tolist()) == {3.0}
    del event  # it is theirs
    assert driver.cuEventQuery(handle) == 0 and driver.cuEventDestroy_v2(handle) == 0


def test_events_of_another_library_measure_time_where_they_do(driver):
    begin, end = (wp.Event(DEVICE, cuda_event=made(driver, "cuEventCreate", 0).value) for _ in range(2))
    x = wp.zeros(10, dtype=float, device=DEVICE)
    with pytest.raises(RuntimeError, match="was not recorded, or was made without time"):
        wp.get_event_elapsed_time(begin, end)
    wp.record_event(begin)
    wp.launch(spin, 10, inputs=[x, 1000], device=DEVICE)
    wp.record_event(end)
    assert wp.get_event_elapsed_time(begin, end) > 0.0
    without_time = wp.Event(DEVICE, cuda_event=made(driver, "cuEventCreate", 2).value)
    wp.record_event(without_time)
    with pytest.raises(RuntimeError, match="was not recorded, or was made without time"):
        wp.get_event_elapsed_time(begin, without_time)


def test_our_events_are_of_use_to_another_library(driver):
    event, stream = wp.Event(DEVICE), made(driver, "cuStreamCreate", 1)
    x, y = wp.zeros(10, dtype=float, device=DEVICE), wp.zeros(10, dtype=float, device=DEVICE)
    wp.synchronize()
    handle = ctypes.c_void_p(event.cuda_event)
    assert driver.cuMemsetD32Async(ctypes.c_uint64(x.ptr), 0x40000000, ctypes.c_size_t(10), stream) == 0
    assert driver.cuEventRecord(handle, stream) == 0
    wp.get_stream(DEVICE).wait_event(event)
    wp.launch(add, 10, inputs=[x, y], device=DEVICE)
    assert set(y.list()) == {2.0}
    assert wp.Event("cpu").cuda_event is None


def test_an_event_of_another_library_s_capture_joins_our_stream_to_it(driver):
    stream, handle = made(driver, "cuStreamCreate", 1), made(driver, "cuEventCreate", 2)
    event, ours, back = wp.Event(DEVICE, cuda_event=handle.value), wp.Stream(DEVICE), wp.Event(DEVICE)
    x = wp.zeros(10, dtype=float, device=DEVICE)
    wp.synchronize()
    wp.launch(add_one, 10, inputs=[x], stream=ours)  # compiled before the capture
    wp.synchronize()
    assert driver.cuStreamBeginCapture_v2(stream, 1) == 0
    assert driver.cuEventRecord(handle, stream) == 0
    ours.wait_event(event)
    wp.launch(add_one, 10, inputs=[x], stream=ours)
    ours.record_event(back)
    assert driver.cuStreamWaitEvent(stream, ctypes.c_void_p(back.cuda_event), 0) == 0
    graph = ctypes.c_void_p()
    assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
    ready = made(driver, "cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
    assert set(x.list()) == {1.0}
    for _ in range(2):
        assert driver.cuGraphLaunch(ready, stream) == 0
    assert driver.cuStreamSynchronize(stream) == 0
    assert set(x.list()) == {3.0}
    assert driver.cuGraphExecDestroy(ready) == 0 and driver.cuGraphDestroy(graph) == 0
    wp.synchronize()


def test_an_event_of_another_library_from_outside_is_refused_in_our_capture(driver):
    handle, stream = made(driver, "cuEventCreate", 2), made(driver, "cuStreamCreate", 1)
    event = wp.Event(DEVICE, cuda_event=handle.value)
    assert driver.cuEventRecord(handle, stream) == 0
    a = wp.zeros(3, dtype=float, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        with pytest.raises(RuntimeError, match=r"recorded outside of the capture.*external=True"):
            wp.get_stream(DEVICE).wait_event(event)
        wp.launch(add_one, 3, inputs=[a], device=DEVICE)
    wp.capture_launch(capture.graph)
    assert a.list() == [1.0] * 3


# ---- events that graphs record ----


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_graph_measures_its_own_time(device):
    begin, middle, end = (wp.Event(device, enable_timing=True) for _ in range(3))
    x = wp.zeros(64, dtype=float, device=device)
    with wp.ScopedDevice(device):
        wp.launch(spin, 64, inputs=[x, 1])
        with wp.ScopedCapture() as capture:
            wp.record_event(begin, external=True)
            wp.launch(spin, 64, inputs=[x, 2_000_000])
            wp.get_stream().record_event(middle, external=True)
            wp.launch(spin, 64, inputs=[x, 20])
            wp.record_event(end, external=True)
        with pytest.raises(RuntimeError, match=r"was not recorded|it was not\. help: wp.capture_launch"):
            wp.get_event_elapsed_time(begin, end)
        for _ in range(3):
            wp.capture_launch(capture.graph)
            long, short = wp.get_event_elapsed_time(begin, middle), wp.get_event_elapsed_time(middle, end)
            assert wp.get_event_elapsed_time(begin, end) == pytest.approx(long + short, abs=1e-3)
            assert long > short > 0.0


def test_an_event_of_a_graph_is_there_before_the_graph_is_done():
    x, y = wp.zeros(10, dtype=float, device=DEVICE), wp.zeros(10, dtype=float, device=DEVICE)
    event, other = wp.Event(DEVICE), wp.Stream(DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(add_one, 10, inputs=[x], device=DEVICE)
        wp.get_stream(DEVICE).record_event(event, external=True)
        for _ in range(3):
            wp.launch(add_one, 10, inputs=[y], device=DEVICE)
    wp.synchronize()
    out = wp.zeros(10, dtype=float, device=DEVICE)
    wp.synchronize()
    wp.capture_launch(capture.graph)
    other.wait_event(event)
    wp.launch(add, 10, inputs=[x, out], stream=other)
    wp.synchronize_stream(other)
    if wp.get_device(DEVICE).is_emulated:
        assert not wp.get_stream(DEVICE).is_complete
    assert set(out.numpy().tolist()) == {1.0}
    assert set(y.list()) == {3.0}


def test_each_launch_of_a_graph_waits_for_an_event():
    x, y = wp.zeros(10, dtype=float, device=DEVICE), wp.zeros(10, dtype=float, device=DEVICE)
    event, other, mine = wp.Event(DEVICE), wp.Stream(DEVICE), wp.Stream(DEVICE)
    with wp.ScopedCapture(stream=mine) as capture:
        mine.wait_event(event, external=True)
        wp.launch(add, 10, inputs=[x, y], stream=mine)
    wp.synchronize()
    for turn in range(3):
        wp.launch(add_one, 10, inputs=[x], stream=other)
        other.record_event(event)
        wp.capture_launch(capture.graph, stream=mine)
        other.wait_stream(mine)
        wp.synchronize_stream(mine)
        assert set(y.list()) == {sum(range(1, turn + 2))}


def test_a_graph_keeps_the_events_that_it_records():
    begin, end = (wp.Event(DEVICE, enable_timing=True) for _ in range(2))
    x = wp.zeros(10, dtype=float, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.get_stream(DEVICE).record_event(begin, external=True)
        wp.launch(add_one, 10, inputs=[x], device=DEVICE)
        wp.get_stream(DEVICE).record_event(end, external=True)
    del begin, end
    wp.capture_launch(capture.graph)
    assert set(x.list()) == {1.0}


def test_a_child_graph_records_events():
    event, x = wp.Event(DEVICE, enable_timing=True), wp.zeros(10, dtype=float, device=DEVICE)
    first = wp.Event(DEVICE, enable_timing=True)
    with wp.ScopedCapture(device=DEVICE) as inner:
        wp.launch(add_one, 10, inputs=[x], device=DEVICE)
        wp.get_stream(DEVICE).record_event(event, external=True)
    with wp.ScopedCapture(device=DEVICE) as outer:
        wp.get_stream(DEVICE).record_event(first, external=True)
        wp.capture_launch(inner.graph)
    wp.capture_launch(outer.graph)
    assert wp.get_event_elapsed_time(first, event) > 0.0
    assert set(x.list()) == {1.0}


def test_bodies_of_conditions_have_no_events_of_the_world():
    if not wp.is_conditional_graph_supported():
        pytest.skip("the driver has no conditions")
    flag, x = wp.ones(1, dtype=int, device=DEVICE), wp.zeros(3, dtype=float, device=DEVICE)
    event = wp.Event(DEVICE)

    def body():
        for ask in (wp.get_stream(DEVICE).record_event, wp.get_stream(DEVICE).wait_event):
            with pytest.raises(RuntimeError, match="the body of a condition on 'cuda:0' has no events of the world"):
                ask(event, external=True)
        wp.launch(add_one, 3, inputs=[x], device=DEVICE)

    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.capture_if(flag, body)
    wp.capture_launch(capture.graph)
    assert x.list() == [1.0] * 3


def test_outside_of_a_capture_external_says_nothing():
    stream, event, x = wp.Stream(DEVICE), wp.Event(DEVICE), wp.zeros(3, dtype=float, device=DEVICE)
    wp.synchronize()
    wp.launch(add_one, 3, inputs=[x], stream=stream)
    stream.record_event(event, external=True)
    wp.get_stream(DEVICE).wait_event(event, external=True)
    wp.launch(add_one, 3, inputs=[x], device=DEVICE)
    assert x.list() == [2.0] * 3


# ---- what work takes ----


def test_each_piece_of_work_is_timed():
    x, y = wp.zeros(64, dtype=float, device=DEVICE), wp.zeros(64, dtype=float, device=DEVICE)
    host = wp.zeros(64, dtype=float, device="cpu")
    wide = wp.zeros((8, 8), dtype=float, device=DEVICE)

    def work():
        wp.launch(spin, 64, inputs=[x, 2_000_000], device=DEVICE)
        wp.launch(add_one, 64, inputs=[x], device=DEVICE)
        y.zero_()
        wp.copy(y, x)
        wp.copy(x, host)
        y.numpy()
        wide[:, ::2].fill_(1.0)

    work()
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(add_one, 64, inputs=[x], device=DEVICE)
    wp.timing_begin()
    work()
    wp.capture_launch(capture.graph)
    results = wp.timing_end()
    names = [result.name for result in results]
    assert names[:6] == ["kernel spin", "kernel add_one", "memset", "memcpy DtoD", "memcpy HtoD", "memcpy DtoH"]
    assert names[-1] == "graph" and "builtin kernel weft_copy_4" in names
    assert all(result.device == DEVICE and result.elapsed >= 0.0 for result in results)
    assert results[0].elapsed > results[1].elapsed > 0.0
    kinds = {"kernel": wp.TIMING_KERNEL, "memset": wp.TIMING_MEMSET, "memcpy": wp.TIMING_MEMCPY}
    kinds |= {"graph": wp.TIMING_GRAPH, "builtin": wp.TIMING_KERNEL_BUILTIN}
    assert all(result.filter == kinds[result.name.split()[0]] for result in results)
    with pytest.raises(RuntimeError, match="nothing is being timed"):
        wp.timing_end()
    if wp.get_cuda_device_count() > 1:
        wp.timing_begin(wp.TIMING_MEMCPY | wp.TIMING_GRAPH)
        there = x.to(OTHER)
        wp.launch(add_one, 64, inputs=[there], device=OTHER)
        found = wp.timing_end(synchronize=False)
        assert [(result.name, result.device) for result in found] == [("memcpy PtoP", OTHER)]


def test_timers_list_what_they_timed_and_nest():
    x, told = wp.zeros(64, dtype=float, device=DEVICE), []
    wp.launch(add_one, 64, inputs=[x], device=DEVICE)
    report = lambda results, indent: told.append(([result.name for result in results], indent))  # noqa: E731
    with wp.ScopedTimer("outer", cuda_filter=wp.TIMING_ALL, synchronize=True, report_func=report) as outer:
        wp.launch(add_one, 64, inputs=[x], device=DEVICE)
        with wp.ScopedTimer("inner", cuda_filter=wp.TIMING_MEMSET, report_func=report):
            x.zero_()
            wp.launch(add_one, 64, inputs=[x], device=DEVICE)
        with wp.ScopedTimer("plain", report_func=report):
            x.zero_()
    one, two = "kernel add_one", "memset"
    assert told == [([two], "    "), ([], "    "), ([one, two, one, two], "")]
    assert outer.elapsed >= sum(result.elapsed for result in outer.timing_results) > 0.0


def test_a_timer_prints_what_it_timed():
    lines = []

    class Kept:
        def debug(self, text):
            pass

        info = staticmethod(lines.append)
        warning = error = debug

    x = wp.zeros(64, dtype=float, device=DEVICE)
    with wp.ScopedLogger(Kept()):
        with wp.ScopedTimer("block", cuda_filter=wp.TIMING_ALL):
            x.zero_()
        with wp.ScopedTimer("nothing", cuda_filter=wp.TIMING_ALL):
            pass
    text = "\n".join(lines)
    assert "memset took" in text and "on cuda:0" in text and "block took" in text and "No activity" in text


def test_ranges_for_profilers(monkeypatch):
    import sys
    from types import SimpleNamespace

    calls = []

    def start_range(name, color):
        calls.append(("start", name, color))
        return 7

    monkeypatch.setitem(
        sys.modules, "nvtx", SimpleNamespace(start_range=start_range, end_range=lambda at: calls.append(("end", at)))
    )
    with wp.ScopedTimer("step", use_nvtx=True, color="blue", print=False):
        calls.append("inside")
    with wp.ScopedTimer("off", active=False, use_nvtx=True):
        pass
    assert calls == [("start", "step", "blue"), "inside", ("end", 7)]
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(RuntimeError, match="use_nvtx needs the package nvtx"):
        wp.ScopedTimer("step", use_nvtx=True)

"""Captures, streams and graphs of other libraries, and calls of the driver that fail."""

import ctypes
import gc
import subprocess

import numpy as np
import pytest
import warp as wp
from cuda_graph_kernels import DEVICE, add_one, captured, countdown

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


# ---- other libraries ----
def test_streams_of_other_libraries(other):
    handle = other.made("cuStreamCreate", 1)
    stream = wp.Stream(DEVICE, cuda_stream=handle.value)
    assert stream.cuda_stream == handle.value and wp.Stream("cpu").cuda_stream is None
    a = wp.zeros(100, device=DEVICE)
    stream.wait_stream(wp.get_stream(DEVICE))
    with wp.ScopedStream(stream, sync_exit=True):
        wp.launch(add_one, dim=100, inputs=[a], device=DEVICE)
        assert wp.clone(a).list() == [1.0] * 100
    assert a.list() == [1.0] * 100
    del stream
    gc.collect()
    other.call("cuStreamDestroy_v2", handle)  # it is theirs
    legacy = wp.Stream(DEVICE, cuda_stream=0)
    wp.launch(add_one, dim=100, inputs=[a], stream=legacy)
    wp.synchronize_stream(legacy)
    assert a.list() == [2.0] * 100
    with pytest.raises(RuntimeError, match="CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        wp.capture_begin(stream=legacy)
    with pytest.raises(ValueError, match="cuda_stream is for CUDA devices, and 'cpu' is none"):
        wp.Stream("cpu", cuda_stream=1)
    with pytest.raises(TypeError, match="cuda_stream is str, expected the handle of a stream"):
        wp.Stream(DEVICE, cuda_stream="x")


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("ours", [False, True])
def test_launches_in_the_capture_of_another_library(other, external, ours):
    """Into a stream of theirs, and into one of ours that they capture; whether Weft is told of it or not."""
    if ours:
        stream = wp.Stream(DEVICE)
        handle = ctypes.c_void_p(stream.cuda_stream)
    else:
        handle = other.made("cuStreamCreate", 1)
        stream = wp.Stream(DEVICE, cuda_stream=handle.value)
    out, flag = wp.zeros(1000, device=DEVICE), wp.array([1], dtype=int, device=DEVICE)

    def work():
        x = wp.array(np.arange(1000), dtype=float)
        wp.launch(add_one, dim=1000, inputs=[x])
        made = wp.full(1000, 2.0, dtype=float)
        wp.utils.array_scan(made, made)
        wp.copy(out, x)
        wp.capture_if(flag, lambda: out.fill_(0.5))
        return wp.get_device(DEVICE).is_capturing

    wp.synchronize_device(DEVICE)
    graphs = []
    with wp.ScopedDevice(DEVICE), wp.ScopedStream(stream, sync_enter=False):
        for _ in range(2):
            other.begin(handle)
            if external:
                with wp.ScopedCapture(stream=stream, external=True) as capture:
                    assert work()
                assert capture.graph is None
            else:
                assert work()
            graphs.append(other.end(handle))
            assert not stream.is_capturing
    gc.collect()
    litter = [wp.full(1000, 99.0, dtype=float, device=DEVICE) for _ in range(20)]
    wp.synchronize_device(DEVICE)
    for graph in graphs:
        flag.fill_(0)
        wp.synchronize_device(DEVICE)
        other.launch(graph, handle)
        np.testing.assert_array_equal(out.numpy(), np.arange(1000) + 1)
        flag.fill_(1)
        wp.synchronize_device(DEVICE)
        other.launch(graph, handle)
        assert set(out.list()) == {0.5}
        other.call("cuGraphExecDestroy", graph)
    del litter
    wp.synchronize_device(DEVICE)


def test_what_a_foreign_graph_used_is_freed_with_it(other):
    def allocations():
        gc.collect()
        for _ in range(2):  # the first one finds the memory that is free now
            wp.synchronize_device(DEVICE)
        return other.driver.weftEmulatedAlive(b"allocations")

    stream = wp.Stream(DEVICE)
    handle = ctypes.c_void_p(stream.cuda_stream)
    with wp.ScopedDevice(DEVICE):
        out = wp.zeros(10)
        wp.launch(add_one, dim=10, inputs=[out])
        wp.copy(out, wp.array(np.arange(10), dtype=float))
        wp.synchronize_device(DEVICE)
        before = allocations()
        other.begin(handle)
        with wp.ScopedStream(stream, sync_enter=False):
            for _ in range(5):
                made = wp.array(np.arange(10), dtype=float)
                wp.launch(add_one, dim=10, inputs=[made])
                wp.copy(out, made)
        del made
        graph = other.end(handle)
        gc.collect()
        assert allocations() >= before + 5
        other.launch(graph, handle)
        assert out.list() == [i + 1.0 for i in range(10)]
        other.call("cuGraphExecDestroy", graph)
        assert allocations() == before


def test_what_kernels_of_a_foreign_graph_say_comes_with_the_next_wait(other, capfd):
    @wp.kernel
    def says(a: wp.array(dtype=float)):
        print(a[0])

    @wp.kernel(module_options={"mode": "debug"})
    def reads(a: wp.array(dtype=float), at: wp.array(dtype=int)):
        a[0] = a[at[0]]

    a, at = wp.array([5.0], dtype=float, device=DEVICE), wp.array([3], dtype=int, device=DEVICE)
    wp.synchronize_device(DEVICE)
    stream = wp.Stream(DEVICE)
    handle = ctypes.c_void_p(stream.cuda_stream)
    other.begin(handle)
    with wp.ScopedStream(stream, sync_enter=False):
        wp.launch(says, dim=1, inputs=[a], device=DEVICE)
        wp.launch(reads, dim=1, inputs=[a, at], device=DEVICE)
    graph = other.end(handle)
    for _ in range(2):
        other.launch(graph, handle)
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            wp.synchronize_device(DEVICE)
    wp.synchronize_device(DEVICE)
    assert capfd.readouterr().out.split() == ["5", "0"]  # the value that was read out of bounds
    other.call("cuGraphExecDestroy", graph)


def test_captures_that_belong_to_somebody_else(other):
    stream = wp.Stream(DEVICE)
    handle = ctypes.c_void_p(stream.cuda_stream)
    with pytest.raises(RuntimeError, match="external=True, and this stream is not captured"):
        wp.capture_begin(stream=stream, external=True)
    other.begin(handle)
    with pytest.raises(RuntimeError, match="is being captured already"):
        wp.capture_begin(stream=stream)
    with pytest.raises(RuntimeError, match="a graph is being captured"):
        wp.synchronize_stream(stream)
    other.call("cuGraphExecDestroy", other.end(handle))
    with pytest.raises(RuntimeError, match="external=True is for streams of CUDA"):
        wp.capture_begin(device="cpu", external=True)
    a = wp.zeros(3, device=DEVICE)
    wp.launch(add_one, dim=3, inputs=[a], device=DEVICE)
    assert a.list() == [1.0] * 3


# ---- calls of the driver that fail ----

# Calls that give something back, or are needed for that: if they fail, it may be lost.
GIVES_BACK = {
    *("cuGraphDestroy", "cuGraphExecDestroy", "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuMemFreeAsync"),
    *("cuModuleUnload", "cuCtxPopCurrent_v2", "cuCtxGetCurrent", "cuCtxPushCurrent_v2"),
}


KINDS = ("graphs", "executables", "streams", "events", "allocations")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.large)])
def test_every_call_of_the_driver_may_fail(other, every):
    """Some calls of each function; with `--large` all."""

    @wp.kernel
    def says(count: wp.array(dtype=int)):
        print(count[0])

    out, count = wp.zeros(64, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    host, left = wp.zeros(64, device="cpu"), wp.zeros(64, device="cpu", pinned=True)
    child = captured(lambda: wp.launch(add_one, dim=64, inputs=[out], device=DEVICE))

    def body():
        wp.launch(add_one, dim=64, inputs=[out], device=DEVICE)
        wp.launch(says, dim=1, inputs=[count], device=DEVICE)
        wp.launch(countdown, dim=1, inputs=[count], device=DEVICE)

    def work():
        out.assign(np.arange(64))
        made = wp.clone(out)
        wp.capture_launch(child)
        side = wp.Stream(DEVICE)
        side.wait_stream(wp.get_stream(DEVICE))
        wp.launch(add_one, dim=64, inputs=[made], stream=side)
        wp.wait_stream(side)
        wp.copy(out, made)
        wp.utils.array_scan(made, made)
        wp.copy(host, made)
        wp.copy(left, made)
        wp.capture_if(count, lambda: wp.capture_while(count, body), out.zero_)

    def scenario(times=1):
        with wp.ScopedDevice(DEVICE):
            count.fill_(2)
            graph = captured(work)
            for _ in range(times):
                wp.capture_launch(graph)
            wp.synchronize_device(DEVICE)
            return out.list()

    def alive():
        gc.collect()
        for _ in range(2):
            wp.synchronize_device(DEVICE)
        return {kind: other.driver.weftEmulatedAlive(kind.encode()) for kind in KINDS}

    expected = [i + 3.0 for i in range(64)]
    assert scenario() == expected
    before = alive()
    other.driver.weftEmulatedCalls(None)
    assert scenario() == expected
    names = subprocess.run(
        ["nm", "-D", "--defined-only", wp._weft.__file__.rsplit("/", 1)[0] + "/weft-emulated-cuda.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    functions = sorted(line.split()[-1] for line in names.splitlines() if line.split()[-1].startswith("cu"))
    calls = {name: other.driver.weftEmulatedCalls(name.encode()) for name in functions}
    assert calls["cuStreamBeginCaptureToGraph"] == 3 and calls["cuGraphLaunch"] == 1 and calls["cuLaunchKernel"] > 6
    for name in functions:
        some = {1, 2, 3, calls[name] // 2, calls[name]}
        for call in range(1, calls[name] + 1):
            if not every and call not in some:
                continue
            other.driver.weftEmulatedFail(name.encode(), call, 999)
            try:
                scenario()
            except Exception as error:
                assert isinstance(error, RuntimeError), f"{name}: {error!r}"
                assert "CUDA_ERROR_UNKNOWN" in str(error) or "there is no graph" in str(error), f"{name}: {error}"
                del error
            other.driver.weftEmulatedFail(None, 0, 0)
            assert not wp.get_stream(DEVICE).is_capturing, name
            assert scenario() == expected, f"after call {call} of {name} has failed"
            if name not in GIVES_BACK:
                assert alive() == before, f"after call {call} of {name} has failed"
            before = alive()

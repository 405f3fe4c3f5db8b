"""The order of launches and of other libraries' work on their arguments, on a CUDA device.

Classes with the protocols of the libraries stand for them (foreign_tensors.py). They work in a stream that nothing
orders with ours, and the streams of the emulated device do their work as late as they may: without an order, old
numbers show.
"""

import ctypes
import sys

import numpy as np
import pytest
import warp as wp
from emulated_driver import other_library
from foreign_tensors import ArrayLikeCupy, ArrayLikeNumba, TensorLikeTorch, module_like_cupy
from stream_kernels import read, write

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"
COUNT = 1000
OLD, NEW = {0.0}, {7.0}


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@pytest.fixture
def other():
    return other_library()


@pytest.fixture
def theirs(other, monkeypatch):
    """The stream of the other libraries."""
    handle = other.made("cuStreamCreate", 1)
    stream = wp.Stream(DEVICE, cuda_stream=handle.value)
    monkeypatch.setattr(TensorLikeTorch, "current", {0: handle.value})
    monkeypatch.setitem(sys.modules, "cupy", module_like_cupy(stream))
    yield stream
    wp.synchronize_device(DEVICE)  # streams of libraries live for ever


@pytest.fixture(params=["torch", "cupy", "numba"])
def shown(request, other, theirs):
    """Shows an array as one of another library."""
    if request.param == "torch":
        return TensorLikeTorch
    if request.param == "cupy":
        return lambda array: ArrayLikeCupy(array, other)
    return lambda array: ArrayLikeNumba(array, theirs.cuda_stream)


def put(stream, kernel, *arguments):
    with wp.ScopedStream(stream, sync_enter=False):
        wp.launch(kernel, COUNT, inputs=[*arguments], device=DEVICE)


def zeros():
    x = wp.zeros(COUNT, dtype=float, device=DEVICE)
    wp.synchronize_device(DEVICE)
    return x


def numbers(stream, y):
    wp.synchronize_stream(stream)
    found = set(y.numpy())
    wp.synchronize_device(DEVICE)
    return found


@pytest.mark.seed("S-DIR-001", "S-DIR-002", "S-DIR-003")
@pytest.mark.parametrize("given", ["nothing", "a current stream", "a stream"])
def test_a_launch_comes_after_the_work_of_the_library(theirs, shown, given):
    ours = wp.get_stream(DEVICE) if given == "nothing" else wp.Stream(DEVICE)
    x, y = zeros(), zeros()
    put(theirs, write, x, 7.0)
    if given == "a stream":
        wp.launch(read, COUNT, inputs=[shown(x), y], stream=ours)
    else:
        put(ours, read, shown(x), y)
    assert numbers(ours, y) == NEW


@pytest.mark.seed("S-DIR-006")
@pytest.mark.parametrize("given", ["nothing", "a stream"])
def test_work_of_the_library_comes_after_the_launch(theirs, shown, given):
    x, y = zeros(), zeros()
    stream = wp.Stream(DEVICE) if given == "a stream" else None
    wp.launch(write, COUNT, inputs=[shown(x), 7.0], device=DEVICE, stream=stream)
    put(theirs, read, x, y)
    assert numbers(theirs, y) == NEW


def test_without_the_library_s_stream_old_numbers_show(theirs, monkeypatch):
    """Without any order the tests above would find old numbers."""
    monkeypatch.setattr(TensorLikeTorch, "current", {})
    x, y = zeros(), zeros()
    put(theirs, write, x, 7.0)
    put(wp.get_stream(DEVICE), read, TensorLikeTorch(x), y)
    assert numbers(wp.get_stream(DEVICE), y) == OLD


@pytest.mark.parametrize("kind", ["launch", "tape", "command"])
def test_every_kind_of_launch_is_in_order(theirs, shown, kind):
    x, y = zeros(), zeros()
    put(theirs, write, x, 7.0)
    if kind == "tape":
        with wp.Tape():
            wp.launch(read, COUNT, inputs=[shown(x), y], device=DEVICE)
    elif kind == "command":
        command = wp.launch(read, COUNT, inputs=[shown(x), y], device=DEVICE, record_cmd=True)
        put(theirs, write, x, 7.0)
        if isinstance(shown(x), ArrayLikeNumba):
            wp.get_stream(DEVICE).wait_stream(theirs)  # only the object knew its stream
        command.launch()
    else:
        wp.launch(read, COUNT, inputs=[shown(x), y], device=DEVICE)
    assert numbers(wp.get_stream(DEVICE), y) == NEW


@pytest.mark.parametrize("which", ["legacy", "ours"])
def test_streams_that_are_in_order_get_nothing(other, which, monkeypatch):
    ours = wp.Stream(DEVICE)
    monkeypatch.setattr(TensorLikeTorch, "current", {0: 0 if which == "legacy" else ours.cuda_stream})
    x, y = zeros(), zeros()
    before = [other.driver.weftEmulatedCalls(name) for name in (b"cuStreamWaitEvent", b"cuEventRecord")]
    put(ours, write, TensorLikeTorch(x), 7.0)
    put(ours, read, TensorLikeTorch(x), y)
    after = [other.driver.weftEmulatedCalls(name) for name in (b"cuStreamWaitEvent", b"cuEventRecord")]
    assert after == before == [0, 0] and numbers(ours, y) == NEW


def test_nothing_waits_on_the_host(other, theirs, shown):
    x, y = zeros(), zeros()
    put(theirs, write, x, 7.0)
    tensor = shown(x)
    names = [b"cuStreamSynchronize", b"cuStreamQuery", b"cuCtxSynchronize", b"cuEventSynchronize"]
    before = [other.driver.weftEmulatedCalls(name) for name in names]
    wp.launch(read, COUNT, inputs=[tensor, y], device=DEVICE)
    wp.array(tensor, copy=False, device=DEVICE)
    assert other.driver.weftEmulatedCalls(b"cuStreamWaitEvent") > 0
    assert [other.driver.weftEmulatedCalls(name) for name in names] == before
    assert numbers(wp.get_stream(DEVICE), y) == NEW


def test_nothing_stays_of_the_order(other, theirs, shown):
    x, y = zeros(), zeros()

    def alive():
        return {kind: other.driver.weftEmulatedAlive(kind) for kind in (b"allocations", b"streams", b"events")}

    wp.launch(read, COUNT, inputs=[shown(x), y], device=DEVICE)
    before = alive()
    for _ in range(20):
        wp.launch(read, COUNT, inputs=[shown(x), y], device=DEVICE)
    assert alive() == before


def test_an_array_of_shown_memory_waits_for_its_stream(theirs):
    x, y = zeros(), zeros()
    put(theirs, write, x, 7.0)
    taken = wp.array(ArrayLikeNumba(x, theirs.cuda_stream), copy=False, device=DEVICE)
    put(wp.get_stream(DEVICE), read, taken, y)
    assert numbers(wp.get_stream(DEVICE), y) == NEW


@pytest.mark.seed("S-DIR-003")
def test_the_stream_is_that_of_the_device_of_the_launch(second, monkeypatch):
    monkeypatch.setattr(TensorLikeTorch, "asked", [])
    x = wp.zeros(COUNT, dtype=float, device=second)
    wp.launch(add_one, COUNT, inputs=[TensorLikeTorch(x)], device=second)
    assert set(x.numpy()) == {1.0} and TensorLikeTorch.asked == [1]


# ---- captures ----


@pytest.mark.parametrize("own_memory", [False, True])
def test_a_launch_joins_the_capture_of_its_library(other, theirs, own_memory):
    """Without a word about streams, as in a program of PyTorch; its first launch compiles and allocates too."""
    handle = ctypes.c_void_p(theirs.cuda_stream)
    x, y = zeros(), zeros()

    @wp.kernel
    def total_of(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        wp.atomic_add(y, 0, x[i])

    other.begin(handle)
    wp.launch(add_one, COUNT, inputs=[TensorLikeTorch(x)], device=DEVICE)
    wp.launch(total_of, COUNT, inputs=[TensorLikeTorch(x), TensorLikeTorch(y)], device=DEVICE)
    if own_memory:
        with wp.ScopedStream(theirs, sync_enter=False):
            made = wp.full(COUNT, 3.0, dtype=float, device=DEVICE)  # memory of the graph
        wp.launch(read, COUNT, inputs=[made, TensorLikeTorch(x)], device=DEVICE)
        del made
    graph = other.end(handle)
    assert set(x.numpy()) == OLD
    for turn in range(1, 4):
        other.launch(graph, handle)
        assert set(x.numpy()) == ({3.0} if own_memory else {float(turn)})
    total = sum(COUNT * (4.0 if own_memory and turn > 1 else 1.0 if own_memory else turn) for turn in range(1, 4))
    assert y.numpy()[0] == total
    other.call("cuGraphExecDestroy", graph)


def test_a_launch_in_another_stream_than_the_one_that_is_captured_is_an_error(other, theirs):
    handle = ctypes.c_void_p(theirs.cuda_stream)
    x, ours = zeros(), wp.Stream(DEVICE)
    other.begin(handle)
    with pytest.raises(RuntimeError, match="is being captured on 'cuda:0', and this work is in another stream.*help"):
        wp.launch(add_one, COUNT, inputs=[TensorLikeTorch(x)], stream=ours)
    with pytest.raises(RuntimeError, match="is being captured on 'cuda:0', and this work is in another stream.*help"):
        wp.launch(add_one, COUNT, inputs=[ArrayLikeNumba(x, theirs.cuda_stream)], device=DEVICE)
    graph = other.end(handle)
    other.launch(graph, handle)
    other.call("cuGraphExecDestroy", graph)
    wp.launch(add_one, COUNT, inputs=[TensorLikeTorch(x)], stream=ours)
    assert numbers(ours, x) == {1.0}


def test_a_graph_of_ours_comes_after_the_library_s_work(theirs, shown):
    """The launch is not done in the capture; the graph is, after that work."""
    ours, x, y = wp.Stream(DEVICE), zeros(), zeros()
    put(theirs, write, x, 7.0)
    tensor = shown(x)
    with wp.ScopedStream(ours, sync_enter=False), wp.ScopedCapture(stream=ours) as capture:
        wp.launch(read, COUNT, inputs=[tensor, y], device=DEVICE)
    wp.capture_launch(capture.graph, stream=ours)
    assert numbers(ours, y) == NEW


# ---- bad input ----


def test_arrays_of_two_devices_are_an_error(theirs, second):
    here, there = zeros(), wp.zeros(COUNT, dtype=float, device=second)
    said = "argument 2 'y' of kernel 'read' is .* in memory of 'cuda:1', the launch is on 'cuda:0'.*device='cuda:1'"
    with pytest.raises(RuntimeError, match=said):
        wp.launch(read, COUNT, inputs=[TensorLikeTorch(here), TensorLikeTorch(there)], device=DEVICE)
    with pytest.raises(RuntimeError, match="argument 1 'x' of kernel 'read' is .* in memory of 'cuda:0'"):
        wp.launch(read, COUNT, inputs=[TensorLikeTorch(here), TensorLikeTorch(there)], device="cpu")
    assert set(here.numpy()) == OLD


@pytest.mark.parametrize("library", ["torch", "paddle"])
def test_a_tensor_of_the_cpu_is_an_error_and_its_library_is_asked_for_no_stream(library):
    """Builds for the CPU have none, and Paddle's ends the process if it is asked."""
    module = pytest.importorskip(library)
    x = module.zeros([COUNT], dtype=module.float32)
    with pytest.raises(
        RuntimeError, match="argument 1 'x' of kernel 'add_one' is .* in memory of 'cpu', the launch is"
    ):
        wp.launch(add_one, COUNT, inputs=[x], device=DEVICE)
    wp.launch(add_one, COUNT, inputs=[x], device="cpu")
    assert x.numpy().tolist() == [1.0] * COUNT


def test_a_destroyed_stream_is_an_error_and_everything_goes_on(other):
    handle, x = other.made("cuStreamCreate", 1), zeros()
    other.call("cuStreamDestroy_v2", handle)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_HANDLE"):
        wp.launch(add_one, COUNT, inputs=[ArrayLikeNumba(x, handle.value)], device=DEVICE)
    wp.launch(add_one, COUNT, inputs=[ArrayLikeNumba(x, None)], device=DEVICE)
    np.testing.assert_array_equal(x.numpy(), 1.0)


def test_a_library_that_cannot_name_its_stream_gives_its_error(monkeypatch, theirs, other):
    def fails():
        raise ValueError("no stream today")

    x = zeros()
    monkeypatch.setattr(sys.modules["cupy"].cuda, "get_current_stream", fails)
    with pytest.raises(ValueError, match="no stream today"):
        wp.launch(add_one, COUNT, inputs=[ArrayLikeCupy(x, other)], device=DEVICE)
    assert set(x.numpy()) == OLD

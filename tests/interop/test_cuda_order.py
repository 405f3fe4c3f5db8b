"""In which order our work and that of other libraries is done on a CUDA device: DLPack and the legacy default stream.

The libraries here are built for the CPU. Objects with the methods of the protocol, which use the driver by themselves,
stand for them. The streams of the emulated device do their work as late as they may: if an order is missing, a reader
finds old numbers. A test beside each says so.
"""

import ctypes
import gc
import re
import threading

import numpy as np
import pytest
import warp as wp
from emulated_driver import other_library
from stream_kernels import read, write

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"
COUNT = 1000
OLD, NEW = {0.0}, {7.0}
LEGACY, OF_THE_THREAD = 1, 2
CUDA, MANAGED = 2, 13


@pytest.fixture
def other():
    return other_library()


@pytest.fixture
def free_stream(other):
    """A stream that nothing orders with the legacy default stream."""
    handle = other.made("cuStreamCreate", 1)
    stream = wp.Stream(DEVICE, cuda_stream=handle.value)
    yield stream
    wp.synchronize_device(DEVICE)
    del stream
    other.call("cuStreamDestroy_v2", handle)


def handle_of(stream):
    return ctypes.c_void_p(stream.cuda_stream)


def put(stream, kernel, *arguments):
    with wp.ScopedStream(stream, sync_enter=False):
        wp.launch(kernel, COUNT, inputs=[*arguments], device=DEVICE)


def zeros():
    x = wp.zeros(COUNT, dtype=float, device=DEVICE)
    wp.synchronize_device(DEVICE)
    return x


def pending(stream):
    """Zeros in whose place the stream writes sevens, and has not yet."""
    x = zeros()
    put(stream, write, x, 7.0)
    return x


def seen_in(stream, x, y):
    """The numbers that a kernel in the stream finds in x. `y` holds zeros: to make them here would wait. Afterwards
    nothing is pending, so that memory may be freed."""
    put(stream, read, x, y)
    wp.synchronize_stream(stream)
    found = set(y.numpy())
    wp.synchronize_device(DEVICE)
    return found


# ---- the legacy default stream ----


@pytest.mark.seed("S-STM-006")
@pytest.mark.parametrize("which", ["default", "new"])
def test_our_streams_and_the_legacy_default_stream_are_in_one_order(other, which):
    """Work of PyTorch and CuPy in their default stream needs no wait."""
    ours = wp.get_stream(DEVICE) if which == "default" else wp.Stream(DEVICE)
    legacy = wp.Stream(DEVICE, cuda_stream=0)
    y = zeros()
    assert seen_in(legacy, pending(ours), y) == NEW
    y = zeros()
    assert seen_in(ours, pending(legacy), y) == NEW
    flags = ctypes.c_uint(9)
    other.call("cuStreamGetFlags", handle_of(ours), ctypes.byref(flags))
    assert flags.value == 0  # CU_STREAM_DEFAULT: a blocking one


def test_a_stream_that_does_not_block_is_in_no_order_with_the_default_stream(free_stream):
    legacy = wp.Stream(DEVICE, cuda_stream=0)
    y = zeros()
    assert seen_in(legacy, pending(free_stream), y) == OLD


# ---- our arrays in other libraries ----


@pytest.mark.seed("S-STM-003", "S-DLP-001")
@pytest.mark.parametrize("consumer", ["a stream", "none", "legacy", "of the thread"])
def test_an_array_that_is_given_away_can_be_used_at_once(other, free_stream, consumer):
    number = {"none": None, "legacy": LEGACY, "of the thread": OF_THE_THREAD}.get(consumer)
    if consumer == "a stream":
        number = other.made("cuStreamCreate", 1).value
    theirs = wp.Stream(DEVICE, cuda_stream=LEGACY if number is None else number)
    y = zeros()
    x = pending(free_stream)
    with wp.ScopedStream(free_stream, sync_enter=False):
        capsule = x.__dlpack__(stream=number, max_version=(1, 0))
    assert x.__dlpack_device__() == (CUDA, 0)
    taken = wp.from_dlpack(capsule)
    assert taken.ptr == x.ptr and taken.device == DEVICE and taken.shape == (COUNT,)
    assert seen_in(theirs, taken, y) == NEW


@pytest.mark.seed("S-STM-003")
def test_a_consumer_that_waits_by_itself_says_minus_one(free_stream):
    theirs, y = wp.Stream(DEVICE), zeros()
    x = pending(free_stream)
    with wp.ScopedStream(free_stream, sync_enter=False):
        taken = wp.from_dlpack(x.__dlpack__(stream=-1))
    assert seen_in(theirs, taken, y) == OLD
    put(free_stream, write, x, 8.0)
    theirs.wait_stream(free_stream)
    assert seen_in(theirs, taken, y) == {8.0}


def test_a_consumer_in_our_stream_waits_for_nothing(other):
    stream, y = wp.Stream(DEVICE), zeros()
    x = pending(stream)
    before = other.driver.weftEmulatedCalls(b"cuStreamWaitEvent")
    with wp.ScopedStream(stream, sync_enter=False):
        taken = wp.from_dlpack(x.__dlpack__(stream=stream.cuda_stream))
    assert other.driver.weftEmulatedCalls(b"cuStreamWaitEvent") == before
    assert seen_in(stream, taken, y) == NEW


@pytest.mark.seed("S-STM-006")
@pytest.mark.parametrize("number", [None, LEGACY])
def test_a_consumer_in_the_default_stream_waits_for_our_streams_by_itself(other, number):
    """Nothing is put there for it, which would end a capture that another thread has begun."""
    ours, captured, legacy = wp.Stream(DEVICE), wp.Stream(DEVICE), wp.Stream(DEVICE, cuda_stream=0)
    y = zeros()
    x = pending(ours)
    begun, ended, graphs = threading.Event(), threading.Event(), []

    def capture():
        with wp.ScopedDevice(DEVICE), wp.ScopedStream(captured), wp.ScopedCapture(stream=captured) as found:
            wp.launch(read, COUNT, inputs=[x, y], device=DEVICE)
            begun.set()
            ended.wait(60)
        graphs.append(found.graph)

    thread = threading.Thread(target=capture)
    thread.start()
    assert begun.wait(60)
    with wp.ScopedStream(ours, sync_enter=False):
        taken = wp.from_dlpack(x.__dlpack__(stream=number))
    ended.set()
    thread.join()
    put(legacy, read, taken, y)
    wp.synchronize_stream(legacy)
    assert set(y.numpy()) == NEW
    y.zero_()
    wp.synchronize_device(DEVICE)
    wp.capture_launch(graphs[0], stream=captured)
    wp.synchronize_stream(captured)
    assert set(y.numpy()) == NEW


def test_nothing_stays_of_an_exchange(other):
    def alive():
        gc.collect()
        wp.synchronize_device(DEVICE)
        return {kind: other.driver.weftEmulatedAlive(kind) for kind in (b"allocations", b"streams", b"events")}

    x, consumer, stream = wp.zeros(4, device=DEVICE), wp.Stream(DEVICE), wp.Stream(DEVICE)
    theirs = Theirs(other, x, stream)
    before = alive()
    for _ in range(100):
        wp.from_dlpack(x.__dlpack__(stream=consumer.cuda_stream))
        wp.from_dlpack(theirs)
        x.__dlpack__(stream=None, copy=True)  # it is not consumed
    assert alive() == before


def test_streams_that_the_protocol_has_not():
    x = wp.zeros(3, device=DEVICE)
    for stream, message in ((0, "stream is int 0, expected 1 for the legacy"), (-2, "stream is int -2, expected 1")):
        with pytest.raises(BufferError, match=message):
            x.__dlpack__(stream=stream)
    with pytest.raises(TypeError, match="'stream' must be an integer, got str"):
        x.__dlpack__(stream="1")


@pytest.mark.seed("S-DLP-001")
def test_copies_for_a_consumer_and_to_another_device(other, free_stream, second):
    theirs, y = wp.Stream(DEVICE), zeros()
    x = pending(free_stream)
    with wp.ScopedStream(free_stream, sync_enter=False):
        copied = wp.from_dlpack(x.__dlpack__(stream=theirs.cuda_stream, copy=True))
        assert copied.ptr != x.ptr and seen_in(theirs, copied, y) == NEW
        here = wp.from_dlpack(x.__dlpack__(dl_device=(1, 0)))
        assert here.device == "cpu" and set(here.numpy()) == NEW
    there = wp.from_dlpack(wp.full(COUNT, 3.0, device="cpu").__dlpack__(dl_device=(CUDA, 1)))
    assert there.device == second and set(there.numpy()) == {3.0}
    with pytest.raises(BufferError, match="on 'cuda:0', dl_device asks for 'cpu', and copy is False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    for device in ((CUDA, 9), (8, 0)):
        with pytest.raises(BufferError, match="asks for another device"):
            x.__dlpack__(dl_device=device)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        np.testing.assert_array_equal(np.from_dlpack(wp.ones(3, device=DEVICE), device="cpu"), 1.0)


# ---- arrays of other libraries ----


class Theirs:
    """An array of another library, which works in a stream of its own and uses the driver by itself."""

    kind = CUDA

    def __init__(self, other, array, stream):
        self.other, self.array, self.stream, self.asked = other, array, stream, []

    def __dlpack_device__(self):
        return self.kind, self.array.device.ordinal

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        self.let_wait(stream)
        return self.array.__dlpack__(stream=-1, max_version=max_version)

    def let_wait(self, stream):
        event = self.other.made("cuEventCreate", 0)
        self.other.call("cuEventRecord", event, handle_of(self.stream))
        self.other.call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        self.other.call("cuEventDestroy_v2", event)


class Forgetful(Theirs):
    def let_wait(self, stream):
        pass


class FromBeforeVersions(Theirs):
    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


@pytest.mark.seed("S-STM-003", "S-DLP-002")
@pytest.mark.parametrize("kind", [Theirs, FromBeforeVersions])
@pytest.mark.parametrize("current", ["default", "new", "free"])
def test_an_array_that_is_taken_can_be_used_at_once(other, free_stream, kind, current):
    """Its owner is told the stream that is current on the device of the array."""
    ours = {"default": wp.get_stream(DEVICE), "new": wp.Stream(DEVICE), "free": free_stream}[current]
    stream, y = wp.Stream(DEVICE, cuda_stream=other.made("cuStreamCreate", 1).value), zeros()
    theirs = kind(other, pending(stream), stream)
    with wp.ScopedStream(ours, sync_enter=False):
        taken = wp.from_dlpack(theirs)
    assert theirs.asked == [ours.cuda_stream] and taken.ptr == theirs.array.ptr
    assert seen_in(ours, taken, y) == NEW


def test_an_owner_that_lets_nobody_wait_gives_old_numbers(other):
    stream, y = wp.Stream(DEVICE), zeros()
    taken = wp.from_dlpack(Forgetful(other, pending(stream), stream))
    assert seen_in(wp.get_stream(DEVICE), taken, y) == OLD


@pytest.mark.seed("S-STM-003", "S-DIR-001")
def test_an_argument_of_a_launch_is_waited_for_in_its_stream(other):
    stream, ours, y = wp.Stream(DEVICE), wp.Stream(DEVICE), zeros()
    theirs = Theirs(other, pending(stream), stream)
    assert seen_in(ours, theirs, y) == NEW and theirs.asked == [ours.cuda_stream]


@pytest.mark.seed("S-DLP-007")
def test_our_own_arrays_are_taken_without_waiting(other):
    x = wp.zeros((4, 3), device=DEVICE)
    before = other.driver.weftEmulatedCalls(b"cuStreamWaitEvent")
    taken = wp.from_dlpack(x, dtype=wp.vec3)
    assert taken.ptr == x.ptr and taken.shape == (4,) and taken.dtype is wp.vec3 and taken.device == DEVICE
    assert other.driver.weftEmulatedCalls(b"cuStreamWaitEvent") == before
    address = x.ptr
    del x
    gc.collect()
    litter = wp.ones((4, 3), device=DEVICE)
    assert litter.ptr != address and not taken.numpy().any()  # it keeps the memory


@pytest.mark.seed("S-DLP-011")
def test_strides_and_types_are_carried():
    x = wp.array(np.arange(24).reshape(4, 6), dtype=wp.int32, device=DEVICE)
    for view in (x[1:, ::2], x.transpose(), x[:, 3]):
        taken = wp.from_dlpack(view)
        assert taken.strides == view.strides and taken.ptr == view.ptr and taken.dtype is wp.int32
        np.testing.assert_array_equal(taken.numpy(), view.numpy())
    assert wp.from_dlpack(wp.zeros(0, device=DEVICE)).shape == (0,)


@pytest.mark.seed("S-STM-004", "S-DLP-004", "S-DLP-010")
def test_capsules_put_nothing_in_order(other):
    writer, reader, y = wp.Stream(DEVICE), wp.Stream(DEVICE), zeros()
    x = pending(writer)
    before = other.driver.weftEmulatedCalls(b"cuStreamWaitEvent")
    with wp.ScopedStream(writer, sync_enter=False):
        capsule = wp.to_dlpack(x)
    with wp.ScopedStream(reader, sync_enter=False):
        taken = wp.from_dlpack(capsule)
    assert other.driver.weftEmulatedCalls(b"cuStreamWaitEvent") == before
    assert seen_in(reader, taken, y) == OLD
    put(writer, write, x, 8.0)
    reader.wait_stream(writer)
    assert seen_in(reader, taken, y) == {8.0}


class NoDevice:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


class Elsewhere(NoDevice):
    named = (CUDA, 1)

    def __dlpack_device__(self):
        return self.named


def test_objects_that_do_not_say_where_they_are():
    x = wp.zeros(3, device=DEVICE)
    for made, named, message in (
        (NoDevice, None, "on 'cuda:0', and its __dlpack_device__() is missing"),
        (Elsewhere, (1, 0), "on 'cuda:0', and its __dlpack_device__() names another device"),
        (Elsewhere, (CUDA, 99), "on 'cuda:99', and there is none here (the last one is 'cuda:"),
        (Elsewhere, "here", "its __dlpack_device__() is 'here', expected the kind and the number"),
    ):
        theirs = made(x)
        theirs.named = named
        with pytest.raises((RuntimeError, TypeError), match=re.escape(message)):
            wp.from_dlpack(theirs)


class Managed(Theirs):
    """Memory that both sides reach: here of the host, which a stream of a device writes."""

    kind = MANAGED

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, *, stream=None, max_version=None):
        capsule = super().__dlpack__(stream=stream)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.c_int32.from_address(get(capsule, b"dltensor") + 8).value = self.kind
        return capsule


@pytest.mark.seed("S-STM-003")
def test_memory_that_the_host_uses_is_waited_for(other):
    stream = wp.Stream(DEVICE)
    pinned = wp.zeros(COUNT, dtype=float, device="cpu", pinned=True)
    wp.copy(pinned, pending(stream), stream=stream)
    assert set(pinned.numpy()) == OLD
    taken = wp.from_dlpack(Managed(other, pinned, stream))
    assert taken.device == "cpu" and set(taken.numpy()) == NEW


# ---- captures ----


@pytest.mark.seed("S-STM-003")
def test_an_array_that_is_taken_in_a_capture_is_there_when_the_graph_runs(other):
    """Its owner's work is no part of the graph; a launch of the graph in this stream comes after it."""
    stream, ours, y = wp.Stream(DEVICE), wp.Stream(DEVICE), zeros()
    theirs = Theirs(other, pending(stream), stream)
    with wp.ScopedStream(ours, sync_enter=False), wp.ScopedCapture(stream=ours) as capture:
        wp.launch(read, COUNT, inputs=[wp.from_dlpack(theirs), y], device=DEVICE)
    wp.capture_launch(capture.graph, stream=ours)
    wp.synchronize_stream(ours)
    assert set(y.numpy()) == NEW


def test_what_is_captured_is_not_given_away(other):
    x, stream, theirs = zeros(), wp.Stream(DEVICE), wp.Stream(DEVICE)
    wp.load_module(device=DEVICE)
    with wp.ScopedStream(stream), wp.ScopedCapture(stream=stream) as capture:
        wp.launch(write, COUNT, inputs=[x, 5.0], device=DEVICE)
        for options in ({"stream": theirs.cuda_stream}, {}, {"copy": True}):
            with pytest.raises(RuntimeError, match="a graph is being captured.* before or after the capture"):
                x.__dlpack__(**options)
        assert wp.from_dlpack(x.__dlpack__(stream=stream.cuda_stream)).ptr == x.ptr  # in the capture, too
    wp.capture_launch(capture.graph, stream=stream)
    wp.synchronize_stream(stream)
    assert set(x.numpy()) == {5.0}


def test_a_stream_that_another_library_captures_does_not_wait_for_us(other):
    x, handle = zeros(), other.made("cuStreamCreate", 1)
    other.begin(handle)
    with pytest.raises(RuntimeError, match="the stream that is to wait is being captured"):
        x.__dlpack__(stream=handle.value)
    other.call("cuGraphExecDestroy", other.end(handle))  # the capture goes on


def test_an_array_of_a_capture_makes_our_work_a_part_of_it(other):
    handle, y = other.made("cuStreamCreate", 1), zeros()
    stream, ours = wp.Stream(DEVICE, cuda_stream=handle.value), wp.Stream(DEVICE)
    theirs = Theirs(other, zeros(), stream)
    put(ours, read, theirs.array, y)
    wp.synchronize_device(DEVICE)
    other.begin(handle)
    put(stream, write, theirs.array, 7.0)
    put(ours, read, theirs, y)
    assert ours.is_capturing
    back = Theirs(other, y, ours)
    back.let_wait(handle.value)
    graph = other.end(handle)
    assert not ours.is_capturing and set(y.numpy()) == OLD
    other.launch(graph, handle)
    assert set(y.numpy()) == NEW
    other.call("cuGraphExecDestroy", graph)


# ---- C functions, devices, libraries without CUDA ----


def test_the_exchange_api_knows_the_device_and_its_stream(second):
    capsule = wp.array.__dlpack_c_exchange_api__
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_void_p * 7).from_address(get(capsule, b"dlpack_exchange_api"))

    def call(row, *types):
        return ctypes.PYFUNCTYPE(ctypes.c_int, *types)(table[row])

    current_stream = call(6, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)
    found, stream = ctypes.c_void_p(), wp.Stream(second)
    with wp.ScopedStream(stream):
        assert current_stream(CUDA, 1, ctypes.addressof(found)) == 0 and found.value == stream.cuda_stream
    assert current_stream(CUDA, 0, ctypes.addressof(found)) == 0 and found.value == wp.get_stream(DEVICE).cuda_stream
    assert current_stream(1, 0, ctypes.addressof(found)) == 0 and found.value is None
    with pytest.raises(RuntimeError, match="expected a device that is there"):
        current_stream(CUDA, 9, ctypes.addressof(found))
    a, managed, made = wp.ones(2, device=second), ctypes.c_void_p(), ctypes.c_void_p()
    assert call(3, ctypes.py_object, ctypes.c_void_p)(a, ctypes.addressof(managed)) == 0
    assert call(4, ctypes.c_void_p, ctypes.c_void_p)(managed, ctypes.addressof(made)) == 0
    again = ctypes.cast(made, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(again))
    assert again.ptr == a.ptr and again.device == second and again.list() == [1.0, 1.0]


@pytest.mark.seed("S-DLP-006")
def test_devices_by_their_numbers(second):
    import warp.dlpack

    found = warp.dlpack.device_to_dlpack(second)
    assert (found.device_type, found.device_id) == (CUDA, 1) and warp.dlpack.device_from_dlpack(found) == second
    assert wp.zeros(1, device=second).__dlpack_device__() == (CUDA, 1)


@pytest.mark.parametrize("library", ["torch", "paddle", "jax"])
def test_a_library_without_cuda_is_named(library):
    module = pytest.importorskip(library)
    if library == "torch" and module.cuda.is_available():
        pytest.skip("this PyTorch has a GPU")
    said = {
        "torch": "and this PyTorch has no CUDA devices. help: array.to('cpu')",
        "paddle": "and this Paddle has no CUDA devices. help: array.to('cpu')",
        "jax": "and JAX cannot take it. help: a JAX for CUDA, or array.to('cpu')",
    }
    with pytest.raises(RuntimeError, match=re.escape(f"to_{library}(): the array is on 'cuda:0', {said[library]}")):
        getattr(wp, f"to_{library}")(wp.zeros(64, device=DEVICE))

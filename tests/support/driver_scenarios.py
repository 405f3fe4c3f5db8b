"""Uses of a CUDA device in which calls of the driver are made to fail: each checks its own result."""

import ctypes
import gc
import itertools

import numpy as np
import warp as wp
from emulated_driver import OtherLibrary, driver_library

DEVICE, OTHER = "cuda:0", "cuda:1"


@wp.kernel
def double(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def shout(x: wp.array[float]):
    i = wp.tid()
    if i == 0:
        print(x[i])


@wp.kernel
def refuse(x: wp.array[float]):
    if x[wp.tid()] < 0.0:
        raise ValueError("negative")


# ---- scenarios: each checks its own result ----
def arrays():
    x = wp.array(np.arange(10), dtype=float, device=DEVICE)
    y = wp.full(10, 3.0, device=DEVICE)
    z = wp.empty_like(y)
    z.fill_(1.5)
    z.zero_()
    y.assign(x)
    assert wp.full(3, 1.5, dtype=wp.float16, device=DEVICE).numpy().tolist() == [1.5] * 3
    assert y.numpy().tolist() == list(range(10)) and not z.numpy().any()


def launches():
    x, y = wp.ones(10, dtype=float, device=DEVICE), wp.zeros(10, dtype=float, device=DEVICE)
    wp.launch(double, 10, inputs=[x, y], device=DEVICE)
    assert y.numpy().tolist() == [2.0] * 10


def reports():
    x = wp.ones(3, dtype=float, device=DEVICE)
    wp.launch(shout, 3, inputs=[x], device=DEVICE)
    wp.launch(refuse, 3, inputs=[x], device=DEVICE)
    wp.synchronize()


def gradients():
    x = wp.array([1.0, 2.0], dtype=float, device=DEVICE, requires_grad=True)
    y = wp.zeros(2, dtype=float, device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 2, inputs=[x, y], device=DEVICE)
    tape.backward(grads={y: wp.ones(2, dtype=float, device=DEVICE)})
    assert x.grad.numpy().tolist() == [2.0, 2.0]


def copies():
    x = wp.array(np.arange(12, dtype=np.float32).reshape(3, 4), device=DEVICE)
    y = wp.zeros((4, 3), dtype=float, device=DEVICE)
    wp.copy(y.transpose(), x)
    y[1:3].fill_(7.0)
    assert y.numpy()[0].tolist() == [0.0, 4.0, 8.0] and (y.numpy()[1:3] == 7.0).all()
    assert x[:, 1].numpy().tolist() == [1.0, 5.0, 9.0]


def streams():
    stream = wp.Stream(DEVICE)
    start = wp.Event(DEVICE, enable_timing=True)
    end = wp.Event(DEVICE, enable_timing=True)
    x, y = wp.ones(5, dtype=float, device=DEVICE), wp.zeros(5, dtype=float, device=DEVICE)
    try:
        stream.wait_stream(wp.get_stream(DEVICE))
        with wp.ScopedStream(stream):
            wp.record_event(start)
            wp.launch(double, 5, inputs=[x, y], device=DEVICE)
            wp.record_event(end)
        wp.get_stream(DEVICE).wait_event(end)
        wp.synchronize_stream(stream)
    except BaseException:
        wp.synchronize()  # memory is freed in the order of the default stream, which knows nothing of the other
        raise
    assert wp.get_event_elapsed_time(start, end) >= 0.0
    assert y.numpy().tolist() == [2.0] * 5


def shared_streams():
    owner = wp.Stream(DEVICE)
    lent = wp.Stream(DEVICE, cuda_stream=owner.cuda_stream)
    try:
        with wp.ScopedStream(lent):
            x, y = wp.ones(5, dtype=float, device=DEVICE), wp.zeros(5, dtype=float, device=DEVICE)
            wp.launch(double, 5, inputs=[x, y], device=DEVICE)
            assert y.numpy().tolist() == [2.0] * 5
            del x, y
    finally:
        wp.synchronize()
        del lent


def exchanges():
    """By DLPack, between three streams."""
    ours, theirs = wp.Stream(DEVICE), wp.Stream(DEVICE)
    x, y = wp.ones(5, dtype=float, device=DEVICE), wp.zeros(5, dtype=float, device=DEVICE)
    try:
        with wp.ScopedStream(ours):
            wp.launch(double, 5, inputs=[x, x], device=DEVICE)
            taken = wp.from_dlpack(x.__dlpack__(stream=theirs.cuda_stream, max_version=(1, 0)))
        with wp.ScopedStream(theirs, sync_enter=False):
            wp.launch(double, 5, inputs=[taken, y], device=DEVICE)
            again = wp.from_dlpack(y)
            copied = wp.from_dlpack(again.__dlpack__(copy=True))
        wp.synchronize_stream(theirs)
    except BaseException:
        wp.synchronize()  # memory is freed in the order of the default stream, which knows nothing of the others
        raise
    assert y.numpy().tolist() == copied.numpy().tolist() == [4.0] * 5


class Foreign:
    """An array of another library, as Weft sees it."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def imports():
    """Of another library's array, whose stream may be captured by it."""
    x = wp.ones(5, dtype=float, device=DEVICE)
    wp.launch(double, 5, inputs=[x, x], device=DEVICE)
    taken = wp.from_dlpack(Foreign(x))
    assert taken.ptr == x.ptr and taken.numpy().tolist() == [2.0] * 5


def full_memory():
    """Memory that the pool keeps is given back before an error reports that memory is exhausted."""
    try:
        wp.empty(1 << 50, dtype=float, device=DEVICE)
    except MemoryError:
        return
    raise AssertionError("there is no such memory")


def suggestions():
    threads, blocks = wp.get_suggested_block_size(double, DEVICE)
    assert threads >= 32 and blocks >= 1


def pools():
    wp.set_mempool_release_threshold(DEVICE, wp.get_mempool_release_threshold(DEVICE))
    assert wp.get_mempool_used_mem_high(DEVICE) >= wp.get_mempool_used_mem_current(DEVICE)
    wp.set_mempool_enabled(DEVICE, False)
    try:
        x = wp.ones(5, dtype=float, device=DEVICE)
    finally:
        wp.set_mempool_enabled(DEVICE, True)
    assert x.numpy().tolist() == [1.0] * 5


def peers():
    wp.set_mempool_access_enabled(DEVICE, OTHER, False)
    wp.set_peer_access_enabled(DEVICE, OTHER, False)
    x, y = wp.ones(5, dtype=float, device=DEVICE), wp.zeros(5, dtype=float, device=OTHER)
    wp.copy(y, x)
    wp.set_mempool_access_enabled(DEVICE, OTHER, True)
    wp.set_peer_access_enabled(DEVICE, OTHER, True)
    assert wp.is_peer_access_enabled(DEVICE, OTHER) and wp.is_mempool_access_enabled(DEVICE, OTHER)
    wp.synchronize()
    try:
        wp.launch(double, 5, inputs=[x, y], device=OTHER)
        assert y.numpy().tolist() == [2.0] * 5
    except BaseException:
        wp.synchronize()  # the owner of the memory knows nothing of the other device's launch
        raise
    wp.set_mempool_access_enabled(DEVICE, OTHER, False)
    wp.set_peer_access_enabled(DEVICE, OTHER, False)


def pinned():
    host = wp.full(6, 2.0, device="cpu", pinned=True)
    x = wp.zeros(6, dtype=float, device=DEVICE)
    wp.copy(x, host)
    back = wp.zeros(6, dtype=float, device="cpu", pinned=True)
    wp.copy(back, x)
    wp.synchronize()
    assert back.numpy().tolist() == [2.0] * 6


def primitives():
    x = wp.array([3, 1, 2, 0], dtype=int, device=DEVICE)
    values = wp.array([0, 1, 2, 3], dtype=int, device=DEVICE)
    assert wp.utils.array_sum(x) == 6
    scanned = wp.zeros_like(x)
    wp.utils.array_scan(x, scanned, inclusive=True)
    assert scanned.numpy().tolist() == [3, 4, 6, 6]
    keys = wp.array([3, 1, 2, 0, 0, 0, 0, 0], dtype=int, device=DEVICE)
    values = wp.array([0, 1, 2, 3, 0, 0, 0, 0], dtype=int, device=DEVICE)
    wp.utils.radix_sort_pairs(keys, values, 4)
    assert keys.numpy()[:4].tolist() == [0, 1, 2, 3] and values.numpy()[:4].tolist() == [3, 1, 2, 0]


def new_kernels():
    @wp.kernel(module="unique")
    def add(x: wp.array[float], a: float):
        i = wp.tid()
        x[i] = x[i] + a

    wp.get_module(add.module.name).unload()  # it is loaded anew
    x = wp.zeros(3, dtype=float, device=DEVICE)
    wp.launch(add, 3, inputs=[x, 2.0], device=DEVICE)
    assert x.numpy().tolist() == [2.0] * 3


numbers = itertools.count(2)


def forgotten_kernels():
    """The code of a kernel that is gone stays for a thousand others that may come to use it, and no longer."""
    number = next(numbers)

    def use():
        @wp.kernel(module="unique")
        def subtract(x: wp.array[float]):
            i = wp.tid()
            x[i] = x[i] - float(number)

        x = wp.zeros(3, dtype=float, device=DEVICE)
        wp.launch(subtract, 3, inputs=[x], device=DEVICE)
        assert x.numpy().tolist() == [-float(number)] * 3

    before = driver_library().weftEmulatedAlive(b"modules")
    use()
    gc.collect()
    for other in range(1030):

        @wp.kernel(module="unique")
        def unused(x: wp.array[float]):
            x[0] = float(other) * float(number)

        unused.module.hash_module()
    del unused
    gc.collect()
    assert driver_library().weftEmulatedAlive(b"modules") <= before


def compiled_kernels():
    """Of a text that no cache has, so that the driver makes machine code of it."""
    number = next(numbers)

    @wp.kernel(module="unique")
    def multiply(x: wp.array[float]):
        i = wp.tid()
        x[i] = x[i] * float(number)

    x = wp.ones(3, dtype=float, device=DEVICE)
    wp.launch(multiply, 3, inputs=[x], device=DEVICE)
    assert x.numpy().tolist() == [float(number)] * 3


def allocators():
    allocator = wp.get_device(DEVICE).get_allocator()
    address = allocator.allocate(64)
    allocator.deallocate(address, 64)
    assert wp.get_device(DEVICE).free_memory <= wp.get_device(DEVICE).total_memory


def events_of_graphs():
    x = wp.zeros(5, dtype=float, device=DEVICE)
    begin, end, other = (wp.Event(DEVICE, enable_timing=True) for _ in range(3))
    stream = wp.Stream(DEVICE, priority=-1)
    try:
        stream.wait_stream(wp.get_stream(DEVICE))
        with wp.ScopedCapture(stream=stream) as capture:
            stream.wait_event(other, external=True)
            stream.record_event(begin, external=True)
            wp.launch(double, 5, inputs=[x, x], stream=stream)
            stream.record_event(end, external=True)
        with wp.ScopedTimer("graph", cuda_filter=wp.TIMING_GRAPH, print=False) as timer:
            wp.capture_launch(capture.graph, stream=stream)
        wp.synchronize_stream(stream)
    except BaseException:
        wp.synchronize()
        raise
    assert stream.is_complete and stream.priority == -1 and len(timer.timing_results) == 1
    assert wp.get_event_elapsed_time(begin, end) >= 0.0


def two_gpus():
    x, y = wp.ones(5, dtype=float, device=DEVICE), wp.zeros(5, dtype=float, device=OTHER)
    there = wp.Stream(OTHER)
    try:
        there.wait_stream(wp.get_stream(OTHER))
        there.wait_stream(wp.get_stream(DEVICE))
        wp.copy(y, x, stream=there)
        wp.get_stream(DEVICE).wait_event(there.record_event())
        x.fill_(3.0)
        wp.get_stream(OTHER).wait_stream(there)
    except BaseException:
        wp.synchronize()
        raise
    assert y.numpy().tolist() == [1.0] * 5 and x.numpy().tolist() == [3.0] * 5


class Failing(OtherLibrary):
    """Another library, whose calls of the driver fail as ours do."""

    def call(self, name, *arguments):
        if (result := getattr(self.driver, name)(*arguments)) != 0:
            raise RuntimeError(f"{name}() gave CUDA_ERROR_UNKNOWN ({result})")

    def give_back(self, name, *arguments):
        if getattr(self.driver, name)(*arguments) != 0:
            self.call(name, *arguments)


def contexts():
    """A context of another library becomes a device, and is one no more."""
    library = driver_library()
    handle = ctypes.c_void_p()
    assert library.cuCtxCreate_v4(ctypes.byref(handle), None, 0, 0) == 0
    assert library.cuCtxSetCurrent(None) == 0

    def use():
        x, y = (wp.full(5, value, dtype=float, device="context") for value in (1.0, 0.0))
        wp.launch(double, 5, inputs=[x, y], device="context")
        assert y.numpy().tolist() == [2.0] * 5

    def unmap():
        gc.collect()
        if wp.is_device_available("context"):
            wp.unmap_cuda_device("context")

    try:
        wp.map_cuda_device("context", handle.value)
        try:
            use()
            unmap()
        except Exception as error:
            error.__traceback__ = error.__context__ = None  # which have the arrays
            raise
        finally:
            unmap()
    finally:
        assert library.cuCtxDestroy_v2(handle) == 0


def foreign_captures():
    """Launches in the capture of another library, whose graph keeps what they use."""
    other = Failing()
    stream = wp.Stream(DEVICE)
    handle = ctypes.c_void_p(stream.cuda_stream)
    out = wp.zeros(10, dtype=float, device=DEVICE)
    wp.launch(double, 10, inputs=[out, out], device=DEVICE)
    wp.synchronize_device(DEVICE)
    graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
    try:
        other.begin(handle)
        try:
            with wp.ScopedStream(stream, sync_enter=False):
                made = wp.full(10, 1.0, dtype=float, device=DEVICE)
                held = wp.array([3.0] * 10, dtype=float, device=DEVICE)  # of the host's memory
                wp.launch(double, 10, inputs=[held, made], device=DEVICE)
                wp.copy(out, made)
        finally:
            other.give_back("cuStreamEndCapture", handle, ctypes.byref(graph))
        ready = other.made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
        other.launch(ready, handle)
    finally:
        if ready:
            other.give_back("cuGraphExecDestroy", ready)
        if graph:
            other.give_back("cuGraphDestroy", graph)
        wp.synchronize()
        wp.synchronize()  # the first one finds the memory that is free now
    assert out.numpy().tolist() == [6.0] * 10


@wp.kernel
def countdown(count: wp.array[int], steps: wp.array[float]):
    count[0] = count[0] - 1
    steps[0] = steps[0] + 1.0


def conditions():
    """A graph in a graph, a second stream, a loop and a branch."""
    out, steps = wp.zeros(5, dtype=float, device=DEVICE), wp.zeros(1, dtype=float, device=DEVICE)
    count = wp.array([3], dtype=int, device=DEVICE)
    with wp.ScopedDevice(DEVICE):
        with wp.ScopedCapture() as child:
            wp.launch(double, 5, inputs=[out, out])

        def body():
            wp.launch(countdown, 1, inputs=[count, steps])

        with wp.ScopedCapture() as capture:
            out.fill_(1.0)
            wp.capture_launch(child.graph)
            side = wp.Stream(DEVICE)
            side.wait_stream(wp.get_stream(DEVICE))
            wp.launch(double, 5, inputs=[out, out], stream=side)
            wp.wait_stream(side)
            wp.capture_while(count, body)
            wp.capture_if(count, out.zero_, lambda: out.assign(out))
        wp.capture_launch(capture.graph)
    assert steps.numpy().tolist() == [3.0] and out.numpy().tolist() == [4.0] * 5


def managed_memory():
    with wp.ScopedAllocator(DEVICE, wp.CudaManagedAllocator()):
        x = wp.full(10, 2.0, dtype=float, device=DEVICE)
    y = wp.zeros(10, dtype=float, device=DEVICE)
    wp.launch(double, 10, inputs=[x, y], device=DEVICE)
    assert y.numpy().tolist() == [4.0] * 10


def profiling():
    wp.cuda_profiler_start(DEVICE)
    wp.cuda_profiler_stop(DEVICE)


def properties():
    launches()
    assert wp.get_cuda_kernel_properties(double, DEVICE)["register_count"] > 0


@wp.kernel
def squared_height(mesh: wp.uint64, at: wp.array[wp.vec3], out: wp.array[float]):
    hit = wp.mesh_query_ray(mesh, at[wp.tid()], wp.vec3(0.0, 0.0, -1.0), 100.0)
    wp.atomic_add(out, 0, hit.t * hit.t)


def let_objects_go():
    """Objects with ids are freed in two steps, each of which waits until the device has no work."""
    gc.collect()
    for _ in range(3):
        wp.synchronize()


def builds():
    rng = np.random.default_rng(1)
    points = wp.array(rng.random((30, 3)), dtype=wp.vec3, device=DEVICE)
    mesh = wp.Mesh(points, wp.array(np.arange(30), dtype=int, device=DEVICE))
    bvh, grid = wp.Bvh(points, points), wp.HashGrid(4, 4, 4, device=DEVICE)
    grid.build(points, 0.5)
    bvh.rebuild()
    mesh.refit()
    assert wp.Volume.allocate_by_voxels(points, 0.5, device=DEVICE).get_voxel_count() > 1
    del mesh, bvh, grid, points
    let_objects_go()


def adjoints_of_geometry_in_graphs():
    points = np.array([[0, 0, 1], [4, 0, 1], [0, 4, 1]], np.float32)
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3, device=DEVICE), wp.array([0, 1, 2], dtype=int, device=DEVICE))
    at = wp.array([[1, 1, 3]], dtype=wp.vec3, device=DEVICE, requires_grad=True)
    loss = wp.zeros(1, dtype=float, device=DEVICE, requires_grad=True)
    with wp.ScopedCapture(DEVICE) as capture:
        with wp.Tape() as tape:
            wp.launch(squared_height, 1, inputs=[mesh.id, at, loss], device=DEVICE)
        mesh.refit()
        tape.backward(loss)
    wp.capture_launch(capture.graph)
    assert at.grad.numpy().tolist() == [[0.0, 0.0, 4.0]]
    del mesh, at, loss, capture, tape
    let_objects_go()


SCENARIOS = [
    builds,
    adjoints_of_geometry_in_graphs,
    arrays,
    launches,
    reports,
    gradients,
    copies,
    streams,
    shared_streams,
    exchanges,
    imports,
    full_memory,
    suggestions,
    pools,
    peers,
    pinned,
    primitives,
    new_kernels,
    compiled_kernels,
    forgotten_kernels,
    allocators,
    events_of_graphs,
    two_gpus,
    contexts,
    foreign_captures,
    conditions,
    managed_memory,
    profiling,
    properties,
]

"""Contexts of CUDA besides the primary ones: wp.map_cuda_device()."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE, OTHER = "cuda:0", "cuda:1"


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


class Contexts:
    """Acts as another library: makes contexts, and destroys them."""

    def __init__(self):
        self.driver = ctypes.CDLL(str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")))
        self.names, self.made = [], []

    def make(self, ordinal=0, keep_current=False):
        handle = ctypes.c_void_p()
        assert self.driver.cuCtxCreate_v4(ctypes.byref(handle), None, 0, ordinal) == 0
        if not keep_current:
            assert self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0
        self.made.append(handle)
        return handle.value

    def current(self):
        handle = ctypes.c_void_p()
        assert self.driver.cuCtxGetCurrent(ctypes.byref(handle)) == 0
        return handle.value

    def map(self, alias, *arguments):
        device = wp.map_cuda_device(alias, *arguments)
        self.names.append(alias)
        return device

    def unmap(self, alias):
        wp.unmap_cuda_device(alias)
        self.names.remove(alias)

    def end(self):
        gc.collect()
        for alias in list(self.names):
            self.unmap(alias)
        for handle in self.made:
            assert self.driver.cuCtxDestroy_v2(handle) == 0


@pytest.fixture
def contexts():
    if not wp.get_device(DEVICE).is_emulated:
        pytest.skip("uses the emulated driver by itself")
    wp.synchronize()
    all_of_them = Contexts()
    yield all_of_them
    all_of_them.end()


def test_a_context_of_another_library_is_a_device(contexts):
    handle = contexts.make()
    device = contexts.map("theirs", handle)
    assert device == "theirs" and device.is_cuda and device.ordinal == 0 and device.context == handle
    assert not device.is_primary and wp.get_device(DEVICE).is_primary and wp.get_device("cpu").context is None
    assert wp.get_device("theirs") is device and device in wp.get_cuda_devices() and device in wp.get_devices()
    assert wp.is_device_available("theirs") and device.context != wp.get_device(DEVICE).context
    x = wp.zeros(100, dtype=float, device="theirs")
    for _ in range(3):
        wp.launch(add_one, 100, inputs=[x], device="theirs")
    assert set(x.list()) == {3.0}
    assert wp.utils.array_sum(x) == 300.0
    y = x.to(DEVICE)
    wp.launch(add_one, 100, inputs=[y], device=DEVICE)
    wp.copy(x, y)
    assert set(x.list()) == {4.0} and y.device == DEVICE
    with wp.ScopedDevice("theirs"):
        assert wp.get_device("cuda") is device and wp.ones(3, dtype=float).device == "theirs"
    assert contexts.current() != handle  # the current context is left as it was


def test_each_context_loads_its_own_code_and_has_its_own_streams(contexts):
    devices = [contexts.map(f"of {ordinal}", contexts.make(ordinal)) for ordinal in (0, 1, 1)[:2]]
    arrays = [wp.zeros(10, dtype=float, device=device) for device in devices]
    streams = [wp.Stream(device) for device in devices]
    wp.synchronize()
    for _ in range(2):
        for device, stream, x in zip(devices, streams, arrays, strict=True):
            wp.launch(add_one, 10, inputs=[x], device=device, stream=stream)
    events = [stream.record_event() for stream in streams]
    for device, event in zip(devices, reversed(events), strict=True):
        wp.get_stream(device).wait_event(event)
    for stream in streams:
        wp.synchronize_stream(stream)
    assert all(set(x.list()) == {2.0} for x in arrays)
    assert [device.ordinal for device in devices] == [0, 1]


def test_the_current_context_is_named_where_none_is_given(contexts):
    handle = contexts.make(keep_current=True)
    try:
        device = contexts.map("current")
        assert device.context == handle and contexts.current() == handle
        x = wp.ones(3, dtype=float, device=device)
        y = wp.ones(3, dtype=float, device=DEVICE)
        wp.launch(add_one, 3, inputs=[y], device=DEVICE)
        assert x.list() == [1.0] * 3 and y.list() == [2.0] * 3 and contexts.current() == handle
    finally:
        assert contexts.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0
    before = contexts.current()
    assert contexts.driver.cuCtxSetCurrent(None) == 0
    try:
        with pytest.raises(RuntimeError, match="'nobody' cannot name a context: no context is current"):
            wp.map_cuda_device("nobody")
    finally:
        assert contexts.driver.cuCtxSetCurrent(ctypes.c_void_p(before)) == 0


def test_a_device_makes_its_context_current(contexts):
    before = contexts.current()
    made = contexts.map("made", contexts.make())
    try:
        for device in (wp.get_device(OTHER), made):
            device.make_current()
            assert contexts.current() == device.context
        wp.get_device("cpu").make_current()
        assert contexts.current() == made.context
        contexts.driver.weftEmulatedFail(b"cuCtxSetCurrent", 1, 999)
        with pytest.raises(RuntimeError, match="cuCtxSetCurrent"):
            wp.get_device(OTHER).make_current()
        assert contexts.current() == made.context
    finally:
        contexts.driver.weftEmulatedFail(None, 0, 0)
        assert contexts.driver.cuCtxSetCurrent(ctypes.c_void_p(before)) == 0


@pytest.mark.parametrize("name", [DEVICE, OTHER])
def test_a_thread_without_a_context_keeps_that_of_the_first_gpu_alone(contexts, name):
    """NVIDIA's runtime, and with it other libraries, takes the GPU of the current context for the thread's own."""
    x = wp.ones(10, dtype=float, device=name)
    found = []

    def work():
        found.append(contexts.current())
        wp.launch(add_one, 10, inputs=[x], device=name)
        wp.synchronize_device(name)
        found.append(contexts.current())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [None, wp.get_device(DEVICE).context if name == DEVICE else None]
    assert x.list() == [2.0] * 10


def test_a_primary_context_gets_one_more_name(contexts):
    device = wp.get_device(OTHER)
    assert contexts.map("second", device.context) is device and wp.get_device("second") is device
    assert device.is_primary and device.alias == OTHER and wp.get_cuda_devices().count(device) == 1
    assert wp.zeros(3, device="second").device == OTHER
    assert wp.map_cuda_device("second", device.context) is device  # once more
    contexts.unmap("second")
    assert wp.get_device(OTHER) is device and wp.zeros(3, dtype=float, device=OTHER).list() == [0.0] * 3
    with pytest.raises(ValueError, match="there is no device 'second'"):
        wp.get_device("second")


def test_graphs_and_memory_of_a_context(contexts):
    device = contexts.map("theirs", contexts.make())
    x = wp.zeros(10, dtype=float, device=device)
    wp.launch(add_one, 10, inputs=[x], device=device)
    with wp.ScopedCapture(device=device) as capture:
        made = wp.full(10, 2.0, dtype=float, device=device)
        wp.launch(add_one, 10, inputs=[made], device=device)
        wp.copy(x, made)
    assert capture.graph.device is device
    for _ in range(2):
        wp.capture_launch(capture.graph)
    assert set(x.list()) == {3.0}
    with pytest.raises(RuntimeError, match=r"captured on 'theirs', the stream is of 'cuda:0'"):
        wp.capture_launch(capture.graph, stream=wp.get_stream(DEVICE))
    assert device.is_mempool_supported and device.is_mempool_enabled
    with wp.ScopedMempool(device, False):
        plain = wp.full(10, 5.0, dtype=float, device=device)
    assert set(plain.list()) == {5.0}
    host = wp.array(np.arange(10, dtype=np.float32), device="cpu", pinned=True)
    wp.copy(plain, host)
    assert plain.list() == list(range(10))
    # memory that another library shows is of the context that it lies in
    shown = wp.array(plain, device=device, copy=False)
    assert shown.device is device


def test_arrays_of_a_pool_are_open_to_all_contexts_of_a_gpu_and_others_are_not(contexts):
    device = contexts.map("theirs", contexts.make())
    x = wp.zeros(10, dtype=float, device=DEVICE)
    wp.synchronize()
    assert wp.can_access(device, x) and wp.is_mempool_access_enabled(DEVICE, device)
    wp.launch(add_one, 10, inputs=[x], device=device)
    wp.synchronize_device(device)
    assert set(x.list()) == {1.0}
    with wp.ScopedMempool(DEVICE, False):
        plain = wp.zeros(10, dtype=float, device=DEVICE)
    assert not wp.can_access(device, plain)
    with pytest.raises(RuntimeError, match="'cuda:0'"):
        wp.launch(add_one, 10, inputs=[plain], device=device)
    far = wp.zeros(10, dtype=float, device=OTHER)
    with pytest.raises(RuntimeError, match="'cuda:1'"):
        wp.launch(add_one, 10, inputs=[far], device=device)


def test_a_name_is_given_back(contexts):
    handle = contexts.make()
    device = contexts.map("theirs", handle)
    x, stream = wp.zeros(10, dtype=float, device=device), wp.Stream(device)
    wp.launch(add_one, 10, inputs=[x], device=device)
    with pytest.raises(RuntimeError, match="1 allocations of 'theirs' are in use. help: delete its arrays"):
        wp.unmap_cuda_device("theirs")
    with wp.ScopedDevice(device), pytest.raises(RuntimeError, match="'theirs' is the default device"):
        wp.unmap_cuda_device("theirs")
    assert set(x.list()) == {1.0}
    del x
    gc.collect()
    contexts.unmap("theirs")
    assert not wp.is_device_available("theirs") and device not in wp.get_cuda_devices()
    for use in (
        lambda: wp.zeros(3, device=device),
        lambda: wp.launch(add_one, 3, inputs=[wp.zeros(3, device=DEVICE)], device=device),
        lambda: wp.Stream(device),
        stream.record_event,
    ):
        with pytest.raises(RuntimeError, match="'theirs' is no device any more"):
            use()
    with pytest.raises(RuntimeError, match="'theirs' names no context"):
        wp.unmap_cuda_device("theirs")
    again = contexts.map("theirs", handle)
    assert again is not device and wp.ones(3, dtype=float, device="theirs").list() == [1.0] * 3
    wp.synchronize()


@wp.kernel
def heights(mesh: wp.uint64, out: wp.array[float]):
    out[wp.tid()] = wp.mesh_query_ray(mesh, wp.vec3(0.2, 0.2, 5.0), wp.vec3(0.0, 0.0, -1.0), 10.0).t


def test_a_name_is_given_back_after_geometry(contexts):
    device = contexts.map("theirs", contexts.make())
    with wp.ScopedDevice(device):
        corners = wp.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], dtype=wp.vec3)
        mesh = wp.Mesh(corners, wp.array([0, 1, 2], dtype=int))
        grid, out = wp.HashGrid(4, 4, 4), wp.zeros(2, dtype=float)
        grid.build(corners, 1.0)
        wp.launch(heights, 2, [mesh.id, out])
        assert out.list() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="allocations of 'theirs' are in use"):
        wp.unmap_cuda_device("theirs")
    with wp.ScopedDevice(device):
        wp.launch(heights, 1, [mesh.id, out])
    del corners, mesh, grid, out
    gc.collect()
    contexts.unmap("theirs")
    assert not wp.is_device_available("theirs")


@wp.kernel
def tells(x: wp.array[float]):
    if x[wp.tid()] == 0.0:
        print(x[wp.tid()])


def test_a_name_is_given_back_after_reports(contexts, capfd):
    x = wp.zeros(1, dtype=float, device=contexts.map("theirs", contexts.make()))
    wp.launch(tells, 1, inputs=[x], device="theirs")
    wp.synchronize_device("theirs")
    del x
    gc.collect()
    wp.unmap_cuda_device("theirs")
    contexts.names.remove("theirs")
    with pytest.raises(RuntimeError, match="theirs"):
        wp.get_device("theirs")


def test_a_name_is_given_back_without_a_default_device():
    """In a process of its own: no call has asked for the default device."""
    program = f"""
import ctypes
import warp as wp
driver, handle = ctypes.CDLL({str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so"))!r}), ctypes.c_void_p()
wp.zeros(3, dtype=float, device="cuda:0")
assert driver.cuCtxCreate_v4(ctypes.byref(handle), None, 0, 0) == 0
wp.map_cuda_device("theirs", handle.value)
wp.unmap_cuda_device("theirs")
print("given back")
"""
    environment = {**os.environ, "WARP_CUDA_DRIVER": "emulated"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("given back\n"), done.stderr


def test_wrong_names_and_handles_of_contexts_are_errors(contexts):
    handle = contexts.make()
    for taken in ("cpu", "cuda", DEVICE, OTHER, ""):
        with pytest.raises(RuntimeError, match="cannot name a context"):
            wp.map_cuda_device(taken, handle)
    contexts.map("theirs", handle)
    assert wp.map_cuda_device("theirs", handle) == "theirs"
    with pytest.raises(RuntimeError, match="it names another device"):
        wp.map_cuda_device("theirs", contexts.make())
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_CONTEXT"):
        wp.map_cuda_device("nowhere", 12345)
    for wrong in ("x", 0, -1, True, 1.5):
        with pytest.raises(TypeError, match="expected the handle of a context, an int, or None"):
            wp.map_cuda_device("mine", wrong)
    with pytest.raises(TypeError, match="alias is 3, expected a name"):
        wp.map_cuda_device(3, handle)
    with pytest.raises(RuntimeError, match="'cuda:0' names no context"):
        wp.unmap_cuda_device(DEVICE)


def test_without_a_driver_there_are_no_contexts(run):
    printed = run(
        """
        try:
            wp.map_cuda_device("mine", 1)
        except RuntimeError as error:
            print(error)
        """,
        WARP_CUDA_DRIVER="none",
    )
    assert "'mine' cannot name a context: there is no CUDA device: WARP_CUDA_DRIVER is 'none'" in printed

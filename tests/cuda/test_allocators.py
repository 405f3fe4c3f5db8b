"""Allocators of programs on CUDA devices: wp.set_device_allocator, wp.ScopedAllocator, managed memory, RMM."""

import gc
import sys
import types

import numpy as np
import pytest
import warp as wp


class Counting:
    """Takes memory from the device's own allocator and notes what is asked of it."""

    def __init__(self, device):
        self.own = wp.get_device(device).get_allocator()
        self.live = {}
        self.calls = 0

    def allocate(self, size_in_bytes):
        self.calls += 1
        address = self.own.allocate(size_in_bytes)
        self.live[address] = size_in_bytes
        return address

    def deallocate(self, ptr, size_in_bytes):
        assert self.live.pop(ptr) == size_in_bytes
        self.own.deallocate(ptr, size_in_bytes)


@pytest.fixture
def cuda():
    found = wp.get_cuda_devices()
    if not found:
        pytest.skip("needs a CUDA device")
    yield found[0].alias
    wp.set_cuda_allocator(None)


@wp.kernel
def scale(a: wp.array[float], factor: float):
    a[wp.tid()] *= factor


def test_arrays_live_in_the_memory_of_the_allocator(cuda):
    allocator = Counting(cuda)
    before = wp.ones(10, device=cuda)
    with wp.ScopedAllocator(cuda, allocator):
        assert wp.get_device_allocator(cuda) is allocator
        a = wp.ones(1000, dtype=float, device=cuda)
        zeros = wp.zeros((3, 4), dtype=wp.vec3, device=cuda)
        data = wp.array(np.arange(5, dtype=np.float32), device=cuda)
        copy = wp.clone(data)
        assert {each.ptr for each in (a, zeros, data, copy)} == set(allocator.live)
        assert allocator.live[zeros.ptr] == 12 * 12
        del before
    assert wp.get_device_allocator(cuda) is not allocator
    wp.launch(scale, dim=1000, inputs=[a, 3.0], device=cuda)
    assert (a.numpy() == 3.0).all() and not zeros.numpy().any()
    assert data.numpy().tolist() == copy.numpy().tolist() == [0, 1, 2, 3, 4]
    assert allocator.calls == 4
    del a, zeros, data, copy
    wp.synchronize_device(cuda)
    assert not allocator.live, "memory goes back to where it came from"


def test_all_devices_have_it_until_it_is_taken_away(cuda):
    allocator = Counting(cuda)
    wp.set_cuda_allocator(allocator)
    a = wp.zeros(3, device=cuda)
    assert a.ptr in allocator.live
    wp.set_device_allocator(cuda, None)
    assert wp.zeros(3, device=cuda).ptr not in allocator.live
    assert wp.zeros(3, device="cpu").ptr not in allocator.live
    assert allocator.calls == 1


def test_graphs_keep_memory_of_the_allocator(cuda):
    allocator = Counting(cuda)
    with wp.ScopedDevice(cuda), wp.ScopedAllocator(cuda, allocator):
        a = wp.ones(64, dtype=float)
        with wp.ScopedCapture() as capture:
            wp.launch(scale, dim=64, inputs=[a, 2.0])
        address = a.ptr
        wp.capture_launch(capture.graph)
        assert (a.numpy() == 2.0).all()
        del a
        wp.capture_launch(capture.graph)
        wp.synchronize()
        assert address in allocator.live
        del capture
        gc.collect()
        wp.synchronize()
        assert not allocator.live


@pytest.mark.parametrize("given, message", [(0, "gave 0 for 40 bytes"), ("x", "gave 'x' for 40"), (None, "gave None")])
def test_memory_that_is_none_is_an_error(cuda, given, message):
    class Wrong:
        def allocate(self, size_in_bytes):
            return given

        def deallocate(self, ptr, size_in_bytes):
            raise AssertionError("nothing was allocated")

    with wp.ScopedAllocator(cuda, Wrong()), pytest.raises(MemoryError, match=message):
        wp.zeros(10, dtype=float, device=cuda)


def test_memory_at_odd_places_is_an_error(cuda):
    back = []

    class Odd(Counting):
        def allocate(self, size_in_bytes):
            return super().allocate(size_in_bytes + 64) + 4

        def deallocate(self, ptr, size_in_bytes):
            back.append(ptr % 64)
            super().deallocate(ptr - 4, size_in_bytes + 64)

    with wp.ScopedAllocator(cuda, Odd(cuda)), pytest.raises(RuntimeError, match="expected a multiple of 64"):
        wp.zeros(10, dtype=float, device=cuda)
    assert back == [4]


def test_errors_of_an_allocator_reach_the_program(cuda):
    class Full(Counting):
        def allocate(self, size_in_bytes):
            raise MemoryError("nothing left in the pool")

    with wp.ScopedAllocator(cuda, Full(cuda)), pytest.raises(MemoryError, match="nothing left in the pool"):
        wp.zeros(10, dtype=float, device=cuda)
    assert wp.zeros(10, device=cuda).numpy().sum() == 0


def test_objects_without_the_methods_are_refused(cuda):
    for set_it in (wp.set_cuda_allocator, lambda it: wp.set_device_allocator(cuda, it)):
        with pytest.raises(TypeError, match=r"expected an object with allocate\(size_in_bytes\)"):
            set_it(3)
    assert isinstance(Counting(cuda), wp.Allocator)
    assert not isinstance(3, wp.Allocator)


def test_the_cpu_has_its_own_memory():
    own = wp.get_device_allocator("cpu")
    address = own.allocate(100)
    assert address % 64 == 0
    own.deallocate(address, 100)
    for use in (lambda: wp.set_device_allocator("cpu", None), lambda: wp.ScopedAllocator("cpu", None)):
        with pytest.raises(RuntimeError, match="'cpu' has no other allocators, which are of CUDA devices"):
            use()
    if not wp.is_cuda_available():
        with pytest.raises(RuntimeError, match="there is no CUDA device"):
            wp.set_cuda_allocator(None)


def test_managed_memory(cuda):
    with wp.ScopedAllocator(cuda, wp.CudaManagedAllocator()):
        a = wp.full(100, 2.0, dtype=float, device=cuda)
    assert a.memory_kind == wp.MemoryKind.CUDA_MANAGED
    assert wp.zeros(3, device=cuda).memory_kind != wp.MemoryKind.CUDA_MANAGED
    wp.launch(scale, dim=100, inputs=[a, 4.0], device=cuda)
    assert (a.numpy() == 8.0).all()


class DeviceBuffer:
    """The class of this name in the package rmm, as far as it is used."""

    own = None

    def __init__(self, *, size):
        self.size = size
        self.ptr = self.own.allocate(size)

    def __del__(self):
        self.own.deallocate(self.ptr, self.size)


def test_memory_of_rmm(cuda, monkeypatch):
    monkeypatch.setitem(sys.modules, "rmm", types.SimpleNamespace(DeviceBuffer=DeviceBuffer))
    monkeypatch.setattr(DeviceBuffer, "own", Counting(cuda))
    allocator = wp.utils.AllocatorRmm()
    with wp.ScopedAllocator(cuda, allocator):
        a = wp.zeros(10, dtype=float, device=cuda)
    assert DeviceBuffer.own.live == {a.ptr: 40}
    del a
    wp.synchronize_device(cuda)
    assert not DeviceBuffer.own.live
    with pytest.raises(ValueError, match="3 is no address that allocate"):
        allocator.deallocate(3, 10)


def test_rmm_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "rmm", None)
    with pytest.raises(RuntimeError, match="the package rmm is not installed. help: pip install rmm-cu12"):
        wp.utils.AllocatorRmm()

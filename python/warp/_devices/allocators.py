"""Memory of CUDA devices from a program's own allocators, managed memory, and the RAPIDS Memory Manager."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from warp._devices.enums import MemoryKind
from warp._weft import get_cuda_devices, get_device
from warp._weft import memory as _memory
from warp._weft import usage_error as _usage_error

__all__ = [
    "Allocator",
    "AllocatorRmm",
    "CudaManagedAllocator",
    "ScopedAllocator",
    "get_device_allocator",
    "set_cuda_allocator",
    "set_device_allocator",
]


@runtime_checkable
class Allocator(Protocol):
    """The protocol of ``wp.set_device_allocator``: these methods, and ``memory_kind`` if all memory is of one kind.

    While they run, the context of the device is the current one of the thread.
    """

    def allocate(self, size_in_bytes: int) -> int:
        """The address of new memory of the device, at a multiple of 64."""

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Takes memory of ``allocate`` back. The device's work is done then; any thread may call it."""


class CudaManagedAllocator:
    """Makes arrays in managed memory, which moves between the host and GPUs by itself: ``cuMemAllocManaged``.

        with wp.ScopedAllocator("cuda:0", wp.CudaManagedAllocator()):
            a = wp.zeros(1000)

    One object serves all devices. Captures cannot allocate managed memory.
    """

    memory_kind = MemoryKind.CUDA_MANAGED
    deallocate_requires_context_guard = False

    def allocate(self, size_in_bytes: int) -> int:
        """Managed memory of the current CUDA context. UsageError if there is none."""
        return _memory.allocate_managed(size_in_bytes)

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Frees it."""
        _memory.free_managed(ptr)


class AllocatorRmm:
    """Takes the memory of arrays from the RAPIDS Memory Manager, by ``rmm.DeviceBuffer``.

    The resource is the one that RMM has for the device at the time: ``rmm.mr.set_current_device_resource``.

    Raises:
        UsageError (a RuntimeError): the package ``rmm`` is not installed.
    """

    def __init__(self) -> None:
        try:
            import rmm
        except ImportError:
            message = "AllocatorRmm(): the package rmm is not installed. help: pip install rmm-cu12"
            raise _usage_error(message, RuntimeError) from None
        self._rmm = rmm
        self._buffers: dict[int, Any] = {}

    def allocate(self, size_in_bytes: int) -> int:
        """The address of a new ``rmm.DeviceBuffer``."""
        buffer = self._rmm.DeviceBuffer(size=size_in_bytes)
        self._buffers[buffer.ptr] = buffer
        return buffer.ptr

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Lets go of the buffer at this address."""
        if self._buffers.pop(ptr, None) is None:
            raise _usage_error(f"AllocatorRmm.deallocate(): {ptr} is no address that allocate() gave", ValueError)


def _checked(allocator: Any, api: str) -> Any:
    if allocator is None or isinstance(allocator, Allocator):
        return allocator
    message = f"{api}: the allocator is {allocator!r}, expected an object with allocate(size_in_bytes) and "
    raise _usage_error(message + "deallocate(ptr, size_in_bytes), or None", TypeError)


def set_device_allocator(device: Any, allocator: Allocator | None) -> None:
    """Takes the memory of arrays that are made afterwards on a CUDA device from an allocator.

    Earlier allocations go back to the allocator that they came from.

    Args:
        device: the CUDA device.
        allocator: an object with ``allocate(size_in_bytes)`` and ``deallocate(ptr, size_in_bytes)``; None for the
            device's own memory.
    Raises:
        UsageError (a RuntimeError): the device is no CUDA device; (a TypeError): the allocator lacks a method.
    """
    found = get_device(device)
    if not found.is_cuda:
        message = f"set_device_allocator(): {found.alias!r} has no other allocators, which are of CUDA devices"
        raise _usage_error(message, RuntimeError)
    _memory.set_allocator(found, _checked(allocator, "set_device_allocator()"))


def set_cuda_allocator(allocator: Allocator | None) -> None:
    """Takes the memory of arrays on all CUDA devices from an allocator: see :func:`set_device_allocator`.

    Raises:
        UsageError (a RuntimeError): there is no CUDA device; (a TypeError): the allocator lacks a method.
    """
    checked = _checked(allocator, "set_cuda_allocator()")
    devices = get_cuda_devices()
    if not devices:
        raise _usage_error("set_cuda_allocator(): there is no CUDA device", RuntimeError)
    for device in devices:
        _memory.set_allocator(device, checked)


def get_device_allocator(device: Any) -> Any:
    """The source of a device's memory for arrays: the object that was set, or the device's own allocator."""
    found = get_device(device)
    return _memory.allocator(found) or found.get_allocator()


class ScopedAllocator:
    """Another allocator of a CUDA device inside a ``with`` block.

    Args:
        device: the CUDA device.
        allocator: as for :func:`set_device_allocator`.
    Raises:
        UsageError: as from :func:`set_device_allocator`.
    """

    def __init__(self, device: Any, allocator: Allocator | None):
        self.device = get_device(device)
        if not self.device.is_cuda:
            message = f"ScopedAllocator(): {self.device.alias!r} has no other allocators, which are of CUDA devices"
            raise _usage_error(message, RuntimeError)
        self.allocator = _checked(allocator, "ScopedAllocator()")
        self._outer: list[Any] = []

    def __enter__(self) -> ScopedAllocator:
        self._outer.append(_memory.allocator(self.device))
        _memory.set_allocator(self.device, self.allocator)
        return self

    def __exit__(self, *error: Any) -> None:
        _memory.set_allocator(self.device, self._outer.pop())

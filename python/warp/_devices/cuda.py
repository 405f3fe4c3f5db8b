"""Queries and settings of CUDA: drivers, memory pools, access between devices.

Queries take the CPU too. A setting that would need a CUDA device is an error for the CPU; one that changes nothing is
accepted.
"""

from __future__ import annotations

from typing import Any

from warp._weft import Kernel, array, get_device
from warp._weft import graphs as _graphs
from warp._weft import map_cuda_context as _map_cuda_context
from warp._weft import memory as _memory
from warp._weft import unmap_cuda_context as _unmap_cuda_context
from warp._weft import usage_error as _usage_error

__all__ = [
    "ScopedMempool",
    "ScopedMempoolAccess",
    "ScopedPeerAccess",
    "can_access",
    "get_cuda_driver_version",
    "get_cuda_kernel_properties",
    "get_cuda_max_cluster_dim",
    "get_cuda_supported_archs",
    "get_cuda_toolkit_version",
    "get_mempool_release_threshold",
    "get_mempool_used_mem_current",
    "get_mempool_used_mem_high",
    "get_suggested_block_size",
    "is_conditional_graph_supported",
    "is_mempool_access_enabled",
    "is_mempool_access_supported",
    "is_mempool_enabled",
    "is_mempool_supported",
    "is_peer_access_enabled",
    "is_peer_access_supported",
    "map_cuda_device",
    "set_mempool_access_enabled",
    "set_mempool_enabled",
    "set_mempool_release_threshold",
    "set_peer_access_enabled",
    "unmap_cuda_device",
]


def get_cuda_driver_version() -> tuple[int, int] | None:
    """Version of the CUDA driver as (major, minor); None if there is none."""
    return _memory.driver_version()


def get_cuda_toolkit_version() -> tuple[int, int] | None:
    """Version of the CUDA toolkit that this build was made with; None: Weft is made without one, and needs none."""
    return None


def get_cuda_supported_archs() -> list[int]:
    """The CUDA architectures that code can be compiled for, ascending; empty without a CUDA device."""
    return _memory.supported_archs()


def is_conditional_graph_supported() -> bool:
    """Whether CUDA graphs may have conditional nodes: with a CUDA device, and a driver of CUDA 12.4 or later."""
    return _graphs.has_conditions()


def get_suggested_block_size(kernel: Any, device: Any = None) -> tuple[int, int]:
    """The block size with the highest occupancy for a kernel, and the least number of blocks that fill the device.

    Args:
        kernel: a kernel that is not generic, or an instance of one (``wp.overload``).
        device: a device or its name; the default device if None.
    Returns:
        (threads of a block, blocks); (1, 1) on the CPU.
    Raises:
        UsageError (a TypeError): ``kernel`` is none, or is generic.
    """
    if not isinstance(kernel, Kernel):
        raise _usage_error(f"get_suggested_block_size(): expected a kernel, got {kernel!r}", TypeError)
    found = get_device(device)
    if not found.is_cuda:
        return (1, 1)
    if kernel.is_generic:
        message = f"get_suggested_block_size(): kernel {kernel.key!r} is generic. help: wp.overload(kernel, types)"
        raise _usage_error(message, TypeError)
    return kernel.suggested_block(found)


def can_access(device: Any, resource: Any) -> bool:
    """Whether kernels on a device can read and write the memory of an array.

    Args:
        device: a device or its name.
        resource: a ``wp.array``.
    Raises:
        UsageError: there is no such device, or ``resource`` is no array.
    """
    here = get_device(device)
    if isinstance(resource, array):
        return _memory.may_touch(here, resource)
    if hasattr(resource, "device"):
        return here.can_access(resource.device)
    raise _usage_error(f"can_access(): expected a wp.array, got {resource!r}", TypeError)


# ---- memory pools ----


def _cuda_device(device: Any, api: str, what: str) -> Any:
    found = get_device(device)
    if not found.is_cuda:
        raise _usage_error(f"{api}: {what}, and the CPU is none", ValueError)
    return found


_POOLS = "memory pools are of CUDA devices"
_POOL_ACCESS = "access to memory pools is between CUDA devices"
_PEERS = "peer access is between CUDA devices"


def is_mempool_supported(device: Any) -> bool:
    """Whether a device can allocate from a memory pool."""
    return get_device(device).is_mempool_supported


def is_mempool_enabled(device: Any) -> bool:
    """Whether a device allocates from a memory pool."""
    return get_device(device).is_mempool_enabled


def set_mempool_enabled(device: Any, enable: bool) -> None:
    """Makes a CUDA device allocate from its memory pool or not; arrays that there are keep their memory.

    Without the pool each allocation is one of the driver's own, and waits for the device. False is accepted for the
    CPU.

    Args:
        device: a CUDA device or its name.
        enable: whether later allocations come from the pool.
    Raises:
        UsageError: a ValueError for the CPU, a RuntimeError if the device has no pool.
    """
    if not enable and not get_device(device).is_cuda:
        return
    _memory.set_pool_enabled(_cuda_device(device, "set_mempool_enabled()", _POOLS), bool(enable))


def get_mempool_release_threshold(device: Any = None) -> int:
    """Bytes that the memory pool of a CUDA device keeps when they are free."""
    return _memory.release_threshold(_cuda_device(device, "get_mempool_release_threshold()", _POOLS))


def set_mempool_release_threshold(device: Any, threshold: float) -> None:
    """Sets how many bytes the memory pool of a CUDA device keeps when they are free.

    Free memory beyond that goes back to the driver at the next synchronization of the device. Weft's devices begin
    with a pool that keeps all.

    Args:
        device: a CUDA device or its name.
        threshold: bytes; a number from 0 to 1 is a part of the device's memory.
    Raises:
        UsageError: a ValueError for the CPU and for a negative number, a RuntimeError if the device has no pool.
    """
    api = "set_mempool_release_threshold()"
    found = _cuda_device(device, api, _POOLS)
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
        raise _usage_error(f"{api}: threshold is {threshold!r}, expected a number of bytes", TypeError)
    if not 0 <= threshold < 2**64:
        raise _usage_error(
            f"{api}: threshold is {threshold!r}, expected bytes from 0 on, or a part up to 1", ValueError
        )
    _memory.set_release_threshold(found, int(threshold * found.total_memory if threshold <= 1 else threshold))


def get_mempool_used_mem_current(device: Any = None) -> int:
    """Bytes in use of the memory pool of a CUDA device."""
    return _memory.used(_cuda_device(device, "get_mempool_used_mem_current()", _POOLS))


def get_mempool_used_mem_high(device: Any = None) -> int:
    """The most bytes that were in use of the memory pool of a CUDA device."""
    return _memory.most_used(_cuda_device(device, "get_mempool_used_mem_high()", _POOLS))


# ---- access between devices ----


def _set_access(of_pool: bool, target: Any, peer: Any, enable: bool, api: str, what: str) -> None:
    devices = [get_device(target), get_device(peer)]
    if not enable and not all(device.is_cuda for device in devices):
        return
    for device in devices:
        _cuda_device(device, api, what)
    _memory.set_open(of_pool, *devices, bool(enable))


def is_mempool_access_supported(target_device: Any, peer_device: Any) -> bool:
    """Whether kernels on ``peer_device`` could touch the memory pool of ``target_device``."""
    return _memory.can_open(True, get_device(target_device), get_device(peer_device))


def is_mempool_access_enabled(target_device: Any, peer_device: Any) -> bool:
    """Whether kernels on ``peer_device`` may touch the memory pool of ``target_device``."""
    return _memory.is_open(True, get_device(target_device), get_device(peer_device))


def set_mempool_access_enabled(target_device: Any, peer_device: Any, enable: bool) -> None:
    """Lets kernels on ``peer_device`` touch the memory pool of ``target_device`` or not; False is accepted for the CPU.

    Arrays of a device that is not open to the launch's device are an error of the launch. ``wp.copy()`` needs no
    access.

    Raises:
        UsageError: a ValueError for the CPU, a RuntimeError if the machine does not allow it.
    """
    api = "set_mempool_access_enabled()"
    _set_access(True, target_device, peer_device, enable, api, _POOL_ACCESS)


def is_peer_access_supported(target_device: Any, peer_device: Any) -> bool:
    """Whether kernels on ``peer_device`` could touch the memory of ``target_device`` that is not from a pool."""
    return _memory.can_open(False, get_device(target_device), get_device(peer_device))


def is_peer_access_enabled(target_device: Any, peer_device: Any) -> bool:
    """Whether kernels on ``peer_device`` may touch the memory of ``target_device`` that is not from a pool."""
    return _memory.is_open(False, get_device(target_device), get_device(peer_device))


def set_peer_access_enabled(target_device: Any, peer_device: Any, enable: bool) -> None:
    """Lets kernels on ``peer_device`` touch the memory of ``target_device`` that is not from a pool, or not.

    It is for the memory of other libraries, and for arrays that were made while the pool was off;
    ``wp.set_mempool_access_enabled()`` is for pools. False is accepted for the CPU.

    Raises:
        UsageError: a ValueError for the CPU, a RuntimeError if the machine does not allow it.
    """
    _set_access(False, target_device, peer_device, enable, "set_peer_access_enabled()", _PEERS)


# ---- settings for a block ----


class ScopedMempool:
    """Whether a CUDA device allocates from its memory pool inside a ``with`` block; False is accepted for the CPU."""

    def __init__(self, device: Any, enable: bool):
        self.device = get_device(device)
        self.enable = enable

    def __enter__(self) -> None:
        self.saved_setting = is_mempool_enabled(self.device)
        set_mempool_enabled(self.device, self.enable)

    def __exit__(self, *error) -> None:
        set_mempool_enabled(self.device, self.saved_setting)


class _ScopedAccess:
    _is_set: Any = None
    _set: Any = None

    def __init__(self, target_device: Any, peer_device: Any, enable: bool):
        self.target_device = get_device(target_device)
        self.peer_device = get_device(peer_device)
        self.enable = enable

    def __enter__(self) -> None:
        self.saved_setting = type(self)._is_set(self.target_device, self.peer_device)
        type(self)._set(self.target_device, self.peer_device, self.enable)

    def __exit__(self, *error) -> None:
        if self.target_device != self.peer_device:
            type(self)._set(self.target_device, self.peer_device, self.saved_setting)


class ScopedMempoolAccess(_ScopedAccess):
    """Whether kernels on ``peer_device`` may touch the memory pool of ``target_device`` inside a ``with`` block."""

    _is_set = staticmethod(is_mempool_access_enabled)
    _set = staticmethod(set_mempool_access_enabled)


class ScopedPeerAccess(_ScopedAccess):
    """Whether kernels on ``peer_device`` may touch the memory of ``target_device`` inside a ``with`` block."""

    _is_set = staticmethod(is_peer_access_enabled)
    _set = staticmethod(set_peer_access_enabled)


# ---- CUDA devices ----


def get_cuda_max_cluster_dim(
    kernel: Any, device: Any = None, block_dim: int | None = None, dynamic_smem_bytes: int = 0
) -> int:
    """The most blocks that one cluster of a kernel's launch can have: 1 on the CPU, and on CUDA devices before
    architecture 90.

    Args:
        kernel: the kernel.
        device: the device that it would run on.
        block_dim: threads of a block; 256 if it is None.
        dynamic_smem_bytes: shared memory of a block.
    Raises:
        UsageError: ``kernel`` is none or generic, or there is no such device.
    """
    if not isinstance(kernel, Kernel):
        raise _usage_error(f"get_cuda_max_cluster_dim(): expected a kernel, got {kernel!r}", TypeError)
    found = get_device(device)
    if not found.is_cuda:
        return 1
    return kernel.most_clustered(found, 256 if block_dim is None else block_dim, dynamic_smem_bytes)


def get_cuda_kernel_properties(kernel: Any, device: Any = None, block_dim: int | None = None) -> dict[str, int]:
    """The needs of a thread of a kernel on a CUDA device, by the driver.

    Args:
        kernel: the kernel; of a generic one an overload.
        device: the CUDA device.
        block_dim: threads of a block, an int from 1 on; code is the same for all.
    Returns:
        ``register_count``, registers of a thread, and ``local_memory_size``, bytes of a thread's local memory.
    Raises:
        UsageError (a TypeError): ``kernel`` is none; (a RuntimeError): it is generic, or the device is the CPU; (a
            ValueError): there is no such device, or ``block_dim`` is no such int.
    """
    api = "get_cuda_kernel_properties()"
    if not isinstance(kernel, Kernel):
        raise _usage_error(f"{api}: expected a kernel, got {kernel!r}", TypeError)
    found = get_device(device)
    if not found.is_cuda:
        raise _usage_error(f"{api}: {found.alias!r} is no CUDA device", RuntimeError)
    if kernel.is_generic:
        message = f"{api}: kernel {kernel.key!r} is generic. help: wp.overload(kernel, types)"
        raise _usage_error(message, RuntimeError)
    is_count = isinstance(block_dim, int) and not isinstance(block_dim, bool) and block_dim > 0
    if block_dim is not None and not is_count:
        raise _usage_error(f"{api}: block_dim is {block_dim!r}, expected an int from 1 on", ValueError)
    registers, local_bytes = kernel.thread_needs(found)
    return {"register_count": registers, "local_memory_size": local_bytes}


def map_cuda_device(alias: str, context: int | None = None) -> Any:
    """Gives a CUDA context that another library has made a name, and makes a device of it.

    Each GPU has a primary context, which libraries share: that of ``"cuda:0"``. A context of its own, made by
    ``cuCtxCreate``, has its own streams and modules. Its device works as any other; memory from the GPU's pool is open
    to all contexts of the GPU, other memory is not. The context has to live until :func:`unmap_cuda_device`.

    Args:
        alias: a new name. One that this context has already is accepted.
        context: its handle, an int; the current one of this thread if None.
    Returns:
        The device. For a primary context it is that of ``"cuda:0"`` and so on, which has one more name then.
    Raises:
        UsageError (a RuntimeError): the name is another device's, there is no such context, or no driver; (a
            TypeError): ``alias`` is no str, or ``context`` no int.
    """
    if not isinstance(alias, str):
        raise _usage_error(f"map_cuda_device(): alias is {alias!r}, expected a name", TypeError)
    if context is not None and (not isinstance(context, int) or isinstance(context, bool) or context <= 0):
        message = f"map_cuda_device(): context is {context!r}, expected the handle of a context, an int, or None"
        raise _usage_error(message, TypeError)
    return _map_cuda_context(alias, context or 0)


def unmap_cuda_device(alias: str) -> None:
    """Takes the name of a CUDA context back, after its work is done. Its device is none any more.

    Raises:
        UsageError (a RuntimeError): :func:`map_cuda_device` has named nothing so, it is the default device, or arrays
            of it are in use.
    """
    _unmap_cuda_context(str(alias))

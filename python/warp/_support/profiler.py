"""The part of a program that NVIDIA's profilers look at."""

from __future__ import annotations

from typing import Any

from warp._weft import get_device, synchronize_device
from warp._weft import memory as _memory

__all__ = ["ScopedCudaProfiler", "cuda_profiler_start", "cuda_profiler_stop"]


def cuda_profiler_start(device: Any = None) -> None:
    """Lets profilers collect from here on that were told to wait for it: ``nsys profile -c cudaProfilerApi``.

    Args:
        device: a CUDA device; for the CPU nothing is done.
    """
    found = get_device(device)
    if found.is_cuda:
        _memory.set_profiling(found, True)


def cuda_profiler_stop(device: Any = None) -> None:
    """Ends the collection that :func:`cuda_profiler_start` began, when the device's work is done.

    Args:
        device: a CUDA device; for the CPU nothing is done.
    """
    found = get_device(device)
    if found.is_cuda:
        synchronize_device(found)
        _memory.set_profiling(found, False)


class ScopedCudaProfiler:
    """Lets profilers collect inside a ``with`` block.

    Args:
        device: a CUDA device; for the CPU nothing is done.
    """

    def __init__(self, device: Any = None):
        self.device = get_device(device)

    def __enter__(self) -> ScopedCudaProfiler:
        cuda_profiler_start(self.device)
        return self

    def __exit__(self, *error: Any) -> None:
        cuda_profiler_stop(self.device)

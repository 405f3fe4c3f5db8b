"""``wp.config.mode = "check"``: each launch on the CPU runs on the emulated CUDA device before, on copies.

The emulated device finds what a CPU cannot: threads that access the same bytes, one of them to write. What it finds is
an exception, and the launch does not take place. It is for finding mistakes: kernels run a hundred times as long.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import warp._weft as _weft
from warp._weft import array, usage_error
from warp.types import uint8

__all__ = ["check_launch"]

_told: set[str] = set()


def _device() -> Any:
    try:
        device = _weft.get_device("cuda:0")
    except (RuntimeError, ValueError):
        device = None
    if device is None or not device.is_emulated:
        raise usage_error(
            'config.mode: "check" runs launches on the emulated CUDA device, which this process does not have. help: '
            "start Python with the environment variable WARP_CUDA_DRIVER=emulated",
            RuntimeError,
        )
    return device


def _recover(device: Any) -> None:
    """Makes the emulated device usable again, which a real one would not be, and leaves nothing to be done there."""
    library = ctypes.CDLL(str(Path(_weft.__file__).with_name("weft-emulated-cuda.so")))
    library.weftEmulatedRecover.restype = ctypes.c_bool
    while library.weftEmulatedRecover():
        try:
            _weft.synchronize_device(device)
        except RuntimeError:  # the launch that has failed already, or what was behind it
            continue


def _arrays_in(value: Any) -> list[array]:
    if isinstance(value, array):
        return [value] if value.grad is None else [value, value.grad]
    if isinstance(value, _weft.StructValue):
        return [found for name in _weft.field_names(value) for found in _arrays_in(getattr(value, name))]
    return []


def _with_arrays(value: Any, array_of: Callable[[array], array]) -> Any:
    if isinstance(value, array):
        return array_of(value)
    if isinstance(value, _weft.StructValue):
        made = type(value)()
        for name in _weft.field_names(value):
            setattr(made, name, _with_arrays(getattr(value, name), array_of))
        return made
    return value


def _extent(one: array) -> tuple[int, int]:
    """The address of the first byte, and the one behind the last."""
    first = last = one.ptr or 0
    if one.size == 0:
        return first, first
    for n, stride in zip(one.shape, one.strides, strict=True):
        first, last = (first + (n - 1) * stride, last) if stride < 0 else (first, last + (n - 1) * stride)
    return first, last + _weft.type_size_bytes(one.dtype)


class _Copies:
    """Copies of arrays on a device. Those that share memory share it there."""

    def __init__(self, arrays: list[array], device: Any):
        self.device = device
        self.regions: list[tuple[int, int, array]] = []
        merged: list[list[int]] = []
        for first, last in sorted(_extent(one) for one in arrays if one.size):
            if merged and first < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        for first, last in merged:
            bytes_here = array(ptr=first, shape=last - first, dtype=uint8, device="cpu")
            start = first % 256  # vectors stay aligned as they are
            there = _weft.empty(last - first + start, dtype=uint8, device=device)
            _weft.copy(there, bytes_here, dest_offset=start, count=last - first)
            self.regions.append((first, last, there))

    def of(self, one: array) -> array:
        first, last = _extent(one)
        for begin, end, there in self.regions:
            if begin <= first and last <= end and one.size:
                at = there.ptr + begin % 256 + (one.ptr - begin)
                made = array(ptr=at, shape=one.shape, strides=one.strides, dtype=one.dtype, device=self.device)
                if one.grad is not None:
                    made.grad = self.of(one.grad)
                return made
        return _weft.zeros(one.shape, dtype=one.dtype, device=self.device)  # without elements


def _tell_once(kernel: Any, why: str) -> None:
    if kernel.key in _told:
        return
    _told.add(kernel.key)
    from warp import _logger as logger

    first = why.splitlines()[0]
    logger.log_warning(f"kernel {kernel.key!r} is not checked, since the emulated device does not take it: {first}")


def check_launch(kernel: Any, dim: tuple[int, ...], values: list[Any]) -> None:
    """Raises what the emulated device finds in this launch."""
    device = _device()
    for value in values:
        if getattr(value, "ndim", 0) and not isinstance(value, array):
            return _tell_once(kernel, f"an argument is a {type(value).__name__}, and no wp.array")
    try:
        kernel.compile(device)
    except RuntimeError as problem:  # the CPU has taken it
        return _tell_once(kernel, str(problem))
    copies = _Copies([one for value in values for one in _arrays_in(value)], device)
    arguments = [_with_arrays(value, copies.of) for value in values]
    try:
        _weft.launch(kernel, dim, arguments, device=device, record_tape=False)
        _weft.synchronize_device(device)  # code without checks reports nothing before
    except RuntimeError as problem:
        _, found, fault = str(problem).partition("the emulated device says: ")
        if not found:
            raise
        _recover(device)
        raise usage_error(f"launch(): kernel {kernel.key!r}: {fault}", RuntimeError) from None

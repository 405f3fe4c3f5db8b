"""The current streams of libraries that have no C function for it (bindings/foreign/current_streams)."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["current_stream"]

_CUDA = 2  # DLPack's number of the kind of device


def _cupy(cupy: Any, ordinal: int) -> int:
    with cupy.cuda.Device(ordinal):  # the current stream is that of the current device
        return cupy.cuda.get_current_stream().ptr


def _torch(torch: Any, ordinal: int) -> int:
    return torch.cuda.current_stream(ordinal).cuda_stream


def _paddle(paddle: Any, ordinal: int) -> int:
    stream = paddle.device.current_stream(f"gpu:{ordinal}")
    return getattr(stream, "stream_base", stream).cuda_stream


_ASK = {"cupy": _cupy, "torch": _torch, "paddle": _paddle}


def current_stream(library: str, array: Any, ordinal: int) -> int | None:
    """The handle of the library's current stream on a CUDA device; None if its module is not loaded, or the array is
    not on the device."""
    module, where = sys.modules.get(library), getattr(array, "__dlpack_device__", None)
    if module is None or where is None or tuple(where()) != (_CUDA, ordinal):
        return None
    return _ASK[library](module, ordinal)

"""``ctypes.byref()`` of vectors, matrices, quaternions and transforms, as of ctypes' own objects.

``byref`` takes only objects of ctypes' own base class, which values of an extension cannot have. So it is replaced by
one that asks the original first; for all else nothing changes.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import warp._weft as _weft

__all__ = ["accept_values"]


def accept_values() -> None:
    """Lets ``ctypes.byref()`` take Weft's values, from now on."""
    original = ctypes.byref
    if hasattr(original, "_takes_values_of_weft"):
        return

    @functools.wraps(original)
    def byref(obj: Any, offset: int = 0) -> Any:
        try:
            return original(obj, offset)
        except TypeError:
            # A scalar does not change: writes through the address of a copy would be lost.
            if not _weft.is_value(obj) or memoryview(obj).readonly:
                raise
        memory = ctypes.c_uint8 * _weft.type_size_bytes(type(obj))
        return original(memory.from_buffer(obj), offset)

    byref._takes_values_of_weft = True
    ctypes.byref = byref

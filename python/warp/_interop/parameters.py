"""The common part of functions that are made from kernels: the kernel's parameters, extents that a caller gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp._weft as _weft

__all__ = ["Parameter", "extents", "parameters_of", "unknown_parameter"]


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str  # as annotations are written
    ndim: int | None  # of an array
    scalar: str
    inner: tuple[int, ...]  # extents of the elements
    is_written: bool  # by the kernel
    dtype: Any  # of the elements, or of a value; None of structs

    @property
    def is_array(self) -> bool:
        return self.ndim is not None

    @property
    def is_smooth(self) -> bool:
        return "float" in self.scalar


def parameters_of(kernel: Any, api: str, library: str) -> list[Parameter]:
    """The parameters of a kernel. Raises UsageError, in the name of `api`, if arrays of the library cannot be its
    arguments."""
    return [Parameter(*row) for row in _weft.kernel_parameters(kernel, api, library)]


def unknown_parameter(name: str) -> Parameter:
    """One of which only the name is known: taken for an array."""
    return Parameter(name, "", 1, "", (), False, None)


def extents(value: Any, what: str) -> tuple[int, ...]:
    """An int or a sequence of ints as a tuple; `what` names it in the error."""
    is_one = hasattr(value, "__index__")
    found = (value,) if is_one else tuple(value) if hasattr(value, "__iter__") else ()
    if not found or not all(hasattr(extent, "__index__") and extent >= 0 for extent in found):
        raise _weft.usage_error(f"{what} is {value!r}, expected an int or a tuple of ints", ValueError)
    return tuple(extent.__index__() for extent in found)

"""Functions about arrays and values that programs of earlier releases call."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Mapping
from typing import Any

import warp._weft as _weft
from warp._weft import array, named_type

__all__ = [
    "ArrayView",
    "IndexedArrayView",
    "check_one_device",
    "fixedarray",
    "from_ptr",
    "indexed_view_of",
    "transform_expand",
    "view_of",
]


def check_one_device(api: str, arrays: Mapping[str, array], device: Any = None) -> None:
    """Checks that all arrays are on one device: on ``device`` if it is given. Errors call them by their names.

    Raises:
        UsageError (a RuntimeError): one is elsewhere. A kernel would read addresses of another memory.
    """
    first_name, first = next(iter(arrays.items()))
    expected = first.device if device is None else _weft.get_device(device)
    for name, value in arrays.items():
        if value.device != expected:
            where = f"{first_name!r} is on {str(expected)!r}" if device is None else f"device is {str(expected)!r}"
            raise _weft.usage_error(
                f"{api}: {name!r} is on {str(value.device)!r}, and {where}. help: array.to({str(expected)!r})",
                RuntimeError,
            )


class ArrayView(ctypes.Structure):
    """An array as C sees it: first ``weft::ArrayView`` of ``weft/array_view.h``, then the number of dimensions."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("grad", ctypes.c_uint64),
        ("shape", ctypes.c_int64 * 4),
        ("strides", ctypes.c_int64 * 4),  # in bytes
        ("ndim", ctypes.c_int32),
    ]


def view_of(one: array) -> ArrayView:
    """``one.__ctype__()``. It keeps the memory of the array alive."""
    view = ArrayView(data=one.ptr or 0, grad=one.grad.ptr or 0 if one.requires_grad else 0, ndim=one.ndim)
    view.shape[: one.ndim] = one.shape
    view.strides[: one.ndim] = one.strides
    view._array = one
    return view


class IndexedArrayView(ctypes.Structure):
    """An indexedarray as C sees it: its array, the addresses of the int32 indices of each axis, and their numbers."""

    _fields_ = [
        ("data", ArrayView),
        ("indices", ctypes.c_uint64 * 4),
        ("shape", ctypes.c_int64 * 4),
    ]


def indexed_view_of(one: Any) -> IndexedArrayView:
    """``one.__ctype__()`` of an indexedarray. It keeps the memory of its arrays alive."""
    view = IndexedArrayView(data=view_of(one.data))
    view.indices[: one.ndim] = [part.ptr or 0 for part in one.indices]
    view.shape[: one.ndim] = one.shape
    view._array = one
    return view


def from_ptr(ptr: int, length: int, dtype: Any = None, shape: Any = None, device: Any = None) -> array:
    """A view of memory at an address; ``wp.array(ptr=...)`` replaces it.

    Args:
        ptr: the address.
        length: number of elements, if ``shape`` is not given.
        dtype: type of the elements; float32 if it is not given.
        shape: of the array.
        device: where the memory lies.
    Raises:
        UsageError: the address is null or not aligned.
    """
    warnings.warn("wp.from_ptr() is deprecated: use wp.array(ptr=...)", DeprecationWarning, stacklevel=2)
    if not ptr:
        raise _weft.usage_error("from_ptr(): the address is null", RuntimeError)
    return array(ptr=ptr, shape=length if shape is None else shape, dtype=dtype or float, device=device)


class _FixedArrayClass(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return _weft.is_annotation(value) and len(value.shape) == value.ndim and all(value.shape)


class fixedarray(metaclass=_FixedArrayClass):
    """The annotation of an array that a kernel makes: ``wp.zeros(shape=(3,), dtype=float)``.

    It equals that of any array of this dtype and as many dimensions, which functions take in its place. ``shape`` is
    kept as given and never compared.

    Args:
        shape: an int, or a tuple of up to four.
        dtype: type of the elements.
    """

    def __new__(cls, shape: int | tuple[int, ...], dtype: Any = float) -> Any:
        extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        annotation = array(dtype=dtype, ndim=len(extents))
        annotation.shape = extents
        return annotation


def transform_expand(t: Any) -> Any:
    """A float32 transform of a transform, or of a sequence of three to seven numbers. Missing numbers at the end are
    those of the identity.

    Raises:
        UsageError: there are fewer or more numbers.
    """
    numbers = list(t)
    if not 3 <= len(numbers) <= 7:
        message = f"transform_expand(): expected a transform or three to seven numbers, got {len(numbers)}"
        raise _weft.usage_error(message, ValueError)
    return named_type("transformf")(*numbers, *[0.0, 0.0, 0.0, 1.0][len(numbers) - 3 :])

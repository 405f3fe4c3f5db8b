"""a.sum(), a.mean(), a.min(), a.argmax(), a.dot(b): numbers of whole arrays, or along axes, as arrays.

They have NumPy's meaning, but for one thing: the number of a whole array is an array of one element, which a tape can
record, and which is copied to the host only on demand.
"""

from __future__ import annotations

import math
from typing import Any

import warp as wp
import warp._weft as _weft
from warp._arrays.arrays import check_one_device
from warp._gradients.recording import is_smooth
from warp._weft import array, type_name, usage_error
from warp.types import _with_scalar

_CHUNKS = 1024  # that a long row is cut into, for as many threads


# ---- operands ----


def _info(values: array, api: str) -> dict[str, Any]:
    info = _weft.type_info(values.dtype)
    if info is None:
        raise usage_error(f"{api}: arrays of the struct {type_name(values.dtype)} have no arithmetic", TypeError)
    return info


def _sum_dtype(values: array, api: str) -> Any:
    """As in NumPy: integers are added in 64 bits, and floats keep their type."""
    info = _info(values, api)
    if info["scalar_kind"] == "float":
        return values.dtype
    is_unsigned = info["scalar"] in (wp.uint8, wp.uint16, wp.uint32, wp.uint64)
    return _with_scalar(values.dtype, wp.uint64 if is_unsigned else wp.int64)


def _axes(values: array, axis: Any, api: str) -> list[int] | None:
    """The axes in order, the last one first; None for the whole array."""
    if axis is None:
        return None
    given = list(axis) if isinstance(axis, tuple) else [axis]
    for one in given:
        if isinstance(one, bool) or not hasattr(one, "__index__"):
            raise usage_error(f"{api}: 'axis' is {axis!r}, expected an int, a tuple of ints or None", TypeError)
        if not -values.ndim <= one.__index__() < values.ndim:
            raise usage_error(
                f"{api}: there is no axis {one}, the array of shape {values.shape} has {values.ndim} dimensions",
                IndexError,
            )
    axes = sorted((one.__index__() % values.ndim for one in given), reverse=True)
    if len(set(axes)) != len(axes):
        raise usage_error(f"{api}: 'axis' is {axis!r}, which has an axis twice", ValueError)
    return None if len(axes) == values.ndim else axes


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


# ---- sums ----


def _sum(values: array, axes: list[int] | None, dtype: Any) -> array:
    from warp.utils import array_sum

    smooth = is_smooth(values)
    if axes is None:
        return array_sum(values, out=wp.empty(1, dtype=dtype, device=values.device, requires_grad=smooth))
    for axis in axes:
        shape = _without(values.shape, axis)
        out = wp.empty(shape, dtype=dtype, device=values.device, requires_grad=smooth)
        values = array_sum(values, out=out, axis=axis)
    return values


def sum_of(values: array, axis: int | tuple[int, ...] | None = None) -> array:
    """The sum of all elements, or along axes; of vectors and matrices by components."""
    api = "array.sum()"
    dtype = _sum_dtype(values, api)
    return _sum(values, _axes(values, axis, api), dtype)


def mean_of(values: array, axis: int | tuple[int, ...] | None = None) -> array:
    """The sum divided by the number of elements, rounded once; of integers and bools in float64."""
    api = "array.mean()"
    info = _info(values, api)
    axes = _axes(values, axis, api)
    count = values.size if axes is None else math.prod(values.shape[i] for i in axes)
    wide = _with_scalar(values.dtype, wp.float64)
    result = _sum(values, axes, wide) / (float(count) if count else math.nan)
    return (
        result.astype(values.dtype) if info["scalar_kind"] == "float" and info["scalar"] is not wp.float64 else result
    )


# ---- extremes ----


@wp.func
def _is_further(value: Any, best: Any, largest: bool):
    """Whether it takes the place of the best one so far. A NaN takes that of any number."""
    if value != value:
        return best == best
    if largest:
        return value > best
    return value < best


@wp.kernel(enable_backward=False)
def _extremes_of_chunks(values: wp.array3d(dtype=Any), largest: bool, found: wp.array3d(dtype=wp.int64)):
    i, chunk, k = wp.tid()
    at = wp.int64(chunk)
    best = values[i, at, k]
    for j in range(at + wp.int64(found.shape[1]), wp.int64(values.shape[1]), wp.int64(found.shape[1])):
        value = values[i, j, k]
        if _is_further(value, best, largest):
            best = value
            at = j
    found[i, chunk, k] = at


@wp.kernel(enable_backward=False)
def _first_of_chunks(
    values: wp.array3d(dtype=Any),
    largest: bool,
    found: wp.array3d(dtype=wp.int64),
    result: wp.array2d(dtype=wp.int64),
):
    i, k = wp.tid()
    at = found[i, 0, k]
    best = values[i, at, k]
    for chunk in range(1, found.shape[1]):
        other = found[i, chunk, k]
        value = values[i, other, k]
        is_equal = value == best or (value != value and best != best)
        if _is_further(value, best, largest) or (is_equal and other < at):
            best = value
            at = other
    result[i, k] = at


@wp.kernel
def _elements_at(values: wp.array3d(dtype=Any), at: wp.array2d(dtype=wp.int64), result: wp.array2d(dtype=Any)):
    i, k = wp.tid()
    result[i, k] = values[i, at[i, k], k]


def _as_rows(values: array, axis: int | None) -> array:
    """The array as three dimensions, the middle one of which is reduced; a view if there are no gaps."""
    packed = values if values.is_contiguous else values.contiguous()
    if axis is None:
        return packed.reshape((1, packed.size, 1))
    before, after = math.prod(values.shape[:axis]), math.prod(values.shape[axis + 1 :])
    return packed.reshape((before, values.shape[axis], after))


def _check_extreme(values: array, count: int, api: str) -> None:
    info = _info(values, api)
    if info["kind"] != "scalar":
        raise usage_error(
            f"{api}: elements are {type_name(values.dtype)}, which have no order; expected numbers. help: "
            f"a.view(wp.{type_name(info['scalar'])}) shows the components as numbers",
            TypeError,
        )
    if count == 0:
        raise usage_error(f"{api}: an array of shape {values.shape} has no elements to choose from", ValueError)


def _places(rows: array, largest: bool) -> array:
    """For each row the index of its first extreme."""
    before, count, after = rows.shape
    chunks = min(count, max(1, _CHUNKS // max(1, before * after)))
    found = wp.empty((before, chunks, after), dtype=wp.int64, device=rows.device)
    wp.launch(_extremes_of_chunks, found.shape, [rows, largest], [found], device=rows.device, record_tape=False)
    if chunks == 1:
        return found.reshape((before, after))
    result = wp.empty((before, after), dtype=wp.int64, device=rows.device)
    wp.launch(_first_of_chunks, result.shape, [rows, largest, found], [result], device=rows.device, record_tape=False)
    return result


def _argument(values: array, axis: Any, largest: bool, api: str) -> array:
    axes = _axes(values, axis, api) if axis is None or not isinstance(axis, tuple) else None
    if isinstance(axis, tuple):
        raise usage_error(f"{api}: 'axis' is {axis!r}, expected an int or None", TypeError)
    along = None if axis is None else axis.__index__() % values.ndim
    _check_extreme(values, values.size if along is None else values.shape[along], api)
    shape = (1,) if axes is None else _without(values.shape, along)
    rows = _as_rows(values, along)
    return _places(rows, largest).reshape(shape)


def _extreme(values: array, axis: Any, largest: bool, api: str) -> array:
    axes = _axes(values, axis, api)
    count = values.size if axes is None else math.prod(values.shape[i] for i in axes)
    _check_extreme(values, count, api)
    for along in [None] if axes is None else axes:
        shape = (1,) if along is None else _without(values.shape, along)
        rows = _as_rows(values, along)
        places = _places(rows, largest)
        out = wp.empty(places.shape, dtype=values.dtype, device=values.device, requires_grad=is_smooth(values))
        wp.launch(_elements_at, places.shape, [rows, places], [out], device=values.device)
        values = out.reshape(shape)
    return values


def min_of(values: array, axis: int | tuple[int, ...] | None = None) -> array:
    """The smallest number; a NaN if there is one. Its gradient goes to the first of equal ones."""
    return _extreme(values, axis, False, "array.min()")


def max_of(values: array, axis: int | tuple[int, ...] | None = None) -> array:
    """The largest number; a NaN if there is one. Its gradient goes to the first of equal ones."""
    return _extreme(values, axis, True, "array.max()")


def argmin_of(values: array, axis: int | None = None) -> array:
    """The index of the smallest number, the first of equal ones, or of the first NaN."""
    return _argument(values, axis, False, "array.argmin()")


def argmax_of(values: array, axis: int | None = None) -> array:
    """The index of the largest number, the first of equal ones, or of the first NaN."""
    return _argument(values, axis, True, "array.argmax()")


# ---- products ----


def dot_of(a: array, b: Any) -> array:
    """The sum of the products of two rows of numbers, of vectors of their dot products; of matrices ``a @ b``."""
    api = "array.dot()"
    if not isinstance(b, array):
        raise usage_error(f"{api}: expected an array, got {type(b).__name__}", TypeError)
    if a.ndim != 1 or b.ndim != 1:
        return a @ b
    from warp.utils import array_inner

    check_one_device(api, {"a": a, "b": b})
    for one in (a, b):
        _info(one, api)
    if a.dtype is not b.dtype or a.shape != b.shape:
        raise usage_error(
            f"{api}: expected arrays of the same dtype and length, got {type_name(a.dtype)} of shape {a.shape} and "
            f"{type_name(b.dtype)} of shape {b.shape}",
            TypeError if a.dtype is not b.dtype else ValueError,
        )
    out = wp.empty(1, dtype=_info(a, api)["scalar"], device=a.device, requires_grad=is_smooth(a) or is_smooth(b))
    return array_inner(a, b, out=out)

"""wp.arange, wp.linspace, wp.concatenate: arrays made of numbers and of other arrays, as NumPy makes them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
import warp._weft as _weft
from warp._arrays.arrays import check_one_device
from warp._gradients.recording import is_smooth
from warp._weft import array, type_name, usage_error

__all__ = ["arange", "concatenate", "linspace"]


@wp.kernel(enable_backward=False)
def _count_up(start: Any, step: Any, out: wp.array(dtype=Any)):
    i = wp.tid()
    out[i] = out.dtype(start + type(start)(i) * step)


def _check_number(api: str, name: str, value: Any) -> Any:
    """A Python number of any number."""
    if isinstance(value, bool) or not (isinstance(value, numbers.Real) or hasattr(value, "__float__")):
        raise usage_error(f"{api}: {name!r} is {value!r}, expected a number", TypeError)
    number = value.__index__() if hasattr(value, "__index__") and not isinstance(value, array) else float(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise usage_error(f"{api}: {name!r} is {value!r}, expected a finite number", ValueError)
    return number


def _scalar_type(api: str, dtype: Any) -> Any:
    dtype = {float: wp.float32, int: wp.int32}.get(dtype, dtype)
    info = _weft.type_info(dtype)
    if info is None or info["kind"] != "scalar" or dtype is wp.bool:
        raise usage_error(f"{api}: 'dtype' is {dtype!r}, expected the type of a number", TypeError)
    return dtype


def _counted(count: int, start: Any, step: Any, dtype: Any, device: Any, requires_grad: bool) -> array:
    """``start + i * step``: in 64 bits, converted once."""
    out = wp.empty(count, dtype=dtype, device=device, requires_grad=requires_grad)
    wide = wp.int64 if isinstance(start, int) and isinstance(step, int) else wp.float64
    wp.launch(_count_up, count, [wide(start), wide(step)], [out], device=out.device, record_tape=False)
    return out


def _check_range(api: str, dtype: Any, *ends: Any) -> None:
    if _weft.type_info(dtype)["scalar_kind"] == "float":
        return
    limits = np.iinfo(_weft.type_info(dtype)["numpy"])
    for end in ends:
        if not limits.min <= int(end) <= limits.max:
            raise usage_error(f"{api}: {end} does not fit {type_name(dtype)}", OverflowError)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> array:
    """Numbers from ``start`` on, ``step`` apart, up to but not with ``stop``: ``wp.arange(3)`` is 0, 1, 2.

    Args:
        start: the first number; without ``stop`` this is the end, and the first number is 0.
        stop: the end.
        step: from a number to the next; may be negative.
        dtype: the type of the numbers. If left out, int32 if all three are integers, else float32.
        device: the array's device; the current device if left out.
        requires_grad: whether it has a gradient.
    Raises:
        UsageError: the step is 0, a number is not finite or does not fit the dtype (a ValueError or OverflowError).
    """
    api = "arange()"
    if stop is None:
        start, stop = 0, start
    start, stop, step = (
        _check_number(api, name, value) for name, value in (("start", start), ("stop", stop), ("step", step))
    )
    if step == 0:
        raise usage_error(f"{api}: 'step' is 0, expected a step from a number to the next", ValueError)
    if dtype is None:
        dtype = wp.int32 if all(isinstance(value, int) for value in (start, stop, step)) else wp.float32
    dtype = _scalar_type(api, dtype)
    count = max(0, -((start - stop) // step) if isinstance(step, int) else math.ceil((stop - start) / step))
    count = int(count)
    if count:
        _check_range(api, dtype, start, start + (count - 1) * step)
    return _counted(count, start, step, dtype, device, requires_grad)


@wp.kernel(enable_backward=False)
def _spread(start: wp.float64, stop: wp.float64, parts: wp.int64, out: wp.array(dtype=Any)):
    i = wp.int64(wp.tid())
    value = stop
    if i < parts or parts == wp.int64(0):
        value = start + wp.float64(i) * ((stop - start) / wp.float64(wp.max(parts, wp.int64(1))))
    out[i] = out.dtype(value)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> array:
    """``num`` numbers at equal distances from ``start`` to ``stop``: ``wp.linspace(0, 1, 3)`` is 0, 0.5, 1.

    Args:
        start, stop: the first number and the last one.
        num: how many.
        endpoint: False leaves ``stop`` out, and makes the distance ``(stop - start) / num``.
        dtype: the type of the numbers; float32 if left out.
        device: the array's device; the current device if left out.
        requires_grad: whether it has a gradient.
    Raises:
        UsageError: ``num`` is negative or no int, or a number is not finite.
    """
    api = "linspace()"
    start, stop = (float(_check_number(api, name, value)) for name, value in (("start", start), ("stop", stop)))
    if isinstance(num, bool) or not hasattr(num, "__index__"):
        raise usage_error(f"{api}: 'num' is {num!r}, expected an int", TypeError)
    num = num.__index__()
    if num < 0:
        raise usage_error(f"{api}: 'num' is {num}, expected 0 or more", ValueError)
    dtype = _scalar_type(api, wp.float32 if dtype is None else dtype)
    out = wp.empty(num, dtype=dtype, device=device, requires_grad=requires_grad)
    parts = num - 1 if endpoint else num
    wp.launch(_spread, num, [start, stop, parts], [out], device=out.device, record_tape=False)
    return out


def concatenate(arrays: Sequence[array], axis: int | None = 0) -> array:
    """Arrays one behind the other along an axis. A tape carries the gradient of each part back to its array.

    Args:
        arrays: of one dtype, on one device, whose shapes differ along the axis only.
        axis: negative ones count from the end; None: each array counts as one row.
    Returns:
        A new array, which requires a gradient if one of the arrays does.
    Raises:
        UsageError: there is no array; dtypes, devices or shapes do not fit.
    """
    api = "concatenate()"
    if isinstance(arrays, array) or not isinstance(arrays, Sequence):
        raise usage_error(f"{api}: expected a list of arrays, got {type(arrays).__name__}", TypeError)
    if not arrays:
        raise usage_error(f"{api}: expected at least one array, got none", ValueError)
    for i, one in enumerate(arrays):
        if not isinstance(one, array):
            raise usage_error(f"{api}: arrays[{i}] is {type(one).__name__}, expected an array", TypeError)
    first = arrays[0]
    for i, one in enumerate(arrays):
        if one.dtype is not first.dtype:
            raise usage_error(
                f"{api}: arrays[{i}] has the dtype {type_name(one.dtype)}, arrays[0] {type_name(first.dtype)}. help: "
                "astype()",
                TypeError,
            )
    check_one_device(api, {f"arrays[{i}]": one for i, one in enumerate(arrays)})
    if axis is None:
        arrays = [(one if one.is_contiguous else one.contiguous()).flatten() for one in arrays]
        axis, first = 0, arrays[0]
    if isinstance(axis, bool) or not hasattr(axis, "__index__") or not -first.ndim <= axis.__index__() < first.ndim:
        raise usage_error(
            f"{api}: there is no axis {axis!r}, arrays[0] of shape {first.shape} has {first.ndim} dimensions",
            IndexError,
        )
    axis = axis.__index__() % first.ndim
    for i, one in enumerate(arrays):
        if one.ndim != first.ndim or any(
            n != m for k, (n, m) in enumerate(zip(one.shape, first.shape, strict=False)) if k != axis
        ):
            raise usage_error(
                f"{api}: arrays[{i}] has the shape {one.shape}, arrays[0] {first.shape}; expected the same but for "
                f"axis {axis}",
                ValueError,
            )
    shape = (*first.shape[:axis], sum(one.shape[axis] for one in arrays), *first.shape[axis + 1 :])
    out = wp.empty(shape, dtype=first.dtype, device=first.device, requires_grad=any(map(is_smooth, arrays)))
    begin = 0
    for one in arrays:
        end = begin + one.shape[axis]
        if one.size:
            wp.copy(out[(*[slice(None)] * axis, slice(begin, end))], one)
        begin = end
    return out

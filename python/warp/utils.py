"""Operations on whole arrays: sums, inner products, scans, sorts of pairs, runs of equal elements, conversion.

All of them run on the CPU's threads, and give the same result for any number of threads.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import warp._weft as _weft
from warp._arrays.arrays import check_one_device
from warp._arrays.mapping import function_of
from warp._gradients.recording import Part, is_smooth, recorded
from warp._kernels.modules import Module, module_named
from warp._support.graph_coloring import (
    GraphColoringAlgorithm,
    graph_coloring_assign,
    graph_coloring_balance,
    graph_coloring_get_groups,
)
from warp._weft import UserFunction as Function
from warp._weft import array, primitives
from warp.types import (
    _is_number,
    type_components,
    type_is_float,
    type_is_value,
    type_scalar_type,
    type_size_in_bytes,
)

__all__ = [
    "AllocatorRmm",  # noqa: F822 - found by __getattr__()
    "GraphColoringAlgorithm",
    "array_cast",
    "array_inner",
    "array_scan",
    "array_sum",
    "create_warp_function",
    "graph_coloring_assign",
    "graph_coloring_balance",
    "graph_coloring_get_groups",
    "radix_sort_pairs",
    "runlength_encode",
    "segmented_sort_pairs",
]


# Names that had their place here in earlier releases.
_LATE = {"AllocatorRmm": "warp._devices.allocators"}
_EARLIER = {"ScopedDevice", "ScopedMempool", "ScopedStream", "ScopedTimer", "map", "transform_expand"}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        import importlib

        return getattr(importlib.import_module(_LATE[name]), name)
    if name in _EARLIER:
        import warp

        return getattr(warp, name)
    raise AttributeError(f"module 'warp.utils' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def create_warp_function(func: Callable) -> tuple[Function, Module]:
    """Makes a function for kernels, as ``@wp.func`` does, of a plain Python function or of a lambda.

    Args:
        func: in the language of kernels. Parameters without annotations take any type. A lambda sees the globals and
            the variables around it as they are now; its key is made of its text.
    Returns:
        The ``wp.Function`` and the ``wp.Module`` that it belongs to.
    Raises:
        TypeError: it is no Python function.
        ValueError: which lambda of its line is meant cannot be told.
    """
    if not inspect.isfunction(func):
        raise _weft.usage_error(
            f"create_warp_function(): expected a Python function or a lambda, got {func!r}", TypeError
        )
    return function_of(func, "create_warp_function()"), module_named(func.__module__)


def _check_array(api: str, name: str, value: Any) -> None:
    if not isinstance(value, array):
        raise _weft.usage_error(f"{api}: {name!r} must be a warp.array, got {type(value).__name__}", TypeError)


def _check_numbers(api: str, name: str, value: array) -> None:
    if not type_is_value(value.dtype):
        raise _weft.usage_error(
            f"{api}: {name!r} is an array of the struct {value.dtype.__name__}; expected numbers, vectors or matrices",
            TypeError,
        )


def _check_same_dtype(api: str, a: array, b: array, names: str) -> None:
    if a.dtype is not b.dtype:
        raise _weft.usage_error(
            f"{api}: {names} must have the same dtype, got {_name(a)} and {_name(b)}. help: astype()", TypeError
        )


def _check_apart(api: str, a: array, b: array, names: str) -> None:
    if primitives.overlap(a, b):
        raise _weft.usage_error(f"{api}: {names} share memory; expected arrays of their own", ValueError)


def _check_line(api: str, name: str, value: array) -> None:
    if value.ndim != 1:
        raise _weft.usage_error(f"{api}: {name!r} must have one dimension, got the shape {value.shape}", ValueError)


def _name(value: array) -> str:
    return _weft.type_name(value.dtype)


def _count(api: str, name: str, count: Any, most: int) -> int:
    if count is None:
        return most
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise _weft.usage_error(f"{api}: {name!r} must be an integer, got {count!r}", TypeError)
    count = count.__index__()
    if not 0 <= count <= most:
        raise _weft.usage_error(f"{api}: {name!r} is {count}, and the arrays have {most} elements", ValueError)
    return count


# ---- sums ----


def _reduced(
    api: str,
    reads: dict[str, array],
    dtype: Any,
    axis: int | None,
    out: array | None,
    reduce: Callable[..., Any],
) -> Any:
    """The common part of array_sum and array_inner: axis, shape and array of the result, and the backward pass.

    ``reduce(*arrays, axis, out)`` sums the products of the elements of arrays like those that are read.
    """
    values = next(iter(reads.values()))
    if axis is not None:
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise _weft.usage_error(f"{api}: 'axis' must be an integer or None, got {axis!r}", TypeError)
        axis = axis.__index__()
        if not -values.ndim <= axis < values.ndim:
            raise _weft.usage_error(
                f"{api}: there is no axis {axis}, the array of shape {values.shape} has {values.ndim} dimensions",
                IndexError,
            )
        axis %= values.ndim
    shape = (1,) if axis is None else tuple(1 if i == axis else n for i, n in enumerate(values.shape))
    if out is None and axis is not None:
        requires_grad = any(is_smooth(read) for read in reads.values())
        out = _weft.empty(shape, dtype, device=values.device, requires_grad=requires_grad)
    if out is not None:
        _check_array(api, "out", out)
        _check_numbers(api, "out", out)
        check_one_device(api, {**reads, "out": out})
        if type_components(out.dtype) != type_components(dtype) or _is_number(out.dtype) != _is_number(dtype):
            raise _weft.usage_error(
                f"{api}: 'out' is an array of {_name(out)}, expected {_weft.type_name(dtype)} or the same of a wider "
                "scalar type",
                TypeError,
            )
        squeezed = tuple(n for i, n in enumerate(values.shape) if i != axis)
        if out.shape != shape and (axis is None or out.shape != squeezed):
            raise _weft.usage_error(f"{api}: 'out' has the shape {out.shape}, expected {shape}", ValueError)

        index, target = -1 if axis is None else axis, out

        def part(position: int, name: str) -> Part:
            def forward(tangent: array, into: array, *factors: array) -> None:
                sums = _weft.empty(into.shape, into.dtype, device=into.device)
                reduce(*factors[:position], tangent, *factors[position:], index, sums)
                into += sums

            def backward(gradient: array, into: array, *factors: array) -> None:
                gradient = gradient.contiguous().reshape(shape).astype(dtype)
                for factor in factors:
                    gradient = gradient * factor
                into += gradient

            return Part(name, target, forward, backward, tuple(other for other in reads if other != name))

        return recorded(
            api,
            lambda: reduce(*reads.values(), index, out),
            reads=reads,
            writes={"out": out},
            needs=reads if len(reads) > 1 and out.requires_grad else {},
            parts=lambda _: [part(position, name) for position, name in enumerate(reads)],
        )
    return _numpy_value(reduce(*reads.values(), -1, None), dtype)


def _numpy_value(numbers: Any, dtype: Any) -> Any:
    """A NumPy scalar, or an array for vectors and matrices, of the scalar type; of integers in full width."""
    scalar = type_scalar_type(dtype)
    numpy = _weft.type_info(scalar)["numpy"]
    if not type_is_float(scalar):
        numpy = np.uint64 if numbers and max(numbers) > np.iinfo(np.int64).max else np.int64
    if numpy is None:  # bfloat16 and the floats of 8 bits, which NumPy has not
        numpy = np.float32
    if _is_number(dtype):
        return np.dtype(numpy).type(numbers[0])
    return np.array(list(numbers), dtype=numpy).reshape(getattr(dtype, "_shape_", (len(numbers),)))


def _first(api: str, name: str, value: array, count: Any, axis: Any) -> array:
    """The first elements of all, or along the axis."""
    if count is None:
        return value
    if axis is None:
        value = value if value.ndim == 1 else value.contiguous().flatten()
        return value[: _count(api, name, count, value.size)]
    if not hasattr(axis, "__index__") or not -value.ndim <= axis.__index__() < value.ndim:
        return value  # the check of the axis raises the error
    at = axis.__index__() % value.ndim
    return value[(*(slice(None),) * at, slice(0, _count(api, name, count, value.shape[at])))]


def array_sum(values: array, out: array | None = None, value_count: int | None = None, axis: int | None = None) -> Any:
    """The sum of all elements, or along one axis.

    Floats are added in double precision, pairwise; integers and bools in 64 bits. The result is the same for any number
    of threads.

    Args:
        values: numbers, vectors or matrices, of any shape.
        out: gets the result: one element, or the shape of ``values`` with 1 (or nothing) in place of the axis; of the
            dtype of ``values`` or of another scalar type, to which the sum is converted (integers wrap).
        value_count: only the first so many elements: of all, or along the axis.
        axis: the axis to sum over; all elements if None. Negative ones count from the end.
    Returns:
        ``out`` if it is given; else, without axis, a NumPy scalar (an array for vectors and matrices) of the dtype,
        with axis a new array with a 1 in place of the axis. Integers without ``out`` and axis come in full width.
    Raises:
        UsageError: an argument is no array, shapes or dtypes do not fit, or the arrays are on different devices.
    """
    api = "array_sum()"
    _check_array(api, "values", values)
    _check_numbers(api, "values", values)
    values = _first(api, "value_count", values, value_count, axis)
    return _reduced(
        api,
        {"values": values},
        values.dtype,
        axis,
        out,
        primitives.sum,
    )


def array_inner(a: array, b: array, out: array | None = None, count: int | None = None, axis: int | None = None) -> Any:
    """The inner product: the sum of the products of elements; of vectors and matrices, of their components.

    Args:
        a, b: numbers, vectors or matrices, of equal shapes and dtypes.
        out: gets the result, of a scalar type, as for :func:`array_sum`.
        count: only the first so many elements: of all, or along the axis.
        axis: the axis to sum over; all elements if None.
    Returns:
        ``out`` if it is given; else, without axis, a NumPy scalar, and with axis a new array with a 1 in place of the
        axis.
    Raises:
        UsageError: an argument is no array, shapes or dtypes do not fit, or the arrays are on different devices.
    """
    api = "array_inner()"
    for name, value in (("a", a), ("b", b)):
        _check_array(api, name, value)
        _check_numbers(api, name, value)
    check_one_device(api, {"a": a, "b": b})
    _check_same_dtype(api, a, b, "'a' and 'b'")
    a, b = _first(api, "count", a, count, axis), _first(api, "count", b, count, axis)
    if a.shape != b.shape:
        raise _weft.usage_error(f"{api}: 'a' and 'b' must have the same shape, got {a.shape} and {b.shape}", ValueError)
    dtype = type_scalar_type(a.dtype)

    return _reduced(api, {"a": a, "b": b}, dtype, axis, out, primitives.inner)


# ---- scans ----


def array_scan(in_array: array, out_array: array, inclusive: bool = True) -> None:
    """Running sums: ``out_array[i]`` is the sum of ``in_array[0]`` to ``in_array[i]``.

    Args:
        in_array: numbers, vectors or matrices (added by components), of one dimension.
        out_array: of the same dtype and length; may be ``in_array``.
        inclusive: False leaves ``in_array[i]`` itself out, so that the first sum is 0.
    Raises:
        UsageError: an argument is no array, or shapes, dtypes or devices differ.
    """
    api = "array_scan()"
    for name, value in (("in_array", in_array), ("out_array", out_array)):
        _check_array(api, name, value)
        _check_numbers(api, name, value)
        _check_line(api, name, value)
    check_one_device(api, {"in_array": in_array, "out_array": out_array})
    _check_same_dtype(api, in_array, out_array, "'in_array' and 'out_array'")
    if in_array.size != out_array.size:
        raise _weft.usage_error(
            f"{api}: 'in_array' has {in_array.size} elements and 'out_array' {out_array.size}; expected as many",
            ValueError,
        )
    if in_array.size == 0:
        return

    def add_sums(of: array, into: array) -> None:
        sums = _weft.empty(of.shape, of.dtype, device=of.device)
        primitives.scan(of, sums, bool(inclusive))
        into += sums

    def backward(gradient: array, into: array) -> None:
        # An element is in all sums from its own on: they are added up from the end.
        add_sums(gradient[::-1], into[::-1])

    recorded(
        api,
        lambda: primitives.scan(in_array, out_array, bool(inclusive)),
        reads={"in_array": in_array},
        writes={"out_array": out_array},
        parts=lambda _: [Part("in_array", out_array, add_sums, backward)],
    )


# ---- sorts ----


def _gathered(name: str, written: array, chosen: Any) -> Part:
    """Of ``written = read[chosen]``."""

    def forward(tangent: array, into: array) -> None:
        into += tangent[chosen]

    def backward(gradient: array, into: array) -> None:
        into[chosen] += gradient

    return Part(name, written, forward, backward)


def _sorted(api: str, keys: array, values: array, count: int, sort: Callable[[array, array], None]) -> None:
    """``sort(keys, values)`` in place, with the backward pass: gradients return to the old places of their pairs."""
    pairs = [one[:count] for one in (keys, values)]

    def run() -> array | None:
        order = None
        if _weft.active_tape() is not None and any(one.requires_grad for one in pairs):
            order = _weft.array(np.arange(count, dtype=np.int32), device=keys.device)
            sort(_weft.keep(pairs[0]), order)
        sort(keys, values)
        return order

    named = dict(zip(("keys", "values"), pairs, strict=True))

    def parts(order: array | None) -> list[Part]:
        return [] if order is None else [_gathered(name, one, order) for name, one in named.items()]

    recorded(api, run, reads=named, writes=named, parts=parts)


def _check_pairs(api: str, keys: array, values: array) -> None:
    for name, value in (("keys", keys), ("values", values)):
        _check_array(api, name, value)
        _check_line(api, name, value)
    check_one_device(api, {"keys": keys, "values": values})
    if not _is_number(keys.dtype):
        raise _weft.usage_error(f"{api}: 'keys' is an array of {_name(keys)}; expected scalars", TypeError)
    if not type_is_value(values.dtype):
        raise _weft.usage_error(
            f"{api}: 'values' is an array of structs. help: sort indices, then gather by them", TypeError
        )
    _check_apart(api, keys, values, "'keys' and 'values'")


def radix_sort_pairs(keys: array, values: array, count: int, begin_bit: int = 0, end_bit: int | None = None) -> None:
    """Sorts the first ``count`` keys in place, in ascending order, and moves the values along.

    Equal keys keep their order. Of floats, -0 equals 0, and NaNs come last. Elements behind ``count`` are not touched:
    programs for other back ends pass arrays of twice the size, as room to work in, which is not needed here.

    Args:
        keys: scalars of any type, one dimension.
        values: one for each key: scalars, vectors or matrices.
        count: how many pairs are sorted.
        begin_bit, end_bit: only the bits from the first to the one before the second decide, counted from the lowest of
            the key as an unsigned number that sorts alike. Of ints and of floats that are not negative, the sign bit is
            inverted; of negative floats, all bits.
    Raises:
        UsageError: an argument is no such array, the arrays are on different devices, ``count`` is more than there are,
            or there are no such bits.
    """
    api = "radix_sort_pairs()"
    _check_pairs(api, keys, values)
    if count is None:
        raise _weft.usage_error(f"{api}: 'count' must be an integer, got None", TypeError)
    count = _count(api, "count", count, min(keys.size, values.size))
    bits = 8 * type_size_in_bytes(keys.dtype)
    end_bit = bits if end_bit is None else end_bit
    for name, bit in (("begin_bit", begin_bit), ("end_bit", end_bit)):
        if isinstance(bit, bool) or not hasattr(bit, "__index__"):
            raise _weft.usage_error(f"{api}: '{name}' must be an integer, got {bit!r}", TypeError)
    if not 0 <= begin_bit <= end_bit <= bits:
        message = f"there are no bits from {begin_bit} to {end_bit} in keys of {_name(keys)}, which have {bits}"
        raise _weft.usage_error(f"{api}: {message}", ValueError)
    if begin_bit < end_bit:
        _sorted(
            api,
            keys,
            values,
            count,
            lambda keys, values: primitives.sort_pairs(keys, values, count, int(begin_bit), int(end_bit)),
        )


def _in_a_row(api: str, name: str, value: Any) -> Any:
    """An array of several dimensions as one of one dimension, over the same memory."""
    if not isinstance(value, array) or value.ndim == 1:
        return value
    if not value.is_contiguous:
        message = f"{api}: {name!r} has the shape {value.shape} and gaps. help: .contiguous(), or one dimension"
        raise _weft.usage_error(message, ValueError)
    return value.flatten()


def segmented_sort_pairs(
    keys: array,
    values: array,
    count: int,
    segment_start_indices: array,
    segment_end_indices: array | None = None,
) -> None:
    """Sorts each segment of the pairs by itself, as :func:`radix_sort_pairs` does.

    Args:
        keys: scalars of any type. Those of several dimensions are counted in C order, and lie without gaps.
        values: one for each key.
        count: how many pairs there are; no segment may end behind it.
        segment_start_indices: int32, the first pair of each segment. Without ``segment_end_indices`` one more, the end
            of the last segment.
        segment_end_indices: int32, one behind the last pair of each segment. Segments must not overlap.
    Raises:
        UsageError: an argument is no such array, the arrays are on different devices, or a segment does not lie in
            ``[0, count]``. In a graph, whose segments are those when it runs, capture_launch() raises it.
    """
    api = "segmented_sort_pairs()"
    keys, values = (_in_a_row(api, name, one) for name, one in (("keys", keys), ("values", values)))
    _check_pairs(api, keys, values)
    count = _count(api, "count", count, min(keys.size, values.size))
    starts, ends = segment_start_indices, segment_end_indices
    names = [("segment_start_indices", starts)]
    names += [] if ends is None else [("segment_end_indices", ends)]
    for name, value in names:
        _check_array(api, name, value)
        _check_line(api, name, value)
        if value.dtype is not _weft.named_type("int32"):
            raise _weft.usage_error(f"{api}: {name!r} must be an array of int32, got {_name(value)}", TypeError)
    check_one_device(api, {"keys": keys, **dict(names)})
    if ends is None:
        if starts.size < 2:
            return
        starts, ends = starts[:-1], starts[1:]
    elif starts.size != ends.size:
        raise _weft.usage_error(f"{api}: there are {starts.size} segment starts and {ends.size} ends", ValueError)
    if starts.size:
        _sorted(
            api, keys, values, count, lambda keys, values: primitives.sort_segments(keys, values, starts, ends, count)
        )


# ---- runs ----


def runlength_encode(
    values: array,
    run_values: array,
    run_lengths: array,
    run_count: array | None = None,
    value_count: int | None = None,
) -> Any:
    """Finds the runs of equal elements: ``[1, 1, 5]`` has the values ``[1, 5]`` and the lengths ``[2, 1]``.

    Args:
        values: scalars, one dimension. 0 and -0 are equal; a NaN is a run of its own.
        run_values: gets the value of each run: of the dtype of ``values``, with room for all runs.
        run_lengths: gets the lengths: int32, with room for all runs.
        run_count: gets the number of runs: one int32. While a graph is captured it is needed, and gets the number when
            the graph runs.
        value_count: only the first so many elements.
    Returns:
        ``run_count`` if it is given, else the number of runs as an int.
    Raises:
        UsageError: an argument is no such array, the arrays are on different devices, or there is no room for all runs.
    """
    api = "runlength_encode()"
    arrays = {"values": values, "run_values": run_values, "run_lengths": run_lengths}
    for name, value in arrays.items():
        _check_array(api, name, value)
        _check_line(api, name, value)
    if run_count is not None:
        _check_array(api, "run_count", run_count)
        arrays["run_count"] = run_count
    check_one_device(api, arrays)
    if not _is_number(values.dtype):
        raise _weft.usage_error(f"{api}: 'values' is an array of {_name(values)}; expected scalars", TypeError)
    _check_same_dtype(api, values, run_values, "'values' and 'run_values'")
    int32 = _weft.named_type("int32")
    if run_lengths.dtype is not int32:
        raise _weft.usage_error(f"{api}: 'run_lengths' must be an array of int32, got {_name(run_lengths)}", TypeError)
    _check_apart(api, run_values, run_lengths, "'run_values' and 'run_lengths'")
    if run_count is not None and (run_count.dtype is not int32 or run_count.size != 1):
        raise _weft.usage_error(
            f"{api}: 'run_count' must be one int32, got {_name(run_count)} of shape {run_count.shape}", TypeError
        )
    count = _count(api, "value_count", value_count, values.size)

    if values.device.is_capturing:  # the number of runs is known when the graph has run
        primitives.encode_runs(values, count, run_values, run_lengths, run_count)
        return run_count

    def run() -> tuple[int, np.ndarray]:
        runs = primitives.encode_runs(values, count, run_values, run_lengths, None)
        ends = np.cumsum(run_lengths.numpy()[:runs])
        return runs, np.concatenate([[0], ends[:-1]]) if runs else ends

    def parts(found: tuple[int, np.ndarray]) -> list[Part]:
        runs, starts = found  # the value of a run is its first element
        return [_gathered("values", run_values[:runs], starts)] if runs else []

    writes = {"run_values": run_values, "run_lengths": run_lengths}
    runs, _ = recorded(api, run, reads={"values": values}, writes=writes, parts=parts)
    if run_count is None:
        return runs
    run_count.fill_(runs)
    return run_count


# ---- conversion ----

_casts: dict[Any, Any] = {}


def _numbers(value: array) -> array:
    """The same memory as scalars, one row of all components; a copy if it has gaps."""
    if _is_number(value.dtype):
        return value
    return value.contiguous().flatten().view(type_scalar_type(value.dtype)).flatten()


def array_cast(in_array: array, out_array: array, count: int | None = None) -> None:
    """Converts numbers to another type, as the explicit conversions of kernels do: floats that become integers are
    rounded towards 0.

    Args:
        in_array: numbers, vectors or matrices.
        out_array: gets the results: of the same shape and as many components, or any array with as many numbers in all;
            one of one dimension may be longer.
        count: only the first so many elements, of one-dimensional arrays.
    Raises:
        UsageError: an argument is no such array, the arrays are on different devices, or the numbers are not as many.
    """
    from warp._arrays.mapping import _make, launch_map

    api = "array_cast()"
    for name, value in (("in_array", in_array), ("out_array", out_array)):
        _check_array(api, name, value)
        _check_numbers(api, name, value)
    check_one_device(api, {"in_array": in_array, "out_array": out_array})
    if count is not None:
        for name, value in (("in_array", in_array), ("out_array", out_array)):
            _check_line(api, name, value)
        count = _count(api, "count", count, min(in_array.size, out_array.size))
        in_array, out_array = in_array[:count], out_array[:count]
    elif (
        in_array.ndim == out_array.ndim == 1
        and type_components(in_array.dtype) == type_components(out_array.dtype)
        and in_array.size < out_array.size
    ):
        out_array = out_array[: in_array.size]
    target = type_scalar_type(out_array.dtype)
    source, to = _numbers(in_array), _numbers(out_array)
    if source.size != to.size:
        raise _weft.usage_error(
            f"{api}: 'in_array' of {_name(in_array)} {in_array.shape} has {source.size} numbers, 'out_array' of "
            f"{_name(out_array)} {out_array.shape} has {to.size}; expected as many",
            ValueError,
        )
    if source.size == 0:
        return
    if source.shape != to.shape:
        source = source.contiguous().reshape(to.shape)
    if target not in _casts:
        _casts[target] = _make("def cast(a):\n    return target(a)\n", "cast", {"target": target})
    launch_map(_casts[target], _casts[target], "cast", [source], to, api)
    if to.ptr != out_array.ptr:
        elements = to.reshape((out_array.size, *out_array.dtype._shape_)).view(out_array.dtype)
        _weft.copy(out_array, elements.reshape(out_array.shape))

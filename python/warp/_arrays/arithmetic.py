"""a + b, 2.0 * a, a < b, a += b of arrays: each operator is a function that is mapped over the elements (mapping.py).

They have the meaning of kernels: `/` and `%` of integers are C's, `*` of matrices is their product. `==` is none of
them: arrays are equal if they are the same object.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import warp._weft as _weft
from warp._arrays.indexed import indexedarray
from warp._arrays.mapping import LONGEST_LINE, _make, _value_type, check_number, launch_map, mapping_of, number_type
from warp._weft import CompileError, UsageError, array, primitives, type_name, usage_error

_BINARY = {
    "+": ("add", operator.add),
    "-": ("sub", operator.sub),
    "*": ("mul", operator.mul),
    "/": ("div", operator.truediv),
    "//": ("floordiv", operator.floordiv),
    "%": ("mod", operator.mod),
    "**": ("pow", operator.pow),
    "&": ("and", operator.and_),
    "|": ("or", operator.or_),
    "^": ("xor", operator.xor),
    "<<": ("lshift", operator.lshift),
    ">>": ("rshift", operator.rshift),
    "<": ("less", operator.lt),
    "<=": ("less_equal", operator.le),
    ">": ("greater", operator.gt),
    ">=": ("greater_equal", operator.ge),
}
_UNARY = {"-": "neg", "+": "pos", "~": "invert"}
_MOST_POWER = 64  # a ** n with a larger n is pow()
_MOST_COMPONENTS = 1024  # of one element: the code of an operator has instructions for each
_COMPARISONS = {"<", "<=", ">", ">="}
_functions: dict[str, Callable] = {}


def _function(name: str, parameters: str, body: str) -> Callable:
    """A function of that name, made once."""
    if name not in _functions:
        _functions[name] = _make(f"def {name}({parameters}):\n    return {body}\n", name, {})
    return _functions[name]


def _binary_function(symbol: str) -> Callable:
    return _function("operator_" + _BINARY[symbol][0], "a, b", f"a {symbol} b")


def _apply(function: Callable, operands: list[Any], out: array | None, api: str) -> Any:
    try:
        return launch_map(function, function, function.__name__, operands, out, api)
    except CompileError as error:
        # The mistake is in the caller's line, not in the text of the function that is mapped.
        raise usage_error(f"{api}: {error.message}", TypeError) from error


def _whole_power(base: array, exponent: Any, out: array | None, api: str) -> Any:
    """``a ** n`` as products, which integers have too, if n is a small whole number; else None."""
    info = _weft.type_info(base.dtype)
    if isinstance(exponent, bool) or not isinstance(exponent, int) or info is None or info["kind"] != "scalar":
        return None
    if not 0 <= exponent <= _MOST_POWER:
        return None
    return _apply(_function(f"operator_pow_{exponent}", "a", f"a ** {exponent}"), [base], out, api)


def _operand(value: Any, other: array, api: str) -> Any:
    """An array as it is, a value with its dtype; None for operands that operators do not know."""
    if isinstance(value, array):
        return value
    if isinstance(value, (bool, int, float)):
        info = _weft.type_info(other.dtype)
        if info is None:
            raise usage_error(f"{api}: arrays of the struct {type_name(other.dtype)} have no arithmetic", TypeError)
        dtype = number_type(value, [other.dtype], api)
        if dtype is not info["scalar"]:
            raise usage_error(
                f"{api}: {value!r} does not fit the elements, {type_name(other.dtype)}. help: astype()", TypeError
            )
        return check_number(value, dtype, api), dtype
    if isinstance(value, indexedarray):
        return value.contiguous()
    dtype = _value_type(value)
    return None if dtype is None else (value, dtype)


def _check_dtypes(symbol: str, operands: list[Any], api: str) -> None:
    """The mistakes that deserve better words than the compiler has for an operator inside a kernel."""
    types = [value.dtype if isinstance(value, array) else value[1] for value in operands]
    infos = [_weft.type_info(dtype) for dtype in types]
    names = [type_name(dtype) for dtype in types]
    if any(info is None for info in infos):
        raise usage_error(f"{api}: arrays of structs have no arithmetic, got {' and '.join(names)}", TypeError)
    for name, info in zip(names, infos, strict=True):
        if info["components"] > _MOST_COMPONENTS:
            raise usage_error(
                f"{api}: elements may have {_MOST_COMPONENTS} components, got {name}: their code would take long to "
                f"compile. help: a.view(wp.{type_name(info['scalar'])}) shows the components as scalars",
                ValueError,
            )
    scalars = {info["scalar"] for info in infos}
    if len(scalars) > 1:
        raise usage_error(
            f"{api}: expected equal scalar types, got {names[0]} and {names[1]}. help: astype()", TypeError
        )
    if symbol in ("*", "**") and [info["kind"] for info in infos] == ["vector", "vector"]:
        raise usage_error(
            f"{api}: vectors are not multiplied by {symbol}, got {names[0]} and {names[1]}. help: "
            "wp.map(wp.cw_mul, a, b) by components, wp.map(wp.dot, a, b)",
            TypeError,
        )


# ---- the usual case: contiguous arrays of one shape, and numbers, for which there has been a kernel before ----

# (symbol, _kind() of each operand) -> (kernel over one line, dtype of the result)
_plans: dict[tuple, tuple[Any, Any]] = {}
_MOST_PLANS = 1024


def _kind(value: Any) -> Any:
    """Tells an array of vec3 from a vec3."""
    return value.dtype if type(value) is array else (type(value),)


def _remember(symbol: str, a: Any, b: Any, operands: list[Any]) -> None:
    """Called when the operator has run once, so that these types go together."""
    for value, other in ((a, b), (b, a)):
        if type(value) is int and type(other) is array:
            # Whole elements: whether the number fits them is to be seen each time. Powers: see _whole_power().
            if symbol == "**" or _weft.type_info(other.dtype)["scalar_kind"] != "float":
                return
        elif type(value) not in (array, float) and _weft.type_info(type(value)) is None:
            return
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    function = _binary_function(symbol)
    mapping = mapping_of(function, function, operands, function.__name__)
    kernel = mapping.kernel(tuple(isinstance(value, array) for value in operands), 1)
    _plans[symbol, _kind(a), _kind(b)] = kernel, mapping.results[0]


def _quick(symbol: str, a: Any, b: Any, out: array | None) -> array | None:
    """The result of the general path for the usual case; None for any other."""
    plan = _plans.get((symbol, _kind(a), _kind(b)))
    if plan is None:
        return None
    first = a if type(a) is array else b
    shape, size = first.shape, first.size
    for value in (a, b):
        if type(value) is array and not (value.is_contiguous and value.shape == shape):
            return None
    if not 0 < size <= LONGEST_LINE:
        return None
    kernel, dtype = plan
    if out is None:
        requires_grad = getattr(a, "requires_grad", False) or getattr(b, "requires_grad", False)
        out = _weft.empty(shape, dtype, device=first.device, requires_grad=requires_grad)
    elif out.dtype is not dtype or (type(b) is array and b.ptr != out.ptr and primitives.overlap(out, b)):
        return None
    try:
        if len(shape) == 1:
            _weft.launch(kernel, size, (a, b), (out,), device=out.device)
        else:
            operands = [value.flatten() if type(value) is array else value for value in (a, b)]
            _weft.launch(kernel, size, operands, (out.flatten(),), device=out.device)
    except UsageError:
        if all(value.device == out.device for value in (a, b) if type(value) is array):
            raise
        return None  # arrays of two devices: the general way says so in the operator's words
    return out


# ---- the operators ----


def binary(symbol: str, a: Any, b: Any) -> Any:
    """``a <symbol> b``, one of which is an array. With a NumPy array the result is a NumPy array."""
    if (result := _quick(symbol, a, b, None)) is not None:
        return result
    api = f"a {symbol} b"
    for value, turned in ((a, False), (b, True)):
        if isinstance(value, np.ndarray):
            other = (a if turned else b).numpy()
            return _BINARY[symbol][1](*((other, value) if turned else (value, other)))
    anchor = a if isinstance(a, array) else b
    operands = [_operand(a, anchor, api), _operand(b, anchor, api)]
    if any(operand is None for operand in operands):
        return NotImplemented
    if symbol == "**" and isinstance(a, array) and (result := _whole_power(a, b, None, api)) is not None:
        return result
    _check_dtypes(symbol, operands, api)
    result = _apply(_binary_function(symbol), operands, None, api)
    _remember(symbol, a, b, operands)
    return result


def inplace(symbol: str, a: array, b: Any) -> Any:
    """``a <symbol>= b``: the result must have the shape and dtype of ``a``."""
    if _quick(symbol, a, b, a) is not None:
        return a
    api = f"a {symbol}= b"
    if isinstance(b, np.ndarray):
        b = array(b, device=a.device)
    operands = [a, _operand(b, a, api)]
    if operands[1] is None:
        return NotImplemented
    if symbol == "**" and _whole_power(a, b, a, api) is not None:
        return a
    _check_dtypes(symbol, operands, api)
    _apply(_binary_function(symbol), operands, a, api)
    _remember(symbol, a, b, operands)
    return a


def unary(symbol: str, a: array) -> array:
    """``-a``, ``+a``, ``abs(a)``, by components; ``~a``, which of bools is *not*."""
    if symbol == "abs":
        _check_dtypes(symbol, [a], "abs(a)")
        return _apply(_function("operator_abs", "a", "abs(a)"), [a], None, "abs(a)")
    _check_dtypes(symbol, [a], f"{symbol}a")
    if symbol == "~" and a.dtype is _weft.named_type("bool"):
        return _apply(_function("operator_not", "a", "not a"), [a], None, "~a")
    return _apply(_function("operator_" + _UNARY[symbol], "a", f"{symbol}a"), [a], None, f"{symbol}a")

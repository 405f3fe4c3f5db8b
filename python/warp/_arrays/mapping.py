"""wp.map: a function applied to the elements of arrays, by a kernel that is made for it.

A kernel is written as text, one for each function and each combination of argument types, and kept:

    @wp.func
    def mapped(x0, x1):            # the compiler infers the type of the result
        return function(x0, x1)

    @wp.kernel
    def map_function(x0: array2d[float32], x1: float32, y0: array2d[float32]):
        i, j = wp.tid()
        y0[i, j] = mapped(x0[i, j], x1)

Arrays are broadcast as NumPy does it, by strides of 0. Contiguous arrays of one shape are viewed as one-dimensional.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import textwrap
import threading
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import warp._weft as _weft
from warp._arrays.arrays import check_one_device
from warp._arrays.indexed import indexedarray
from warp._kernels import decorators
from warp._kernels.modules import module_named
from warp._weft import CompileError, Kernel, array, primitives, type_name, usage_error
from warp._weft import UserFunction as Function

__all__ = ["map"]

_API = "map()"
_MOST_KERNELS = 1024  # kept; the disk cache has their machine code
LONGEST_LINE = 1 << 31  # of a launch: wp.tid() is an int32


# ---- functions ----


def _lambda_source(function: Callable, api: str) -> tuple[list[str], str]:
    """Parameters and body of a lambda, as text: the one on its line that compiles to the same code."""
    code = function.__code__
    try:
        lines, _ = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise usage_error(f"{api}: the source of {function!r} is not available: {error}", ValueError) from error
    text = textwrap.dedent("".join(lines)).strip()
    tree = None
    # The line may be the middle of a longer statement: closing brackets, or the words before it, are cut off.
    for begin in [0, *[i for i in range(len(text)) if text.startswith("lambda", i)]]:
        for end in range(len(text), begin, -1):
            try:
                tree = ast.parse(text[begin:end].strip())
                break
            except SyntaxError:
                continue
        found = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        if found:
            break
    candidates = {}
    for node in found:
        made = compile(ast.Expression(node), "<lambda>", "eval").co_consts[0]
        same_names = set(made.co_names) == set(code.co_names) | (set(code.co_freevars) & set(made.co_names))
        if made.co_varnames == code.co_varnames and same_names and _constants(made) == _constants(code):
            candidates[ast.unparse(node)] = node
    if len(candidates) != 1:
        raise usage_error(
            f"{api}: cannot tell which lambda of this line is meant: {text!r}. help: a function with @wp.func",
            ValueError,
        )
    node = next(iter(candidates.values()))
    return [argument.arg for argument in node.args.args], ast.unparse(node.body)


def _constants(code: types.CodeType) -> list:
    return [value for value in code.co_consts if value is not None and not isinstance(value, types.CodeType)]


def _free_values(function: Callable) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells}


def _key(function: Any) -> Any:
    """The identity of a function: its code, the values that it captures, and the numbers among the globals that it
    names. So a lambda that is made in a loop is compiled once."""
    if not inspect.isfunction(function):
        return function
    seen = tuple(_free_values(function).items())
    names = function.__globals__
    seen += tuple((n, names[n]) for n in function.__code__.co_names if isinstance(names.get(n), (int, float)))
    try:
        hash(seen)
    except TypeError:
        return function
    # 1, 1.0 and True are equal, and compile to different code.
    return function.__code__, seen, tuple(type(value) for _, value in seen)


def _callable_in_kernels(function: Any) -> tuple[str, dict[str, Any], Any]:
    """The name by which kernels call it, the meanings of the names in its text, and the object itself."""
    if isinstance(function, Function):
        return "function", {}, function
    if isinstance(function, Kernel):
        raise usage_error(f"{_API}: {function.__name__!r} is a kernel; expected a function. help: @wp.func", TypeError)
    if inspect.isfunction(function):
        return "function", {}, function_of(function, _API, "function")
    if callable(function):  # a builtin
        return "function", {}, function
    raise usage_error(f"{_API}: expected a function, got {function!r}", TypeError)


def function_of(function: Callable, api: str, name: str | None = None) -> Function:
    """The ``wp.Function`` of a plain Python function; that of a lambda gets the name, or one made of its text."""
    if function.__name__ != "<lambda>":
        return Function(function)
    parameters, body = _lambda_source(function, api)
    if name is None:
        name = "func_" + hashlib.sha256(repr((parameters, body)).encode()).hexdigest()[:16]
    names = {**function.__globals__, **_free_values(function)}
    return Function(_make(f"def {name}({', '.join(parameters)}):\n    return {body}\n", name, names))


_texts = 0


def _make(text: str, name: str, names: dict[str, Any]) -> Callable:
    """The function of that name in the text; its source is known to tracebacks and to the compiler."""
    global _texts
    _texts += 1
    path = f"<warp.map {_texts}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    names = dict(names)
    exec(compile(text, path, "exec", dont_inherit=True), names)
    return names[name]


# ---- kernels ----


class _Mapping:
    """A function for given argument types: the types that it returns, and its kernels by number of dimensions."""

    def __init__(self, function: Any, dtypes: list[Any], name: str):
        self.name = name
        self.dtypes = dtypes
        _, _, self.function = _callable_in_kernels(function)
        parameters = ", ".join(f"x{i}" for i in range(len(dtypes)))
        text = f"def mapped({parameters}):\n    return function({parameters})\n"
        self.mapped = Function(_make(text, "mapped", {"function": self.function}))
        typed = ", ".join(f"x{i}: t{i}" for i in range(len(dtypes)))
        probe = _make(f"def {name}({typed}):\n    mapped({parameters})\n", name, self.names())
        result = Kernel(probe, name, module_named(__name__))._result_of("mapped")
        if result is None:
            raise usage_error(f"{_API}: {name!r} returns nothing; expected a value for each element", TypeError)
        self.results = list(result) if isinstance(result, tuple) else [result]
        self.kernels: dict[Any, Kernel] = {}

    def names(self) -> dict[str, Any]:
        return {"mapped": self.mapped, **{f"t{i}": dtype for i, dtype in enumerate(self.dtypes)}}

    def kernel(self, arrays: tuple[bool, ...], ndim: int) -> Kernel:
        """`arrays` says which arguments are arrays; the others are values."""
        made = self.kernels.get((arrays, ndim))
        if made is None:
            names = self.names()
            parameters, arguments, targets = [], [], []
            index = ", ".join("ijkl"[:ndim])
            for i, dtype in enumerate(self.dtypes):
                if arrays[i]:
                    names[f"t{i}"] = array(dtype=dtype, ndim=ndim)
                parameters.append(f"x{i}: t{i}")
                arguments.append(f"x{i}[{index}]" if arrays[i] else f"x{i}")
            for i, dtype in enumerate(self.results):
                names[f"r{i}"] = array(dtype=dtype, ndim=ndim)
                parameters.append(f"y{i}: r{i}")
                targets.append(f"y{i}[{index}]")
            names["tid"] = _weft.builtin("tid")
            text = (
                f"def {self.name}({', '.join(parameters)}):\n"
                f"    {index} = tid()\n"
                f"    {', '.join(targets)} = mapped({', '.join(arguments)})\n"
            )
            made = decorators.kernel(_make(text, self.name, names), module=__name__)
            self.kernels[arrays, ndim] = made
        return made


_mappings: OrderedDict[Any, _Mapping] = OrderedDict()
_lock = threading.RLock()  # a static expression in a mapped function may itself map


def mapping_of(function: Any, key: Any, values: list[Any], name: str) -> _Mapping:
    """The mapping of a function over these values, arrays or (value, dtype); made on first use."""
    dtypes = [value.dtype if isinstance(value, array) else value[1] for value in values]
    key = (key, *dtypes)
    with _lock:
        found = _mappings.get(key)
        if found is None:
            found = _mappings[key] = _Mapping(function, dtypes, name)
            if len(_mappings) > _MOST_KERNELS:
                _mappings.popitem(last=False)
        else:
            _mappings.move_to_end(key)
    return found


# ---- arguments ----


def number_type(value: Any, dtypes: list[Any], api: str) -> Any:
    """The type that a Python number takes beside arrays of these types: their scalar type, if it fits."""
    for dtype in dtypes:
        info = _weft.type_info(dtype)
        if info is None or isinstance(value, bool):
            continue
        if info["scalar_kind"] == "float" or (info["scalar_kind"] == "int" and isinstance(value, int)):
            return info["scalar"]
    return _weft.named_type({bool: "bool", int: "int32"}.get(type(value), "float32"))


def check_number(value: Any, dtype: Any, api: str) -> Any:
    """The number, if a scalar of that type can hold it."""
    info = _weft.type_info(dtype)
    if isinstance(value, int) and info["kind"] == "scalar" and info["scalar_kind"] == "int":
        limits = np.iinfo(info["numpy"])
        if not limits.min <= value <= limits.max:
            raise usage_error(f"{api}: {value} does not fit {type_name(dtype)}. help: astype()", OverflowError)
    return value


def _declared(func: Any, count: int) -> list[Any]:
    """The scalar types that a function's parameters are annotated with; None for a parameter without one."""
    function = func.func if isinstance(func, Function) else func
    if not inspect.isfunction(function):
        return [None] * count
    annotations = inspect.get_annotations(function)
    names = list(inspect.signature(function).parameters)
    found = [annotations.get(name) for name in names[:count]]
    infos = [None if dtype is None or isinstance(dtype, str) else _weft.type_info(dtype) for dtype in found]
    declared = [info["scalar"] if info is not None and info["kind"] == "scalar" else None for info in infos]
    return declared + [None] * (count - len(declared))


def _value_type(value: Any) -> Any:
    """The dtype of a NumPy scalar or a Weft value; None for anything else."""
    if isinstance(value, np.generic) and _weft.type_info(value.dtype) is not None:
        return _weft.type_info(value.dtype)["scalar"]
    return type(value) if _weft.is_value(value) else None


def broadcast_shape(shapes: list[tuple[int, ...]], api: str) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(shape) for shape in shapes)
        raise usage_error(
            f"{api}: the shapes {text} cannot be broadcast together: counted from the last, dimensions must be equal "
            "or 1",
            ValueError,
        ) from None


def _overlaps(out: array, value: array) -> bool:
    """Whether they share memory and are not element by element the same."""
    if out.shape == value.shape and out.strides == value.strides and out.ptr == value.ptr:
        return False
    return primitives.overlap(out, value)


def launch_map(function: Any, key: Any, name: str, values: list[Any], out: Any, api: str) -> Any:
    """The body of map() and of the operators. `values` are arrays, or (value, dtype) for uniform values."""
    mapping = mapping_of(function, key, values, name)
    sources = [value for value in values if isinstance(value, array)]
    shape = broadcast_shape([value.shape for value in sources], api)
    outputs = _outputs(mapping, out, shape, sources, api)
    names = [f"inputs[{i}]" for i in range(len(values))] if api == _API else ["a", "b"]
    named = {name: value for name, value in zip(names, values, strict=False) if isinstance(value, array)}
    for target in outputs:
        check_one_device(api, {**named, "out": target})
    # An output that shares memory with an input in another order is written when all is read.
    results = [
        _weft.empty(shape, target.dtype, device=target.device, requires_grad=target.requires_grad)
        if any(_overlaps(target, source) for source in sources)
        else target
        for target in outputs
    ]
    arguments = [value if isinstance(value, array) else value[0] for value in values]
    _launch(mapping, arguments, results, shape)
    for target, result in zip(outputs, results, strict=True):
        if target is not result:
            _weft.copy(target, result)
    return outputs[0] if len(outputs) == 1 else list(outputs)


def _outputs(mapping: _Mapping, out: Any, shape: tuple[int, ...], sources: list[array], api: str) -> list[array]:
    if out is None:
        requires_grad = any(source.requires_grad for source in sources)
        return [
            _weft.empty(shape, dtype, device=sources[0].device, requires_grad=requires_grad)
            for dtype in mapping.results
        ]
    outputs = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(outputs) != len(mapping.results):
        raise usage_error(
            f"{api}: 'out' has {len(outputs)} arrays, and {mapping.name!r} returns {len(mapping.results)} values",
            TypeError if api == _API else ValueError,
        )
    for target, dtype in zip(outputs, mapping.results, strict=True):
        if not isinstance(target, array):
            raise usage_error(f"{api}: 'out' must be a warp.array, got {type(target).__name__}", TypeError)
        if target.dtype is not dtype:
            raise usage_error(
                f"{api}: 'out' is an array of {type_name(target.dtype)}, and the result is {type_name(dtype)}",
                TypeError,
            )
        if target.shape != shape:
            kind = TypeError if api == _API else ValueError
            raise usage_error(f"{api}: 'out' has the shape {target.shape}, expected {shape}", kind)
    return outputs


def _launch(mapping: _Mapping, arguments: list[Any], results: list[array], shape: tuple[int, ...]) -> None:
    is_array = tuple(isinstance(value, array) for value in arguments)
    everything = [*[v for v in arguments if isinstance(v, array)], *results]
    if 0 in shape:
        return
    device = results[0].device
    if all(value.shape == shape and value.is_contiguous for value in everything):
        kernel = mapping.kernel(is_array, 1)
        size = results[0].size
        arguments = [value.flatten() if isinstance(value, array) else value for value in arguments]
        results = [value.flatten() for value in results]
        if size <= LONGEST_LINE:
            _weft.launch(kernel, size, arguments, results, device=device)
            return
        for begin in range(0, size, LONGEST_LINE):
            part = slice(begin, min(size, begin + LONGEST_LINE))
            cut = [value[part] if isinstance(value, array) else value for value in arguments]
            _weft.launch(kernel, part.stop - begin, cut, [value[part] for value in results], device=device)
        return
    arguments = [primitives.broadcast(value, shape) if isinstance(value, array) else value for value in arguments]
    _weft.launch(mapping.kernel(is_array, len(shape)), shape, arguments, results, device=device)


def _map_into_indexed(func: Callable, name: str, values: list[Any], out: Any) -> Any:
    """map() with results that go to the elements that indexedarrays choose."""
    targets = list(out) if isinstance(out, (list, tuple)) else [out]
    made = launch_map(func, _key(func), name, values, None, _API)
    results = made if isinstance(made, list) else [made]
    if len(targets) != len(results):
        raise usage_error(f"{_API}: 'out' has {len(targets)} arrays, expected {len(results)}", TypeError)
    for target, result in zip(targets, results, strict=True):
        if target.shape != result.shape or target.dtype is not result.dtype:
            found = f"{type_name(target.dtype)} of shape {target.shape}"
            expected = f"{type_name(result.dtype)} of shape {result.shape}"
            raise usage_error(f"{_API}: 'out' is an array of {found}, expected {expected}", TypeError)
        target.assign(result)
    return out


def map(
    func: Callable,
    *inputs: Any,
    out: array | list[array] | tuple[array, ...] | None = None,
    return_kernel: bool = False,
    block_dim: int | None = None,
    device: Any = None,
) -> Any:
    """Applies a function to the elements of arrays: ``out[i] = func(a[i], b[i], ...)``.

    Shapes are broadcast as NumPy does it. A kernel is compiled for each function and combination of dtypes; a lambda
    that is made again and again is compiled once.

    Args:
        func: a ``@wp.func``, a builtin such as ``wp.sin``, or a plain Python function or lambda in the language of
            kernels. It may return several values.
        inputs: arrays (an indexedarray is read as its elements), and values that are the same for all elements: Python
            numbers, which take the type of an annotated parameter, else the scalar type of the first array that they
            fit, NumPy scalars, vectors, matrices.
        out: gets the result, an array or indexedarray of the broadcast shape and of the dtype that ``func`` returns, or
            several in a sequence if it returns several values. May be one of the inputs.
        return_kernel: give back the kernel, ``kernel(inputs..., outputs...)``, and run nothing. Its arrays all have the
            number of dimensions of the broadcast shape.
        block_dim: shapes CUDA launches only.
        device: the device that all arrays must be on.
    Returns:
        ``out``, or new arrays (a list if ``func`` returns several values), or the kernel.
    Raises:
        UsageError: no array is given, shapes cannot be broadcast, or ``out`` does not fit.
        CompileError: the function has a mistake, or does not take these types.
    """
    inputs = tuple(value.contiguous() if isinstance(value, indexedarray) else value for value in inputs)
    arrays = [value for value in inputs if isinstance(value, array)]
    if not arrays:
        raise usage_error(f"{_API}: expected at least one warp.array after the function, got {inputs!r}", ValueError)
    if device is not None:
        wanted = _weft.get_device(device)
        for value in arrays:
            if value.device != wanted:
                raise usage_error(
                    f"{_API}: an array is on {str(value.device)!r}, and device is {str(wanted)!r}", ValueError
                )
    values = []
    for value, declared in zip(inputs, _declared(func, len(inputs)), strict=True):
        if isinstance(value, array):
            values.append(value)
        elif isinstance(value, (bool, int, float)):
            dtype = declared or number_type(value, [v.dtype for v in arrays], _API)
            values.append((check_number(value, dtype, _API), dtype))
        elif (dtype := _value_type(value)) is not None:
            values.append((value, dtype))
        else:
            raise usage_error(
                f"{_API}: an argument is {type(value).__name__}; expected warp.array, a number, a vector or a matrix. "
                "help: wp.array(data)",
                TypeError,
            )
    name = getattr(func, "__name__", None) or getattr(func, "key", None) or "function"
    name = "map_" + (name if name.isidentifier() else "lambda")
    if return_kernel:
        mapping = mapping_of(func, _key(func), values, name)
        shape = broadcast_shape([value.shape for value in arrays], _API)
        return mapping.kernel(tuple(isinstance(value, array) for value in values), len(shape))
    if any(isinstance(target, indexedarray) for target in (out if isinstance(out, (list, tuple)) else [out])):
        return _map_into_indexed(func, name, values, out)
    try:
        return launch_map(func, _key(func), name, values, out, _API)
    except CompileError as error:
        if isinstance(func, Function) or inspect.isfunction(func):
            raise
        # A builtin: nothing of the kernel around it is the caller's.
        raise usage_error(f"{_API}: {error.message}", TypeError) from error

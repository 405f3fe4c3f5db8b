"""@wp.kernel, @wp.func and wp.constant, which turn Python functions and values into parts of kernels."""

from __future__ import annotations

import inspect
import numbers
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import warp._weft as _weft
from warp import config
from warp._kernels.kernels import checked_name, module_of, python_function, unique_kernel
from warp._kernels.modules import check_options
from warp._weft import Kernel, usage_error
from warp._weft import UserFunction as Function

__all__ = ["constant", "func", "func_grad", "func_native", "func_replay", "kernel", "overload"]


def _check_launch_bounds(bounds: Any) -> Any:
    """None, the most threads of a block, or (most threads, least blocks per multiprocessor)."""
    if bounds is None:
        return None
    numbers = bounds if isinstance(bounds, (tuple, list)) else (bounds,)
    is_whole = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in numbers)
    if not is_whole or len(numbers) not in (1, 2) or numbers[0] > 1024:
        message = f"launch_bounds is {bounds!r}, expected a number of threads per block from 1 to 1024, or a tuple of "
        message += "it and the least number of blocks per multiprocessor"
        raise usage_error("kernel(): " + message, ValueError)
    return tuple(numbers)


def _check_flag(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, bool):
        raise usage_error(f"kernel(): {name} is {value!r}, expected True or False", TypeError)


def _check_count(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise usage_error(f"kernel(): {name} is {value!r}, expected a positive int", TypeError)
    if value < 1:
        raise usage_error(f"kernel(): {name} is {value}, expected at least 1", ValueError)


def _check_cuda_options(
    launch_bounds: Any, registers: int | None, cluster: int | None, abi: str | None, enable_backward: bool | None
) -> None:
    if registers is not None and registers > 255:
        message = f"cuda_max_registers is {registers}, expected at most 255, which a thread can have"
        raise usage_error("kernel(): " + message, ValueError)
    if registers is not None and launch_bounds is not None:
        message = "launch_bounds and cuda_max_registers both decide about registers. help: leave one out"
        raise usage_error("kernel(): " + message, ValueError)
    if cluster is not None and cluster > 16:
        message = f"cluster_dim is {cluster}, expected at most 16, the largest cluster of any GPU"
        raise usage_error("kernel(): " + message, ValueError)
    if abi not in (None, "warp", "external_constant_params"):
        message = f"entry_point_abi is {abi!r}, expected 'warp' or 'external_constant_params'"
        raise usage_error("kernel(): " + message, ValueError)
    if abi == "external_constant_params" and enable_backward is not False:
        message = "entry_point_abi='external_constant_params' is for kernels without gradients. help: "
        raise usage_error("kernel(): " + message + "enable_backward=False", ValueError)


def kernel(
    f: Callable | None = None,
    *,
    name: str | None = None,
    enable_backward: bool | None = None,
    module: Any = None,
    module_options: dict[str, Any] | None = None,
    launch_bounds: Any = None,
    grid_stride: bool | None = None,
    cuda_max_registers: int | None = None,
    enable_cuda_smem_spilling: bool | None = None,
    cluster_dim: int | None = None,
    entry_point_abi: str | None = None,
    deterministic: Any = None,
) -> Any:
    """Makes a kernel of a Python function; used as ``@wp.kernel`` or ``@wp.kernel(...)``.

    The function runs once for every thread of a launch. Its parameters must be annotated; it returns nothing. Nothing
    is compiled before the first launch. A kernel with generic parameters (``typing.Any``) is made for each combination
    of argument types. Kernels that a factory function makes share their code if all their captured values are equal.

    Args:
        f: the function.
        name: the kernel's ``key``, an identifier; made from the function's name if None.
        enable_backward: False if no gradient of this kernel will ever be asked for.
        module: the ``wp.Module``, or its name, whose options the kernel takes. ``"unique"`` gives it one of its own and
            makes kernels with the same code, captured values and options one object. None: that of its Python module.
            Every kernel is compiled by itself, in any module.
        module_options: options for this kernel that differ from its module's: see ``wp.set_module_options``.
        launch_bounds: for CUDA devices, the most threads of a block, or a tuple of it and the least number of blocks
            per multiprocessor.
        grid_stride, enable_cuda_smem_spilling: accepted. A thread of a CUDA launch always runs several points of a grid
            that is larger than its blocks, and kernels use no shared memory; other values than these are warned about.
        cuda_max_registers: for CUDA devices, the most registers of a thread, from 1 to 255; not beside launch_bounds.
        cluster_dim: for CUDA devices of architecture 90 and later, how many blocks a cluster has, from 1 to 16; an
            error at the launch on earlier ones.
        entry_point_abi: "warp"; with "external_constant_params", for kernels that have ``enable_backward=False``,
            launches on CUDA devices are an error.
        deterministic: a ``wp.DeterministicMode``, its name or a bool, in place of the module's and of
            ``wp.config.deterministic``.
    Returns:
        A ``wp.Kernel``, for ``wp.launch``.
    Raises:
        UsageError: f is not a Python function, or an option is unknown.
    """
    checked_name(name, "kernel()")
    options = check_options(module_options, "kernel()")
    own: dict[str, Any] = {}
    if enable_backward is not None:
        own.update(check_options({"enable_backward": enable_backward}, "kernel()"))
    _check_flag("grid_stride", grid_stride)
    _check_flag("enable_cuda_smem_spilling", enable_cuda_smem_spilling)
    _check_count("cuda_max_registers", cuda_max_registers)
    _check_count("cluster_dim", cluster_dim)
    _check_cuda_options(launch_bounds, cuda_max_registers, cluster_dim, entry_point_abi, enable_backward)
    if deterministic is not None:
        config._deterministic_mode(deterministic, "kernel(): deterministic")
    if grid_stride is False:
        config._warn_of_no_effect("grid_stride", False, "kernel(): grid_stride=False", stacklevel=2)
    if enable_cuda_smem_spilling:
        what = "kernel(): enable_cuda_smem_spilling=True"
        config._warn_of_no_effect("enable_cuda_smem_spilling", False, what, stacklevel=2)
    for option, value in (
        ("launch_bounds", _check_launch_bounds(launch_bounds)),
        ("grid_stride", grid_stride),
        ("cuda_max_registers", cuda_max_registers),
        ("enable_cuda_smem_spilling", enable_cuda_smem_spilling),
        ("cluster_dim", cluster_dim),
        ("entry_point_abi", entry_point_abi),
        ("deterministic", deterministic),
    ):
        if value is not None:
            own[option] = value

    def make(function: Callable) -> Kernel:
        function = python_function(function, "kernel()")
        if module == "unique":
            return unique_kernel(function, name, own, options)
        return Kernel(function, name, module_of(function, module, "kernel()"), {**options, **own})

    return make if f is None else make(f)


def overload(kernel: Any, arg_types: Any = None) -> Any:
    """Chooses the types of a generic kernel before it is launched.

    ``wp.overload(k, [wp.array(dtype=float), float])`` and ``wp.overload(k, {"x": wp.array(dtype=float)})`` give the
    kernel for these types, to be launched or compiled. As a decorator of a function with the name and the parameters of
    a generic kernel, ``@wp.overload`` adds the types of its annotations and gives back the generic kernel.

    Args:
        kernel: a kernel with generic parameters.
        arg_types: a type for each parameter, or a dict from the names of the generic parameters to types.
    Raises:
        UsageError: the kernel is not generic, or the types do not fit its annotations.
    """
    if isinstance(kernel, Kernel):
        if arg_types is None:
            message = f"the types are missing. help: wp.overload({kernel.__name__}, [wp.array[float]])"
            raise usage_error("overload(): " + message, TypeError)
        return kernel.overload(arg_types)
    if not isinstance(kernel, FunctionType):
        raise usage_error(f"overload(): expected a generic kernel or a function, found {kernel!r}", TypeError)
    generic = _bound_name(kernel.__name__, 1)
    if not isinstance(generic, Kernel):
        generic = module_of(kernel, None, "overload()").kernel_of_function(kernel)
    if generic is None:
        message = f"there is no kernel {kernel.__name__!r} here to add an overload to"
        raise usage_error("overload(): " + message, NameError)
    names = list(inspect.signature(kernel).parameters)
    expected = list(inspect.signature(generic.func).parameters)
    if names != expected:
        message = f"the parameters are ({', '.join(names)}), those of kernel {generic.__name__!r} are "
        message += f"({', '.join(expected)})"
        raise usage_error("overload(): " + message, TypeError)
    annotations = inspect.get_annotations(kernel, eval_str=True)
    missing = [name for name in names if name not in annotations]
    if missing:
        message = f"parameter {missing[0]!r} of {kernel.__name__!r} has no annotation"
        raise usage_error("overload(): " + message, TypeError)
    generic.overload([annotations[name] for name in names])
    return generic


def _bound_name(name: str, depth: int) -> Any:
    """The value of the name among the locals of the frame ``depth`` levels above the caller; None if it has none."""
    return sys._getframe(depth + 1).f_locals.get(name)


# Names of the functions that modules define at their top level: a second definition replaces the first everywhere.
_defined: set[tuple[str, str]] = set()


def _make_function(
    function: Callable,
    depth: int,
    native: tuple[str, str | None, str | None] | None = None,
    key: str | None = None,
    module: Any = None,
) -> Function:
    snippet, adjoint, replay = native or (None, None, None)
    api = "func()" if native is None else "func_native()"
    function = python_function(function, api)
    owner = module_of(function, None if module == "unique" else module, api)
    _weft.keep_lines(function)
    name = (function.__module__, function.__qualname__)
    if "<locals>" not in function.__qualname__:
        if name in _defined:
            _weft.function_redefined()
        _defined.add(name)
    earlier = _bound_name(function.__name__, depth + 1)
    kept = ()
    if isinstance(earlier, Function) and (earlier.__module__, earlier.__qualname__) == name:
        kept = earlier.overloads
        if earlier.func.__annotations__ != function.__annotations__:
            kept.append(earlier)
    made = Function(function, kept, snippet, snippet is None or _has_body(function), adjoint, replay)
    if key is not None:
        made.key = key
    made.module = owner
    owner._add_function(made)
    return made


def func(f: Callable | None = None, *, name: str | None = None, module: Any = None, inline: bool | None = None) -> Any:
    """Makes a function that kernels can call; used as ``@wp.func`` or ``@wp.func()``.

    Annotations are optional: a parameter without one, or with ``typing.Any``, takes the type of the argument. The
    function may return several values. It is compiled with each kernel that calls it.

    Several definitions of one name in one place, with annotations of different types, are overloads: a call takes the
    one that fits its arguments best. A definition with the same types replaces the earlier one, also in kernels that
    have been launched before.

    Args:
        f: the function.
        name: its ``key``, an identifier; made from the function's name if None.
        module: the ``wp.Module``, or its name, that lists it; it is compiled with the kernels that call it.
        inline: whether calls should be replaced by the function's body: a hint, kept as ``inline_hint``.
    Raises:
        UsageError: f is not a Python function, or an argument is of another type.
    """
    key = checked_name(name, "func()")
    if inline is not None and not isinstance(inline, bool):
        raise usage_error(f"func(): inline is {inline!r}, expected True, False or None", TypeError)

    def make(function: Callable, depth: int) -> Function:
        made = _make_function(function, depth + 1, None, key, module)
        made.inline_hint = inline
        return made

    return make(f, 1) if f is not None else lambda function: make(function, 1)


def _snippet(text: Any, name: str) -> str:
    if not isinstance(text, str):
        message = f"{name} is {text!r} of type {type(text).__name__}, expected a string of C++"
        help_text = ". help: write @wp.func_native(snippet) above the `def`" if isinstance(text, FunctionType) else ""
        raise usage_error(f"func_native(): {message}{help_text}", TypeError)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise usage_error(f"func_native(): {name} is no valid Unicode: {error}", ValueError) from None
    if "\0" in text:
        raise usage_error(f"func_native(): {name} has a null character in it", ValueError)
    return text


def _without_body(): ...


def _with_docstring():
    """Nothing but this."""


_EMPTY_BODIES = (_without_body.__code__.co_code, _with_docstring.__code__.co_code)


def _has_body(function: FunctionType) -> bool:
    """Whether the function has a Python body besides its C++."""
    return function.__code__.co_code not in _EMPTY_BODIES


def func_native(snippet: str, adj_snippet: str | None = None, replay_snippet: str | None = None) -> Callable:
    """Makes a function whose body is C++: ``@wp.func_native(snippet)`` above a ``def`` that ends in ``...``.

        @wp.func_native("return x * x;")
        def square(x: float) -> float: ...

    The snippet sees the parameters under their names; ``include/weft/native.h`` has their types. A clang compiles it
    with the first kernel that calls the function: the one that ``wp.config.host_compiler`` or the environment variable
    ``WEFT_CLANG`` names, else one from PATH. On CUDA devices it compiles it as CUDA: ``include/weft/native_cuda.h`` has
    the names. Calls from Python run the Python body.

    Args:
        snippet: the statements of the body; ``return`` gives a value of the annotated type.
        adj_snippet: the C++ of its gradient. It sees the parameters, ``adj_x`` for each that has a gradient, and
            ``adj_ret``, the adjoint of the result. Without it, a gradient of a kernel that calls the function is an
            error.
        replay_snippet: C++ that the backward pass runs for the result, in place of the snippet.
    Raises:
        UsageError: a snippet is no string, or the decorated object is no Python function.
    """
    snippet = _snippet(snippet, "the snippet")
    adjoint = None if adj_snippet is None else _snippet(adj_snippet, "adj_snippet")
    replay = None if replay_snippet is None else _snippet(replay_snippet, "replay_snippet")

    def make(function: Callable) -> Function:
        return _make_function(function, 1, (snippet, adjoint, replay))

    return make


def _parameters(function: Callable) -> list[tuple[str, Any]]:
    return [(p.name, p.annotation) for p in inspect.signature(function).parameters.values()]


def _check_forward(forward: Any, api: str) -> None:
    if not isinstance(forward, Function):
        raise usage_error(f"{api}: expected a function made with @wp.func, found {forward!r}", TypeError)


def _shown(parameters: list[tuple[str, Any]]) -> str:
    return ", ".join(name for name, _ in parameters)


def _definition(forward: Function, fits: Callable[[list[tuple[str, Any]]], bool]) -> Function | None:
    """Of the definitions of one name, the newest with parameters that fit."""
    for definition in (forward, *reversed(forward.overloads)):
        if fits(_parameters(definition.func)):
            return definition
    return None


def func_grad(forward_fn: Function) -> Callable:
    """Declares the gradient of a function: ``@wp.func_grad(f)``. It takes the place of the derivative of ``f``, at any
    depth of calls::

        @wp.func
        def root(x: float):
            return wp.sqrt(x)

        @wp.func_grad(root)
        def root_gradient(x: float, adj_result: float):
            if x > 0.0:
                wp.adjoint[x] += 0.5 / wp.sqrt(x) * adj_result

    The decorated function has the parameters of ``f``, then one adjoint for each value that ``f`` returns, and returns
    nothing. ``wp.adjoint[x]`` is the adjoint of the parameter ``x``: it starts at zero, and its final value is added to
    the gradient of the argument. Of an array it is the array of its gradient, which elements are added to. Arrays that
    the kernel writes are seen as they are after the launch.

    It is kept as ``f.custom_grad_func``. If ``f`` has several definitions, it belongs to the one with these parameters.

    Raises:
        UsageError: ``forward_fn`` is no ``@wp.func``, or the parameters do not begin with those of ``forward_fn``.
    """
    _check_forward(forward_fn, "func_grad()")

    def make(function: Callable) -> Function:
        function = python_function(function, "func_grad()")
        found = _parameters(function)
        definition = _definition(forward_fn, lambda wanted: found[: len(wanted)] == wanted)
        if definition is None:
            message = f"the parameters of {function.__name__!r} are ({_shown(found)}); they must begin with those of "
            message += (
                f"{forward_fn.__name__!r}, with the same annotations: ({_shown(_parameters(forward_fn.func))}), and "
            )
            raise usage_error("func_grad(): " + message + "go on with one adjoint for each returned value", TypeError)
        definition.custom_grad_func = Function(function)
        return definition.custom_grad_func

    return make


def func_replay(forward_fn: Function) -> Callable:
    """Declares the replay of a function: code that the backward pass runs in its place to have its values again::

        @wp.func
        def take_ticket(counter: wp.array[int], tickets: wp.array[int], i: int):
            tickets[i] = wp.atomic_add(counter, 0, 1)
            return tickets[i]

        @wp.func_replay(take_ticket)
        def ticket_again(counter: wp.array[int], tickets: wp.array[int], i: int):
            return tickets[i]

    The decorated function has just the parameters of ``f``, and returns values of the same types. Arrays that the
    kernel writes are seen as they are after the launch. It is kept as ``f.custom_replay_func``. If ``f`` has several
    definitions, it belongs to the one with these parameters.

    Raises:
        UsageError: ``forward_fn`` is no ``@wp.func``, or the parameters are not those of ``forward_fn``.
    """
    _check_forward(forward_fn, "func_replay()")

    def make(function: Callable) -> Function:
        function = python_function(function, "func_replay()")
        found = _parameters(function)
        definition = _definition(forward_fn, lambda wanted: found == wanted)
        if definition is None:
            message = (
                f"the parameters of {function.__name__!r} are ({_shown(found)}), those of {forward_fn.__name__!r} "
            )
            message += f"are ({_shown(_parameters(forward_fn.func))}); they must be the same, with the same annotations"
            raise usage_error("func_replay(): " + message, TypeError)
        definition.custom_replay_func = Function(function)
        return definition.custom_replay_func

    return make


def constant(x: Any) -> Any:
    """Declares a compile-time constant and returns it unchanged: kernels fold its value into their code.

    Args:
        x: a number, bool, string, or a Weft scalar, vector, matrix, quaternion or transform.
    Raises:
        UsageError: x is anything else.
    """
    if isinstance(x, (bool, numbers.Number, str)) or _weft.is_value(x):
        return x
    message = f"{x!r} is of type {type(x).__name__}; expected a number, bool, string, vector, matrix, quaternion or "
    raise usage_error("constant(): " + message + "transform", TypeError)

"""The name of a Python function's kernel, its module, and the identity of unique kernels.

``plan_kernel`` interprets the arguments of ``wp.Kernel(function)``; ``enter_kernel`` enters the kernel into its module.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import warp._weft as _weft
from warp import config
from warp._kernels.modules import CUDA_OPTIONS, Module, module_named, unique_module
from warp._weft import Kernel
from warp._weft import usage_error as _usage_error
from warp.errors import NotImplementedYetError


def python_function(function: Any, api: str) -> Callable:
    """The function itself; raises a UsageError that names any other object."""
    if isinstance(function, FunctionType):
        return function
    if isinstance(function, Kernel):
        found, help_text = f"the kernel {function.key!r}", "write one decorator"
    elif isinstance(function, _weft.UserFunction):
        found, help_text = f"the function {function.__name__!r} of @wp.func", "write one decorator"
    elif isinstance(function, (staticmethod, classmethod)):
        found = f"a {type(function).__name__}"
        help_text = f"write @{type(function).__name__} above @wp.{api[:-2]}, or use a plain function"
    else:
        found = f"{function!r} of type {type(function).__name__}"
        help_text = f"@wp.{api[:-2]} stands above a `def`"
    raise _usage_error(f"{api}: expected a Python function, found {found}. help: {help_text}", TypeError)


def key_of(function: Callable) -> str:
    """``make__locals__scale`` for a function in a function: a name that no other function of its module has."""
    return function.__qualname__.replace(".", "__").replace("<", "").replace(">", "")


def checked_name(name: Any, api: str) -> str | None:
    """The name that a decorator was given: an identifier, or None."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise _usage_error(f"{api}: name is {name!r}, expected a string", TypeError)
    if not (name.isidentifier() and name.isascii()):
        raise _usage_error(f"{api}: name is {name!r}, expected an identifier such as 'scale_rows'", ValueError)
    return name


def module_of(function: Callable, module: Any, api: str) -> Module:
    """The module that is meant: that of the function if ``module`` is None."""
    if module is None:
        return module_named(function.__module__ or "__main__")
    if isinstance(module, Module):
        return module
    if isinstance(module, str):
        return module_named(module)
    raise _usage_error(f'{api}: module is {module!r}, expected a wp.Module, a name or "unique"', TypeError)


def plan_kernel(func: Any, key: Any, module: Any, options: Any, code_transformers: Any, source: Any) -> tuple:
    """(function, name, key, module, options for C++, own options) of ``wp.Kernel(...)``."""
    api = "Kernel()"
    function = python_function(func, "kernel()")
    if code_transformers or source is not None:
        from warp._kernels.transformed import transformed_function  # few programs have any

        function = transformed_function(function, code_transformers or (), source, api)
    if key is not None and not (isinstance(key, str) and key):
        raise _usage_error(f"{api}: key is {key!r}, expected a string", TypeError)
    given = key  # of any characters: it is a name in messages and in the module's table
    owner = module_of(function, module, api)
    if options is not None and not isinstance(options, dict):
        raise _usage_error(f"{api}: options is {options!r}, expected a dict", TypeError)
    own = dict(options or {})
    _weft.keep_lines(function)
    code = owner._code_options_of(own, config.enable_backward)
    return function, given or function.__name__, given or key_of(function), owner, code, own


def enter_kernel(kernel: Kernel, plan: tuple) -> None:
    """Sets the attributes of the Python object, and adds it to its module."""
    function, name, key, owner, _, own = plan
    kernel.__doc__ = function.__doc__
    kernel.__name__ = name
    kernel.__qualname__ = function.__qualname__
    kernel.__wrapped__ = function
    kernel.options = own
    kernel.enable_backward_when_declared = config.enable_backward
    for option in CUDA_OPTIONS:
        setattr(kernel, option, own.get(option))
    owner._add(key, kernel)


def refuse_call(name: str) -> None:
    """Raises the error of ``kernel()``."""
    message = f"{name}(): a kernel is not called but launched. help: wp.launch({name}, dim=n, inputs=[...])"
    raise NotImplementedYetError(message)


def refuse_brackets(name: str, dim: Any) -> None:
    """Raises the error of ``kernel[4]``, the launch syntax of other languages."""
    count = dim if isinstance(dim, int) and not isinstance(dim, bool) else "n"
    message = f"{name}[{dim!r}]: a kernel is launched by wp.launch({name}, dim={count}, inputs=[...])"
    if count == "n":
        message += "; n is the number of threads"
    raise _usage_error(message, TypeError)


# ---- kernels of module="unique" ----

# By place, options and content as it was when declared. References are weak: unused kernels leave it.
_unique: weakref.WeakValueDictionary[tuple, Kernel] = weakref.WeakValueDictionary()


def unique_kernel(function: Callable, name: str | None, own: dict[str, Any], module_options: dict[str, Any]) -> Kernel:
    """The kernel of a module of its own: the earlier one if it is the same.

    Two are the same when they come from one place, have the same options, and compile to the same code now. A generic
    one whose captured values cannot be compared is like no other, and so is one with a mistake: its launch raises the
    error.
    """
    module = unique_module(name or key_of(function), module_options)
    made = Kernel(function, name, module, own)
    content = _content(made)
    if content is None:
        return made
    code = function.__code__
    options = (*sorted(own.items()), *sorted(module_options.items()))
    identity = (function.__module__, made.key, code.co_filename, code.co_firstlineno, repr(options), content)
    earlier = _unique.get(identity)
    # The earlier one's content may have changed with the names that it looks up, if it is not compiled yet.
    if earlier is not None and _content(earlier) == content:
        return earlier
    module._declared = content
    module.name = f"{module.name}_{content.hex()[:8]}"
    _unique[identity] = made
    return made


def _content(kernel: Kernel) -> bytes | None:
    try:
        if kernel.is_generic:
            captured = _captured(kernel.func)
            return None if captured is None else repr((kernel.func.__code__.co_code, captured)).encode()
        return kernel._content_hash()
    except (_weft.CompileError, _weft.UsageError):
        return None


def _captured(function: Callable, depth: int = 0) -> tuple | None:
    """Names and values that a function captures; None unless all of them are values that cannot change."""
    code = function.__code__
    if depth > 16:
        return None
    found: list[tuple[str, Any]] = []
    scopes = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    for name in (*code.co_freevars, *code.co_names):
        if name in scopes:
            value = scopes[name]
        elif name in function.__globals__:
            value = function.__globals__[name]
        else:
            continue  # an attribute, or a name that is built in
        if isinstance(value, _weft.UserFunction):
            inner = _captured(value.func, depth + 1)
            if inner is None:
                return None
            found.append((name, (value.func.__code__.co_code, repr(value.func.__code__.co_consts), inner)))
        elif isinstance(value, (bool, int, float, str, type, type(None))) or _weft.is_value(value):
            found.append((name, (type(value), repr(value))))
        elif getattr(value, "__name__", "") in ("warp", "math", "numpy") or isinstance(value, _weft.Function):
            continue
        else:
            return None
    return tuple(found)

"""Forwards to ``warp.context`` and ``warp``; the table of modules, and hashes of kernels."""

from __future__ import annotations

import ctypes
import hashlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warp import _weft
from warp._kernels.modules import Module, modules_by_name
from warp._src import forward, warn_once
from warp.types import named_type


class _Functions:
    """``runtime.core``: built-in functions by names such as ``wp_builtin_mul_transformf_transformf``, which tell the
    types of the arguments. Each takes its arguments, then ``ctypes.byref()`` of the value that the result goes to."""

    def __getattr__(self, name: str) -> Callable:
        words = name.removeprefix("wp_builtin_").split("_")
        while words and (words[-1] in ("bool", "float", "int") or named_type(words[-1]) is not None):
            words.pop()
        spelled = "_".join(words)
        function = _OPERATORS.get(spelled) or _weft.builtin(spelled)
        if function is None or not name.startswith("wp_builtin_"):
            raise AttributeError(f"warp._src.context.runtime.core has no function {name!r}")

        def call(*arguments: Any) -> None:
            *given, place = arguments
            result = getattr(place, "_obj", place)
            value = function(*given)
            if isinstance(result, ctypes._SimpleCData):
                result.value = value
            else:
                written = np.ascontiguousarray(value).tobytes()
                memoryview(result).cast("B")[: len(written)] = written

        setattr(self, name, call)
        return call


_OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


class _Runtime:
    core = _Functions()


runtime = _Runtime()


class ModuleHasher:
    """Hashes of kernels: equal for equal text and options.

    Args:
        kernels: accepted.
        options: of the module, a dict.
    """

    def __init__(self, kernels: Sequence[Any] = (), options: dict[str, Any] | None = None):
        self._options = dict(options or {})

    def hash_kernel(self, kernel: Any) -> bytes:
        """32 bytes that identify the kernel's key, the code of its function, and the options."""
        code = kernel.func.__code__
        words = (kernel.key, code.co_code, repr(code.co_consts), code.co_names, sorted(map(str, self._options.items())))
        return hashlib.sha256(repr(words).encode()).digest()


def __getattr__(name: str) -> Any:
    if name == "user_modules":
        warn_once(f"{__name__}.{name}", "wp.get_module()")
        return modules_by_name()
    if name == "builtin_functions":
        warn_once(f"{__name__}.{name}", "warp")
        return {name: _weft.builtin(name) for name in _weft.builtin_names()}
    if name == "Module":
        return Module
    return forward(__name__, name, "warp.context", "warp")

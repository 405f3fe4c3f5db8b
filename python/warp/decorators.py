"""@wp.kernel, @wp.func and wp.constant: what turns Python functions and values into parts of kernels."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from typing import Any

from warp import _weft
from warp._weft import Function, Kernel, UsageError

__all__ = ["constant", "func", "kernel"]

# Options of kernels and modules that shape the machine code, and how Weft calls them.
_CODE_OPTIONS = {
    "fast_math": "fast_math",
    "mode": "debug",
    "lineinfo": "line_info",
    "optimization_level": "optimization_level",
    "max_unroll": "max_unroll",
    "lanes": "lanes",
}
# Accepted for programs that also run on CUDA devices; they shape CUDA code only.
_CUDA_OPTIONS = {"block_dim", "launch_bounds", "grid_stride", "enable_backward", "cuda_output", "strip_hash"}


def _code_options(options: dict[str, Any] | None) -> dict[str, Any]:
    result = {}
    for name, value in (options or {}).items():
        if name in _CODE_OPTIONS:
            result[_CODE_OPTIONS[name]] = value == "debug" if name == "mode" else value
        elif name not in _CUDA_OPTIONS:
            known = sorted({*_CODE_OPTIONS, *_CUDA_OPTIONS})
            raise UsageError(f"kernel(): there is no module option {name!r}; expected one of {', '.join(known)}")
    return result


def kernel(
    f: Callable | None = None,
    *,
    enable_backward: bool | None = None,
    module: Any = None,
    module_options: dict[str, Any] | None = None,
    launch_bounds: Any = None,
    grid_stride: bool | None = None,
) -> Any:
    """Makes a kernel of a Python function; used as ``@wp.kernel`` or ``@wp.kernel(...)``.

    The function runs once for every thread of a launch. Its parameters must be annotated; it returns nothing. Nothing
    is compiled before the first launch.

    Args:
        f: the function.
        enable_backward: False where no gradient of this kernel will ever be asked for.
        module: accepted; every kernel is compiled by itself.
        module_options: a dict with ``fast_math``, ``mode`` ("debug" or "release"), ``lineinfo``,
            ``optimization_level`` (0 to 3) and ``max_unroll`` for this kernel, where it differs from ``wp.config``;
            ``lanes``, how many threads one vector holds (a power of two; 1 is scalar code), for tests and measurements.
        launch_bounds, grid_stride: shape CUDA kernels; the CPU has no use for them.
    Returns:
        A ``wp.Kernel``, for ``wp.launch``.
    Raises:
        UsageError: f is not a Python function, or an option is unknown.
    """

    def make(function: Callable) -> Kernel:
        if not inspect.isfunction(function):
            raise UsageError(f"kernel(): expected a Python function, found {function!r}")
        made = Kernel(
            function,
            function.__name__,
            function.__module__ or "__main__",
            enable_backward=True if enable_backward is None else bool(enable_backward),
            **_code_options(module_options),
        )
        made.__doc__ = function.__doc__
        made.__name__ = function.__name__
        made.__qualname__ = function.__qualname__
        made.__wrapped__ = function
        return made

    return make if f is None else make(f)


def func(f: Callable | None = None, *, name: str | None = None, module: Any = None) -> Any:
    """Makes a function that kernels can call; used as ``@wp.func`` or ``@wp.func()``.

    Annotations are optional: a parameter without one takes the type of the argument. The function may return several
    values. It is compiled with each kernel that calls it.

    Raises:
        UsageError: f is not a Python function.
    """

    def make(function: Callable) -> Function:
        if not inspect.isfunction(function):
            raise UsageError(f"func(): expected a Python function, found {function!r}")
        return Function(function)

    return make if f is None else make(f)


def constant(x: Any) -> Any:
    """Declares a compile-time constant and returns it unchanged: kernels fold its value into their code.

    Args:
        x: a number, bool, string, or a Weft scalar, vector, matrix, quaternion or transform.
    Raises:
        UsageError: x is anything else.
    """
    if isinstance(x, (bool, numbers.Number, str)) or _weft.is_value(x):
        return x
    raise UsageError(
        f"constant(): {x!r} is of type {type(x).__name__}; expected a number, bool, string, vector, matrix, "
        "quaternion or transform"
    )

"""JAX: generic kernels. A call's arrays select the instance, if they determine the outputs' types too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import warp._weft as _weft
from warp._interop.jax_arrays import dtype_from_jax
from warp._interop.library import import_library
from warp._kernels.decorators import overload

__all__ = ["GenericJaxKernel"]


class GenericJaxKernel:
    """A generic kernel as a function of arrays of JAX.

    An input whose dtype is generic takes that of the array it gets, as scalars. An output has to have a type of its
    own, or the type variable of an input. Python's numbers take the type that the variable has already, or float32 and
    int32.
    """

    def __init__(self, kernel: Any, make: Callable[[Any], Any]):
        self.kernel, self._make = kernel, make
        self._known: dict[tuple, Any] = {}

    def __repr__(self) -> str:
        return f"<jax_kernel of {self.kernel.key}, which is generic>"

    def __call__(self, *args: Any, **options: Any) -> list:
        types = self._types(args)
        key = tuple(map(repr, types))
        if key not in self._known:
            self._known[key] = self._make(overload(self.kernel, types))
        return self._known[key](*args, **options)

    def _types(self, args: tuple) -> list:
        """The types of the instance: one annotation for each parameter."""
        jax = import_library("jax")
        annotations = inspect.get_annotations(self.kernel.func, eval_str=True)
        annotations.pop("return", None)
        bound: dict[TypeVar, Any] = {}
        types = []
        for place, (name, annotation) in enumerate(annotations.items()):
            is_array = _weft.is_annotation(annotation)
            variable = annotation.dtype if is_array else annotation
            if variable is not Any and not isinstance(variable, TypeVar):
                types.append(annotation)
                continue
            dtype = bound.get(variable)
            if place < len(args) and not (dtype is not None and type(args[place]) in (bool, int, float)):
                found = self._dtype(jax, args[place], is_array)
                if dtype not in (None, found):
                    raise self._error(f"argument '{name}' is of {found.__name__}, and {variable} was {dtype.__name__}")
                dtype = found
                if variable is not Any:
                    bound[variable] = dtype
            if dtype is None:
                raise self._error(
                    f"it is generic, and the arrays that are given do not say what its output '{name}' is. help: "
                    "wp.overload(kernel, [types]) gives one instance"
                )
            types.append(_weft.array(dtype=dtype, ndim=annotation.ndim) if is_array else dtype)
        return types

    def _dtype(self, jax: Any, value: Any, is_array: bool) -> Any:
        if is_array or isinstance(value, jax.Array):
            return dtype_from_jax((value if isinstance(value, jax.Array) else jax.numpy.asarray(value)).dtype)
        info = _weft.type_info(type(value))
        return info["scalar"] if info is not None and info["kind"] == "scalar" else type(value)

    def _error(self, text: str) -> Exception:
        return _weft.usage_error(f"jax_kernel(): kernel '{self.kernel.key}': {text}", TypeError)

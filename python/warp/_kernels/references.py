"""wp.ref[T]: parameters of functions that are passed by reference."""

from __future__ import annotations

from typing import Any

__all__ = ["ref"]


class Reference:
    """The annotation ``wp.ref[T]``. Equal ones have equal types."""

    _is_reference = True

    def __init__(self, dtype: Any):
        self.dtype = dtype

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Reference) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((Reference, self.dtype))

    def __repr__(self) -> str:
        return f"wp.ref[{getattr(self.dtype, '__name__', repr(self.dtype))}]"


class ref:
    """``wp.ref[T]`` annotates a parameter of a ``@wp.func`` that is passed by reference. The caller's local variable,
    array element, field, component or row gets the value that the function assigned to it when the function returns::

        @wp.func
        def limit(x: wp.ref[float], most: float):
            if x > most:
                x = most

    Gradients pass. Literals, results of calls and constants are refused. ``wp.ref[T].dtype`` is ``T``.
    """

    def __class_getitem__(cls, dtype: Any) -> Reference:
        return Reference(dtype)

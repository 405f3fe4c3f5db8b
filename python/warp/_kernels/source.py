"""The Python source of kernels and functions, for tools: ``kernel.adj``, ``function.adj``.

The names are those of release 1.19, in which the object that generates code has them.
"""

from __future__ import annotations

import contextlib
import inspect
import typing
from types import FunctionType
from typing import Any, NamedTuple

from warp._weft import Kernel, UserFunction

__all__ = ["Argument", "Source"]


class Argument(NamedTuple):
    """A parameter: its name and its annotation, ``typing.Any`` if there is none."""

    label: str
    type: Any


class Source:
    """The source of a kernel or function, as Weft read it when it was declared.

    Args:
        func: the Python function.
    """

    def __init__(self, func: FunctionType):
        self.func = func
        """The Python function."""
        self.fun_name: str = func.__name__
        """Its name."""
        self.filename: str = func.__code__.co_filename
        """The file in which it stands."""
        self.fun_lineno: int = func.__code__.co_firstlineno
        """The line of its first decorator, or of its ``def``, counted from 1."""

    @property
    def source(self) -> str:
        """The text, with decorators. OSError if the file is gone and Python has not kept it."""
        return inspect.getsource(self.func)

    @property
    def source_lines(self) -> list[str]:
        """The lines of ``source``, without their ends."""
        return self.source.splitlines()

    @property
    def args(self) -> list[Argument]:
        """The parameters, in order."""
        return [Argument(name, kind) for name, kind in self.arg_types.items()]

    @property
    def arg_types(self) -> dict[str, Any]:
        """The annotations of the parameters by their names; a string only if it names something unknown."""
        code = self.func.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        annotations = inspect.get_annotations(self.func)
        return {name: _evaluated(self.func, annotations.get(name, typing.Any)) for name in names}


def _evaluated(function: FunctionType, annotation: Any) -> Any:
    """The object that an annotation names, with the globals of the function and the variables that it captured.

    Annotations are strings in modules with ``from __future__ import annotations``.
    """
    if not isinstance(annotation, str):
        return annotation
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    captured = {}
    for name, cell in cells:
        with contextlib.suppress(ValueError):  # a variable without a value
            captured[name] = cell.cell_contents
    try:
        return eval(annotation, function.__globals__, captured)
    except (NameError, AttributeError):
        return annotation


def _overloads_by_types(function: UserFunction) -> dict[str, UserFunction]:
    """The definitions of this name, by the types of their parameters: ``{"float, int": <Function f>}``."""
    return {
        ", ".join(getattr(kind, "__name__", str(kind)) for kind in one.input_types.values()): one
        for one in [*function.overloads, function]
    }


def _mangled_name(kernel: Any) -> str:
    """The kernel's name with the first digits of its hash, if it has one."""
    return f"{kernel.key}_{kernel.hash.hex()[:8]}" if kernel.hash else kernel.key


Kernel.adj = property(lambda kernel: Source(kernel.func), doc="The source of the kernel, for tools.")
Kernel.get_mangled_name = _mangled_name
UserFunction.adj = property(lambda function: Source(function.func), doc="The source of the function, for tools.")
UserFunction.user_overloads = property(_overloads_by_types, doc=_overloads_by_types.__doc__)

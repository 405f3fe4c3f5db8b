"""Names that programs import and that are not there yet: importing them works, using them is an error."""

from __future__ import annotations

import functools
from typing import Any

from warp.errors import NotImplementedYetError

__all__ = ["name_of_warp", "names_of"]

# The page that lists the missing names.
_TABLE = "docs/names.md#names-of-release-119-that-are-not-there"


def _text(name: str, subject: str) -> str:
    return f"{name}: {subject} are not there yet, see {_TABLE}"


def _class(name: str, module: str, subject: str) -> type:
    text = _text(f"{module}.{name}()", subject)

    def __init__(self, *arguments: Any, **options: Any):
        raise NotImplementedYetError(text)

    # The text of errors in kernels.
    members = {"__init__": __init__, "__module__": module, "__doc__": f"Not there yet: {subject}.", "_not_there": text}
    return type(name, (), members)


def _function(name: str, module: str, subject: str) -> Any:
    text = _text(f"{module}.{name}()", subject)

    def function(*arguments: Any, **options: Any) -> Any:
        raise NotImplementedYetError(text)

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = f"Not there yet: {subject}."
    function._not_there = text
    return function


def names_of(module: str, subject: str, classes: str, functions: str) -> dict[str, Any]:
    """Stand-ins for the names of a module: each raises UsageError (a NotImplementedError) when it is called.

    Args:
        module: its name.
        subject: the missing feature, in the plural, for the error.
        classes, functions: names, with spaces between them.
    """
    return {
        **{name: _class(name, module, subject) for name in classes.split()},
        **{name: _function(name, module, subject) for name in functions.split()},
    }


_OTHERS = {
    "dense matrices in kernels": """block_chol block_solve dense_chol dense_chol_batched dense_gemm dense_gemm_batched
        dense_solve dense_solve_batched dense_subs""",
    "graphs in files": "capture_load capture_load_from_bytes capture_save",
    "arrays of USD Fabric": "fabricarray fabricarrayarray indexedfabricarray indexedfabricarrayarray",
    "buffers of OpenGL": "RegisteredGLBuffer",
}


@functools.cache
def name_of_warp(name: str) -> Any:
    """The stand-in for ``wp.<name>`` that is not there yet; None if there never will be such a name."""
    subject = None
    for other, names in _OTHERS.items():
        if name in names.split():
            subject = other
    if subject is None:
        return None
    return (_class if name[0].isupper() or "array" in name else _function)(name, "wp", subject)

"""Names that programs import and that are not there yet: importing them works, using them is an error."""

from __future__ import annotations

from typing import Any

from warp.errors import NotThereError

__all__ = ["names_of"]


def _error(name: str, subject: str) -> Exception:
    message = f"{name}: {subject} are not there yet. help: nothing of Weft takes their place; the name can be imported"
    return NotThereError(f"{message} so that programs which do not come to use it run")


def _class(name: str, module: str, subject: str) -> type:
    def __init__(self, *arguments: Any, **options: Any):
        raise _error(f"{module}.{name}()", subject)

    members = {"__init__": __init__, "__module__": module, "__doc__": f"Not there yet: {subject}."}
    return type(name, (), members)


def _function(name: str, module: str, subject: str) -> Any:
    def function(*arguments: Any, **options: Any) -> Any:
        raise _error(f"{module}.{name}()", subject)

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = f"Not there yet: {subject}."
    return function


def names_of(module: str, subject: str, classes: str, functions: str) -> dict[str, Any]:
    """The names of a module by what they stand for: each raises UsageError (a NotImplementedError) when it is called.

    Args:
        module: its name.
        subject: what is not there, in the plural.
        classes, functions: names, with spaces between them.
    """
    return {
        **{name: _class(name, module, subject) for name in classes.split()},
        **{name: _function(name, module, subject) for name in functions.split()},
    }

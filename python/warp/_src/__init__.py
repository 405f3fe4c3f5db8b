"""Private modules of release 1.19 that programs import all the same: each of their names is found in its public place.

The first name that is asked for warns, once in a process. Nothing of Weft itself is here.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

__all__: list[str] = []

_PARTS = ("codegen", "context", "lang", "thirdparty", "types", "utils")
_warned: set[str] = set()


def warn_once(name: str, place: str) -> None:
    """One warning in a process: the private name that was asked for first, and its public place."""
    if _warned:
        return
    _warned.add(name)
    warnings.warn(
        f"{name} is private to release 1.19; {place} has it in public. Weft forwards such names.",
        DeprecationWarning,
        stacklevel=4,
    )


def forward(module: str, name: str, *places: str) -> Any:
    """The value of a name of `warp._src.<module>`, from the first of the public modules that has it."""
    if not name.startswith("__"):
        for place in places:
            value = getattr(importlib.import_module(place), name, None)
            if value is not None:
                warn_once(f"{module}.{name}", place)
                return value
    raise AttributeError(f"module {module!r} has no attribute {name!r}; it forwards to {', '.join(places)}")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Importing a library that programs may or may not have."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

__all__ = ["import_library"]

_PACKAGES = {"torch": "torch", "jax": "jax", "paddle": "paddlepaddle", "numba": "numba", "cupy": "cupy-cuda13x"}


def import_library(name: str) -> ModuleType:
    """The module of a library. Raises ModuleNotFoundError with the name of its package if it is not installed."""
    found = sys.modules.get(name)
    if found is not None:
        return found
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        message = f"{name} is not installed in this Python. help: pip install {_PACKAGES[name]}"
        raise ModuleNotFoundError(message, name=name) from None

"""Errors that Python code raises, besides those of the C++ side."""

import warnings
from typing import Any

from warp._weft import UsageError

__all__ = ["NotImplementedYetError", "WarpDeterminismError"]


class NotImplementedYetError(UsageError, NotImplementedError):
    """A name that is not there yet is used, or a kernel is called like a function."""


class WarpDeterminismError(UsageError):
    """The results of a kernel may differ from run to run although ``wp.config.deterministic`` asks for the opposite.
    Nothing raises it on the CPU: launches whose results depend on the order of threads run on one thread."""


WarpDeterminismError.__module__ = "warp"


def __getattr__(name: str) -> Any:
    if name == "NotThereError":
        text = "warp.errors.NotThereError is an earlier name of warp.errors.NotImplementedYetError"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return NotImplementedYetError
    raise AttributeError(f"module 'warp.errors' has no attribute {name!r}")

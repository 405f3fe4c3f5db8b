"""Forwards to ``warp.context`` and ``warp``; the table of modules, and hashes of kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from warp import _weft
from warp._kernels.modules import Module, modules_by_name
from warp._src import forward, warn_once

runtime = None  # what starts by itself has no object


class ModuleHasher:
    """Hashes of kernels: equal for equal text and options.

    Args:
        kernels: accepted.
        options: of the module, a dict.
    """

    def __init__(self, kernels: Sequence[Any] = (), options: dict[str, Any] | None = None):
        self._options = dict(options or {})

    def hash_kernel(self, kernel: Any) -> bytes:
        """32 bytes that tell what the kernel is: its key, its text and what it captures, and the options."""
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

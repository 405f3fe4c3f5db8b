"""Forwards to ``warp.types`` and ``warp``."""

from __future__ import annotations

from typing import Any

from warp._src import forward


def __getattr__(name: str) -> Any:
    return forward(__name__, name, "warp.types", "warp")

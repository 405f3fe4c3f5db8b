"""Forwards to ``warp.types``, ``warp`` and ``typing``."""

from __future__ import annotations

from typing import Any

from warp._src import forward


class Vector:
    """For annotations alone: ``Vector[Any, Int]``."""

    def __class_getitem__(cls, item: Any) -> type:
        return cls


def __getattr__(name: str) -> Any:
    return forward(__name__, name, "warp.types", "warp", "typing")

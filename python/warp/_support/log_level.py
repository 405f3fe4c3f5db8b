"""How much Weft says about its own work, for a part of a program."""

from __future__ import annotations

from warp import config

__all__ = ["ScopedLogLevel"]


class ScopedLogLevel:
    """Another ``wp.config.log_level`` inside a ``with`` block.

    Args:
        log_level: ``wp.LOG_DEBUG``, ``wp.LOG_INFO``, ``wp.LOG_WARNING`` or ``wp.LOG_ERROR``.
    """

    def __init__(self, log_level: int):
        self.log_level = log_level
        self._outer: list[int] = []

    def __enter__(self) -> ScopedLogLevel:
        self._outer.append(config.log_level)
        config.log_level = self.log_level
        return self

    def __exit__(self, *error) -> None:
        config.log_level = self._outer.pop()

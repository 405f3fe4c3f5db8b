"""The logger of Weft's messages about its own work: one of the program's own, or the one below.

    class Kept:
        def debug(self, message): ...
        def info(self, message): ...
        def warning(self, message, category=None, stacklevel=1): ...
        def error(self, message): ...

    wp.set_logger(Kept())

Errors of the API are exceptions and go to no logger.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Protocol, runtime_checkable

from warp._weft import log_level as _log_level
from warp._weft import usage_error as _usage_error

__all__ = ["Logger", "ScopedLogger", "get_logger", "set_logger"]


@runtime_checkable
class Logger(Protocol):
    """The argument of ``wp.set_logger``: an object with these four methods."""

    def debug(self, message: str) -> None:
        """Takes messages that only help to find a mistake, or lost time."""

    def info(self, message: str) -> None:
        """Takes messages about normal work."""

    def warning(self, message: str, category: type[Warning] | None = None, stacklevel: int = 1) -> None:
        """Takes warnings of uses that work but are hardly meant. ``category`` is a class of warnings, UserWarning if
        None; ``stacklevel`` counts calls up to the line that is meant, as ``warnings.warn`` does."""

    def error(self, message: str) -> None:
        """Takes messages about failures."""


def _write(stream: Any, text: str) -> None:
    if stream is not None:  # a process without a console
        print(text, file=stream)


class DefaultLogger:
    """Writes debug and info to ``sys.stdout``, errors to ``sys.stderr``, and warnings that Python's filters let through
    as well. It has no level: ``wp.config.log_level`` decides before anything is written down."""

    def debug(self, message: str) -> None:
        _write(sys.stdout, message)

    def info(self, message: str) -> None:
        _write(sys.stdout, message)

    def warning(self, message: str, category: type[Warning] | None = None, stacklevel: int = 1) -> None:
        kind = UserWarning if category is None else category
        try:
            frame = sys._getframe(stacklevel)
            place, line = frame.f_code.co_filename, frame.f_lineno
        except ValueError:  # fewer callers than that
            place, line = "<unknown>", 1
        with warnings.catch_warnings(record=True) as passed:
            warnings.warn_explicit(message, kind, place, line, registry={})
        if passed:
            _write(sys.stderr, f"Warp {kind.__name__}: {message}")

    def error(self, message: str) -> None:
        _write(sys.stderr, f"Warp Error: {message}")


_default = DefaultLogger()
_current: Logger = _default


def _checked(logger: Any, api: str) -> Logger:
    if logger is None:
        return _default
    missing = [name for name in ("debug", "info", "warning", "error") if not callable(getattr(logger, name, None))]
    if missing:
        message = f"the logger is {logger!r}, which has no method {' and no '.join(missing)}; expected an object with "
        message += "debug(message), info(message), warning(message, category=None, stacklevel=1), error(message)"
        raise _usage_error(f"{api}: {message}", TypeError)
    return logger


def get_logger() -> Logger:
    """The logger in use: the one that ``wp.set_logger`` was given last, or the default one."""
    return _current


def set_logger(logger: Logger | None) -> None:
    """Makes an object the logger of Weft's messages; None is the default logger.

    Args:
        logger: has the four methods of ``wp.Logger``.
    Raises:
        UsageError (a TypeError): a method is missing.
    """
    global _current
    _current = _checked(logger, "set_logger()")


class ScopedLogger:
    """Another logger inside a ``with`` block; None is the default one. ``logger`` is the one given.

    Raises:
        UsageError (a TypeError): a method of ``wp.Logger`` is missing.
    """

    def __init__(self, logger: Logger | None):
        _checked(logger, "ScopedLogger()")
        self.logger = logger
        self._outer: list[Logger] = []

    def __enter__(self) -> ScopedLogger:
        self._outer.append(_current)
        set_logger(self.logger)
        return self

    def __exit__(self, *error) -> None:
        set_logger(self._outer.pop())


def _say(level: str, message: str) -> None:
    """A message of machine code: the name of a method of the logger, and a line."""
    getattr(_current, level)(message)


def log_warning(message: str, category: type[Warning] | None = None, stacklevel: int = 1) -> None:
    """Gives a warning to the logger if ``wp.config.log_level`` lets it through."""
    if _log_level() <= 30:
        _current.warning(message, category, stacklevel + 1)

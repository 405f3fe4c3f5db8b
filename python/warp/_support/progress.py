"""One line that tells of long work, rewritten in place: kernels that are compiled, frames of an example.

It appears after ``DELAY`` seconds, on a terminal and in notebooks, on standard error, and goes when the work is done.
``wp.config.quiet`` turns it off. The package tqdm draws it if it is installed.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

DELAY = 2.0
"""Seconds before anything is shown."""


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def is_wanted() -> bool:
    """Whether a person looks at standard error and has not asked for quiet."""
    from warp import config

    return not config.quiet and (sys.stderr.isatty() or _is_notebook())


class _PlainLine:
    """The line without tqdm."""

    def __init__(self) -> None:
        self.width = 0

    def show(self, text: str) -> None:
        self.width = max(self.width, len(text))
        print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(f"\r{'':<{self.width}}\r", end="", file=sys.stderr, flush=True)


class _TqdmLine:
    """The line drawn by tqdm, as a widget in notebooks."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar(bar_format="{desc}", leave=False, file=sys.stderr)

    def show(self, text: str) -> None:
        self.bar.set_description_str(text)

    def close(self) -> None:
        self.bar.close()


def _make_line() -> _PlainLine | _TqdmLine:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _PlainLine()
    return _TqdmLine(tqdm)


class ProgressLine:
    """Tells how far work has come. A context manager; ``show`` may be called as often as one likes.

    Args:
        began: seconds of ``time.monotonic()`` at which the work began; None for now.
    """

    def __init__(self, began: float | None = None) -> None:
        self.began = time.monotonic() if began is None else began
        self._wanted = is_wanted()
        self._line: _PlainLine | _TqdmLine | None = None
        self._shown_at = 0.0

    def show(self, text: str) -> None:
        """Shows the text and the seconds since the work began, at most five times a second."""
        now = time.monotonic()
        if not self._wanted or now - self.began < DELAY or now - self._shown_at < 0.2:
            return
        self._shown_at = now
        self._line = self._line or _make_line()
        self._line.show(f"{text}: {now - self.began:.0f} s")

    def close(self) -> None:
        """Removes the line."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_compilations: dict[str, ProgressLine] = {}


def compiling(kernel: str, seconds: float) -> None:
    """A launch waits for this kernel's compiler. Called again and again meanwhile.

    Nothing is shown of other threads than the main one: those that load many kernels have a line for all.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    line = _compilations.get(kernel)
    if line is None:
        line = _compilations[kernel] = ProgressLine(time.monotonic() - seconds)
    line.show(f"compiling kernel {kernel}")


def compiled(kernel: str) -> None:
    """The compilation has ended, with or without an error."""
    line = _compilations.pop(kernel, None)
    if line is not None:
        line.close()

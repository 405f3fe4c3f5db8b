"""The memory of arrays on each device: ``wp.ScopedMemoryTracker``, ``wp.print_memory_report``.

Memory that kernels and libraries use for themselves is no part of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from warp import _weft
from warp._weft import usage_error as _usage_error

__all__ = ["ScopedMemoryTracker", "place", "print_memory_report", "track_program"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SORTS = ("size", "time")
# Those that are entered, the innermost last; the one of wp.config.track_memory is before them.
_trackers: list[ScopedMemoryTracker] = []
_program: ScopedMemoryTracker | None = None


def place() -> str:
    """The innermost line of the program that is running, outside of this package: ``<file>:12 : advance()``."""
    frame: Any = sys._getframe(0)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return ""
    name = frame.f_code.co_name
    function = "" if name == "<module>" else f" : {name}()"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}{function}"


def _size(count: int) -> str:
    """``400 B``, ``1.56 KB``, ``3.00 GB``: in powers of 1024."""
    if count < 1024:
        return f"{count} B"
    exponent = min((count.bit_length() - 1) // 10, 4)
    return f"{count / 1024**exponent:.2f} {('KB', 'MB', 'GB', 'TB')[exponent - 1]}"


class ScopedMemoryTracker:
    """Keeps track of the memory of arrays that is allocated in a ``with`` block, and reports it at the end.

        with wp.ScopedMemoryTracker("setup"):
            a = wp.zeros(1000)

    For each device the report has the number of allocations and their bytes, the most bytes at a time, and the arrays
    that are still there, with the lines that made them. Trackers may nest; the outer one sees the inner one's arrays.

    Args:
        name: stands in the report.
        active: False tracks nothing.
        print: False reports nothing at the end.
        report_func: called with the text of the report at the end, in place of printing it.
    """

    def __init__(
        self,
        name: str = "root",
        active: bool = True,
        print: bool = True,
        report_func: Callable[[str], None] | None = None,
    ):
        self.name = name
        self.active = active
        self.print = print
        self.report_func = report_func
        self._watch: Any = None

    def __enter__(self) -> ScopedMemoryTracker:
        if self.active:
            self._watch = _weft.memory.MemoryWatch()
            _trackers.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        if not self.active:
            return
        self._watch.stop()
        _trackers.remove(self)
        if self.report_func is not None:
            self.report_func(self.report())
        elif self.print:
            sys.stdout.write(self.report() + "\n")

    def clear(self) -> None:
        """Forgets everything, as if the block began here."""
        if self._watch is not None:
            self._watch.clear()

    def report(self, sort: str = "size", max_items: int = 10) -> str:
        """The report as text, during the block or after it.

        Args:
            sort: "size", the largest arrays first, or "time", the oldest.
            max_items: the most arrays of a device that are listed.
        Raises:
            UsageError (a RuntimeError): the block has not begun; (a ValueError): ``sort`` is neither.
        """
        if sort not in _SORTS:
            raise _usage_error(f"report(): sort is {sort!r}, expected 'size' or 'time'", ValueError)
        if self._watch is None:
            message = f"report(): the tracker {self.name!r} has tracked nothing. help: with wp.ScopedMemoryTracker():"
            raise _usage_error(message, RuntimeError)
        uses, live = self._watch.state()
        return _report(self.name, uses, live, sort, max_items)


def _report(name: str, uses: dict, live: list, sort: str, max_items: int) -> str:
    lines = [f"Memory of arrays ({name})"]
    for device, (allocations, total, most, now) in uses.items():
        pieces = [piece for piece in live if piece[0] == device]
        if sort == "size":
            pieces.sort(key=lambda piece: -piece[1])
        lines.append(f"  {device}: {allocations} allocations of {_size(total)}, at most {_size(most)} at a time")
        lines.append(f"    there now: {len(pieces)} of {_size(now)}")
        for _, size, what, where in pieces[:max_items]:
            lines.append(f"      {_size(size)} : {what}" + (f" : {where}" if where else ""))
        if len(pieces) > max_items:
            lines.append(f"      and {len(pieces) - max_items} more")
    if not uses:
        lines.append("  nothing was allocated")
    return "\n".join(lines)


def track_program(is_on: bool) -> None:
    """``wp.config.track_memory``."""
    global _program
    if is_on:
        _program = ScopedMemoryTracker("program", print=False)
        _program.__enter__()
        _trackers.remove(_program)
    elif _program is not None:
        _program._watch.stop()
        _program = None


def print_memory_report(file: TextIO | None = None, sort: str = "size", max_items: int = 10) -> None:
    """Prints the memory of arrays on each device: that of the innermost ``wp.ScopedMemoryTracker`` that is entered, or
    all since ``wp.config.track_memory`` was set.

    Args:
        file: receives the text; ``sys.stdout`` if it is None.
        sort: "size", the largest arrays first, or "time", the oldest.
        max_items: the most arrays of a device that are listed.
    Raises:
        UsageError (a RuntimeError): nothing is tracked; (a ValueError): ``sort`` is neither.
    """
    tracker = _trackers[-1] if _trackers else _program
    if tracker is None:
        message = "print_memory_report(): no memory is tracked. help: wp.config.track_memory = True before the arrays "
        raise _usage_error(message + "are made, or wp.ScopedMemoryTracker", RuntimeError)
    (file or sys.stdout).write(tracker.report(sort, max_items) + "\n")

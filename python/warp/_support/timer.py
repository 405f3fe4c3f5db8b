"""Timing of blocks of Python code."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import warp._weft as _weft
from warp.constants import TIMING_ALL

__all__ = [
    "ScopedTimer",
    "TimingResult",
    "timing_begin",
    "timing_end",
    "timing_print",
]


@dataclass
class TimingResult:
    """An activity of a CUDA device: where, what, of which kind, and its milliseconds."""

    device: object
    name: str
    filter: int
    elapsed: float


def timing_begin(cuda_filter: int = TIMING_ALL, synchronize: bool = True) -> None:
    """Begins to time activities of CUDA devices; there are none on the CPU."""


def timing_end(synchronize: bool = True) -> list[TimingResult]:
    """Ends timing: the activities of CUDA devices since it began, none on the CPU."""
    return []


def timing_print(results: list[TimingResult], indent: str = "") -> None:
    """Gives a line for each activity to the logger."""
    from warp._logger import get_logger

    for result in results:
        get_logger().info(f"{indent}{result.name} took {result.elapsed:.2f} ms on {result.device}")
    if not results:
        get_logger().info(f"{indent}No activity")


class ScopedTimer:
    """Measures the wall-clock time of a ``with`` block.

        with wp.ScopedTimer("step"):
            wp.launch(...)

    Args:
        name: printed with the time; nested timers are indented below their parents.
        active: False measures and prints nothing.
        print: False measures without printing.
        dict: a dictionary to whose list ``dict[name]`` the milliseconds are appended.
        synchronize: waits for the devices before each reading of the clock.
        detailed: also profiles the Python code and prints the 20 costliest functions.
        report_func: called with the list of timings of CUDA devices (empty on the CPU) and the indentation.
        skip_tape: a tape that records makes a group of what is launched inside, of the timer's name; True: it does not.
        use_nvtx, color, cuda_filter: shape profiles of CUDA devices; no use on the CPU.

    After the block, ``elapsed`` holds the milliseconds and ``timing_results`` the activities of CUDA devices (none on
    the CPU). What is printed goes to the logger of ``wp.set_logger``.
    """

    enabled = True
    """Set on the class: False makes every timer that is made afterwards do nothing."""
    _depth = -1

    def __init__(
        self,
        name: str,
        active: bool = True,
        print: bool = True,
        detailed: bool = False,
        dict: dict | None = None,
        use_nvtx: bool = False,
        color: str | int = "rapids",
        synchronize: bool = False,
        cuda_filter: int = 0,
        report_func=None,
        skip_tape: bool = False,
    ):
        self.name = name
        self.active = active and ScopedTimer.enabled
        self.print = print
        self.detailed = detailed
        self.dict = dict
        self.synchronize = synchronize
        self.report_func = report_func
        self.skip_tape = skip_tape
        self.elapsed = 0.0
        self.timing_results: list = []
        self._profile = None
        self._tape: Any = None

    def __enter__(self) -> ScopedTimer:
        if self.active:
            self._wait()
            ScopedTimer._depth += 1
            if self.detailed:
                import cProfile

                self._profile = cProfile.Profile()
                self._profile.enable()
            if not self.skip_tape:
                self._tape = _weft.active_tape()
                if self._tape is not None:
                    self._tape.record_scope_begin(self.name)
            self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *error) -> None:
        if not self.active:
            return
        self._wait()
        self.elapsed = (time.perf_counter_ns() - self._start) / 1e6
        if self._tape is not None:
            self._tape._end_of_timer()
        indent = "    " * ScopedTimer._depth
        ScopedTimer._depth -= 1
        if self._profile is not None:
            import pstats

            self._profile.disable()
            pstats.Stats(self._profile).sort_stats("cumtime").print_stats(20)
        if self.dict is not None:
            self.dict.setdefault(self.name, []).append(self.elapsed)
        if self.report_func is not None:
            self.report_func(self.timing_results, indent)
        elif self.print:
            from warp._logger import get_logger

            get_logger().info(f"{indent}{self.name} took {self.elapsed:.2f} ms")

    def _wait(self) -> None:
        if self.synchronize:
            from warp._devices.devices import synchronize

            synchronize()

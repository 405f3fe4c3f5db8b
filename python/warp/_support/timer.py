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
    """A piece of work of a device: the device, its name, its kind, and its milliseconds."""

    device: object
    name: str
    filter: int
    elapsed: float


def timing_begin(cuda_filter: int = TIMING_ALL, synchronize: bool = True) -> None:
    """Begins to time each launch, copy, fill and launch of a graph by itself.

    On CUDA devices a piece of work is put between two events of its stream, which takes some microseconds. On the CPU
    it is put between two readings of the clock, and the nodes of a graph are listed behind the graph. Timings may nest.

    Args:
        cuda_filter: which activities: ``wp.TIMING_KERNEL`` (of the program), ``wp.TIMING_KERNEL_BUILTIN`` (of Weft),
            ``wp.TIMING_MEMCPY``, ``wp.TIMING_MEMSET``, ``wp.TIMING_GRAPH``, or several of them by ``|``.
        synchronize: whether to wait for the devices first.
    """
    if synchronize:
        _weft.synchronize()
    _weft.streams.begin_timing(int(cuda_filter) & TIMING_ALL)


def timing_end(synchronize: bool = True) -> list[TimingResult]:
    """Ends timing: the work of devices since it began, in the order in which it was asked for.

    Args:
        synchronize: whether to wait for the devices; without it only the timed activities are waited for.
    Raises:
        UsageError (a RuntimeError): nothing was begun.
    """
    if synchronize:
        _weft.synchronize()
    return [TimingResult(*activity) for activity in _weft.streams.end_timing()]


def timing_print(results: list[TimingResult], indent: str = "") -> None:
    """Gives a line for each activity to the logger, with its time in milliseconds.

    Args:
        results: the activities, from ``wp.timing_end``.
        indent: text in front of each line.
    """
    from warp._logger import get_logger

    for result in results:
        get_logger().info(f"{indent}{result.name} took {result.elapsed:.3f} ms on {result.device}")
    if not results:
        get_logger().info(f"{indent}No activity")


def _nvtx() -> Any:
    """The package that names ranges of time for NVIDIA's profilers."""
    try:
        import nvtx
    except ImportError:
        message = "ScopedTimer(): use_nvtx needs the package nvtx, which is not installed. help: pip install nvtx"
        raise _weft.usage_error(message, RuntimeError) from None
    return nvtx


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
        report_func: called with the list of timed pieces of work and the indentation, in place of printing.
        skip_tape: a tape that records makes a group of the launches inside, of the timer's name; True: it does not.
        cuda_filter: which work of devices, the CPU included, is timed piece by piece, as in ``wp.timing_begin``; 0 for
            none.
        use_nvtx, color: makes a range of this name and color for NVIDIA's profilers, by the package ``nvtx``.

    After the block, ``elapsed`` holds the milliseconds and ``timing_results`` the timed pieces of work. Printed text
    goes to the logger of ``wp.set_logger``.

    Raises:
        UsageError (a RuntimeError): ``use_nvtx``, and the package is not there.
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
        self.cuda_filter = cuda_filter
        self.color = color
        self._nvtx = _nvtx() if use_nvtx and self.active else None
        self._range: Any = None
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
            if self._nvtx is not None:
                self._range = self._nvtx.start_range(self.name, color=self.color)
            if self.cuda_filter:
                timing_begin(self.cuda_filter, synchronize=False)
            self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *error) -> None:
        if not self.active:
            return
        self._wait()
        self.elapsed = (time.perf_counter_ns() - self._start) / 1e6
        if self._nvtx is not None:
            self._nvtx.end_range(self._range)
        if self.cuda_filter:
            self.timing_results = timing_end(synchronize=False)
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

            if self.cuda_filter:
                timing_print(self.timing_results, indent)
            get_logger().info(f"{indent}{self.name} took {self.elapsed:.2f} ms")

    def _wait(self) -> None:
        if self.synchronize:
            from warp._devices.devices import synchronize

            synchronize()

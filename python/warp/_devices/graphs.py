"""Graphs: work that is captured once and run again and again, without Python."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from warp._devices.enums import CaptureMode
from warp._devices.streams import ScopedStream, Stream, set_stream
from warp._logger import log_warning as _log_warning
from warp._weft import Graph, array, get_device
from warp._weft import graphs as _graphs
from warp._weft import usage_error as _usage_error

__all__ = [
    "Graph",
    "ScopedCapture",
    "capture_begin",
    "capture_debug_dot_print",
    "capture_end",
    "capture_if",
    "capture_launch",
    "capture_while",
]


def _refuse(apic: bool, api: str) -> None:
    if apic:
        raise _usage_error(f"{api}: apic=True is not there: graphs cannot be stored in files", NotImplementedError)


class _EndOfThread:
    """Kept by a thread that captures, until Python's part of the thread ends. An open capture is discarded then, since
    a driver lets no other thread end it."""

    def __init__(self, thread: threading.Thread):
        self.name, self.number = thread.name, threading.get_ident()

    def __del__(self) -> None:
        if sys.is_finalizing() or threading.get_ident() != self.number:
            return
        for alias in _graphs.end_of_thread():
            _log_warning(
                f"the thread {self.name!r} has ended without capture_end(): its capture from a stream of "
                f"{alias!r} is thrown away, and the stream can be used again. help: wp.ScopedCapture(), which ends the "
                "capture in any case"
            )


_of_thread = threading.local()


def _begin(device: Any, stream: Stream | None, mode: CaptureMode, external: bool) -> None:
    thread = threading.current_thread()
    # Of a thread that Python has not made only single calls are known, no end; the main thread ends with the process.
    is_made_by_python = not isinstance(thread, threading._DummyThread) and thread is not threading.main_thread()
    if is_made_by_python and not hasattr(_of_thread, "end"):
        _of_thread.end = _EndOfThread(thread)
    arguments = (int(mode), external, thread.name)
    try:
        _graphs.begin(device, stream, *arguments)
    except RuntimeError:
        # On the CPU each thread may capture the default stream: from the second one on, another one in its place.
        named = get_device(device).stream if stream is None else stream
        if external or not named.device.is_cpu:
            raise
        if not _graphs.is_default_captured_elsewhere(named):  # the other capture may have ended meanwhile
            _graphs.begin(device, stream, *arguments)
            return
        own = Stream(named.device)
        _graphs.begin(None, own, *arguments)
        _substitutes()[named.device] = (own, named)
        set_stream(own)


def _substitutes() -> dict[Any, tuple[Stream, Stream]]:
    """By device, the streams of this thread that are captured in the place of others, and these."""
    if not hasattr(_of_thread, "substitutes"):
        _of_thread.substitutes = {}
    return _of_thread.substitutes


def _end(finish: Callable, device: Any, stream: Stream | None) -> Graph | None:
    """``finish(device, stream)`` with the stream that is captured."""
    named = get_device(device).stream if stream is None else stream
    own, former = _substitutes().get(named.device, (None, None))
    if own is None or named not in (own, former):
        return finish(device, stream)
    try:
        return finish(None, own)
    finally:
        if not own.is_capturing:
            del _substitutes()[named.device]
            set_stream(former)


def capture_begin(
    device: Any = None,
    stream: Stream | None = None,
    force_module_load: bool | None = None,
    external: bool = False,
    apic: bool = False,
    capture_mode: CaptureMode = CaptureMode.THREAD_LOCAL,
) -> None:
    """Begins to capture: work that this thread puts into a stream from now on is not run, but becomes a graph.

    The graph holds launches, ``wp.copy``, ``zero_``, ``fill_``, ``assign`` with host data as it is now, sorts, scans,
    sums with ``out=``, products, builds of hash grids, refits, graphs inside of graphs, and arrays that are made
    meanwhile. Operations that need numbers at once, as ``numpy()`` does, are errors. Other threads go on as before, and
    on the CPU they may capture meanwhile: each has a graph of its own work. The thread that begins a capture has to end
    it. If the thread exits with the capture open, the captured work is discarded, with a warning.

    Args:
        device: whose current stream is captured; the default device if None.
        stream: a stream in place of that.
        force_module_load: has no effect: kernels are compiled when they are captured.
        external: another library has begun a capture of the CUDA stream, and ends it. Its graph has Weft's work too,
            and keeps the memory that the work uses. capture_end() gives None then.
        capture_mode: on CUDA devices, which calls of the driver by other threads end the capture.
    Raises:
        UsageError (a RuntimeError): the stream is being captured already; with external=True, it is not being captured;
            ``wp.config.verify_cuda`` is on, for a CUDA device.
    """
    _refuse(apic, "capture_begin()")
    _begin(device, stream, capture_mode, external)


def capture_end(device: Any = None, stream: Stream | None = None) -> Graph | None:
    """Ends a capture, and returns its graph. The arrays that the graph uses live at least as long.

    Args:
        device: whose current stream is captured; the default device if None.
        stream: the captured stream, in place of that.
    Returns:
        The graph; None for a capture of another library.
    Raises:
        UsageError (a RuntimeError): nothing is being captured there, or an operation inside has ended the capture.
    """
    return _end(_graphs.end, device, stream)


class ScopedCapture:
    """Captures the work of a ``with`` block; ``graph`` is the graph afterwards. An exception inside ends the capture.

    The arguments are those of :func:`capture_begin`.
    """

    def __init__(
        self,
        device: Any = None,
        stream: Stream | None = None,
        force_module_load: bool | None = None,
        external: bool = False,
        apic: bool = False,
        capture_mode: CaptureMode = CaptureMode.THREAD_LOCAL,
    ):
        _refuse(apic, "ScopedCapture()")
        self.device = get_device(device) if stream is None else stream.device
        self.stream = stream
        self.external, self.capture_mode = external, capture_mode
        self.graph: Graph | None = None

    def __enter__(self) -> ScopedCapture:
        self.stream = self.device.stream if self.stream is None else self.stream
        _begin(None, self.stream, self.capture_mode, self.external)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.graph = _end(_graphs.end, None, self.stream)
        else:
            _end(lambda _, stream: _graphs.drop(stream), None, self.stream)


def _expect_graph(graph: Any, api: str) -> None:
    if not isinstance(graph, Graph):
        raise _usage_error(f"{api}: expected a wp.Graph, got {graph!r}", TypeError)


def capture_launch(graph: Graph, stream: Stream | None = None) -> None:
    """Runs a graph, in one call. Inside of a capture it becomes part of the new graph.

    Args:
        graph: the result of :func:`capture_end`.
        stream: a stream of the graph's device; the current one if None.
    Raises:
        UsageError (a TypeError): it is no graph; (a RuntimeError): the stream is of another device, or a tape is
            recording, which cannot know the graph's operations. Errors of the graph's kernels are raised too, on
            CUDA devices by the next wait.
    """
    _expect_graph(graph, "capture_launch()")
    _graphs.launch(graph, stream)


def capture_debug_dot_print(graph: Graph, path: str, verbose: bool = True) -> None:
    """Writes a graph as a DOT file, for Graphviz: a node for each piece of work, with the names of kernels.

    Args:
        verbose: with the sizes of launches.
    """
    _expect_graph(graph, "capture_debug_dot_print()")
    Path(path).write_text(_graphs.dot(graph, verbose))


def _condition(value: Any, api: str) -> Callable[[], bool]:
    """Reads element 0 of the condition each time it is called."""
    from warp.types import int32  # found when first asked for

    if not isinstance(value, array) or value.dtype is not int32 or value.size < 1:
        found = f"an array of {value.dtype.__name__}" if isinstance(value, array) else repr(value)
        raise _usage_error(f"{api}: the condition is {found}, expected an array of int32 with an element", TypeError)
    return lambda: bool(np.asarray(value.numpy()).flat[0])


def _body(body: Any, name: str, api: str, kwargs: dict) -> Callable:
    """The code of a branch: a Python function, or a graph."""
    if isinstance(body, Graph):
        return lambda: capture_launch(body)
    if not callable(body):
        raise _usage_error(f"{api}: {name} is {body!r}, expected a function or a graph", TypeError)
    return lambda: body(**kwargs)


def _branches(condition: array, repeats: bool, bodies: list) -> list[Graph | None]:
    """The two bodies of a condition as graphs: first that for a condition which holds."""
    graphs: list[Graph | None] = []
    _graphs.begin_condition(condition, repeats, *(body is not None for body in bodies))
    try:
        for body, on_true in zip(bodies, (True, False), strict=True):
            if body is None:
                graphs.append(None)
                continue
            _graphs.begin_branch(condition, on_true)
            try:
                body()
            finally:
                graph = _graphs.end_branch(condition)
            graphs.append(graph)
    finally:
        _graphs.end_condition(condition, len(graphs) == len(bodies))
    return graphs


def capture_if(
    condition: Any,
    on_true: Callable | Graph | None = None,
    on_false: Callable | Graph | None = None,
    stream: Stream | None = None,
    **kwargs: Any,
) -> None:
    """Does one of two things, by element 0 of an array: at once, or, inside of a capture, whenever the graph runs.

    Args:
        condition: an array of int32; not zero means true.
        on_true, on_false: functions, or graphs, or None for nothing to do. Inside of a capture both functions are
            called, and their work is captured.
        stream: the current one if None.
        kwargs: arguments of the functions.
    Raises:
        UsageError (a TypeError): the condition is no such array, or a branch is neither function nor graph.
    """
    api = "capture_if()"
    holds = _condition(condition, api)
    bodies = [(on_true, "on_true"), (on_false, "on_false")]
    branches = [None if body is None else _body(body, name, api, kwargs) for body, name in bodies]
    with ScopedStream(stream, sync_enter=False):
        if _graphs.captures_condition(condition, stream, api):
            _graphs.add_if(condition, *_branches(condition, False, branches))
            return
        chosen = branches[0] if holds() else branches[1]
        if chosen is not None:
            chosen()


def capture_while(condition: Any, while_body: Callable | Graph, stream: Stream | None = None, **kwargs: Any) -> None:
    """Repeats a body while element 0 of an array is not zero: at once, or, inside of a capture, whenever the graph
    runs.

    Args:
        condition: an array of int32, which the body changes.
        while_body: a function, or a graph.
        stream: the current one if None.
        kwargs: arguments of the function.
    Raises:
        UsageError (a TypeError): the condition is no such array, or the body is neither function nor graph.
    """
    api = "capture_while()"
    holds = _condition(condition, api)
    body = _body(while_body, "while_body", api, kwargs)
    with ScopedStream(stream, sync_enter=False):
        if _graphs.captures_condition(condition, stream, api):
            repeated, _ = _branches(condition, True, [body, None])
            _graphs.add_while(condition, repeated)
            return
        while holds():
            body()

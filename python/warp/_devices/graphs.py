"""Graphs of recorded work. Recording is not there yet and says so; conditions work outside of a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from warp._devices.enums import CaptureMode
from warp._weft import array
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


def _no_graphs(api: str) -> Exception:
    message = (
        f"{api}: graphs cannot be recorded yet. help: run the launches as they stand, without the capture; for many "
    )
    return _usage_error(message + "launches with the same arguments, wp.launch(..., record_cmd=True)", RuntimeError)


class Graph:
    """Recorded work, to be run again and again. Cannot be made yet: UsageError (a RuntimeError)."""

    def __init__(self, *arguments: Any, **options: Any):
        raise _no_graphs("Graph()")


class ScopedCapture:
    """Records what a ``with`` block does as a graph. Not there yet: entering it is a UsageError (a RuntimeError)."""

    def __init__(
        self,
        device: Any = None,
        stream: Any = None,
        force_module_load: bool | None = None,
        external: bool = False,
        apic: bool = False,
        capture_mode: CaptureMode = CaptureMode.THREAD_LOCAL,
    ):
        self.graph: Graph | None = None

    def __enter__(self) -> ScopedCapture:
        raise _no_graphs("ScopedCapture()")

    def __exit__(self, *error) -> None:
        pass


def capture_begin(
    device: Any = None,
    stream: Any = None,
    force_module_load: bool | None = None,
    external: bool = False,
    apic: bool = False,
    capture_mode: CaptureMode = CaptureMode.THREAD_LOCAL,
) -> None:
    """Begins to record. Not there yet: UsageError (a RuntimeError)."""
    raise _no_graphs("capture_begin()")


def capture_end(device: Any = None, stream: Any = None) -> Graph:
    """Ends recording. Nothing is being recorded: UsageError (a RuntimeError)."""
    raise _usage_error("capture_end(): nothing is being recorded", RuntimeError)


def _expect_graph(graph: Any, api: str) -> None:
    if not isinstance(graph, Graph):
        raise _usage_error(f"{api}: expected a wp.Graph, got {graph!r}", TypeError)


def capture_launch(graph: Graph, stream: Any = None) -> None:
    """Runs a graph."""
    _expect_graph(graph, "capture_launch()")


def capture_debug_dot_print(graph: Graph, path: str, verbose: bool = True) -> None:
    """Writes a graph as a DOT file."""
    _expect_graph(graph, "capture_debug_dot_print()")


def _condition(value: Any, api: str) -> Callable[[], bool]:
    """Reads element 0 of the condition each time it is called."""
    from warp.types import int32  # found when first asked for

    if not isinstance(value, array) or value.dtype is not int32 or value.size < 1:
        found = f"an array of {value.dtype.__name__}" if isinstance(value, array) else repr(value)
        raise _usage_error(f"{api}: the condition is {found}, expected an array of int32 with an element", TypeError)
    return lambda: bool(np.asarray(value.numpy()).flat[0])


def _body(body: Any, name: str, api: str) -> Callable:
    if isinstance(body, Graph) or not callable(body):
        raise _usage_error(f"{api}: {name} is {body!r}, expected a function", TypeError)
    return body


def capture_if(
    condition: Any, on_true: Callable | None = None, on_false: Callable | None = None, stream: Any = None, **kwargs: Any
) -> None:
    """Calls one of two functions, by element 0 of an array.

    Args:
        condition: an array of int32; not zero means true.
        on_true, on_false: functions, or None for nothing to do.
        kwargs: what they are called with.
    Raises:
        UsageError (a TypeError): the condition is no such array, or a branch is no function.
    """
    api = "capture_if()"
    holds = _condition(condition, api)
    branches = [None if f is None else _body(f, n, api) for n, f in (("on_true", on_true), ("on_false", on_false))]
    chosen = branches[0] if holds() else branches[1]
    if chosen is not None:
        chosen(**kwargs)


def capture_while(condition: Any, while_body: Callable, stream: Any = None, **kwargs: Any) -> None:
    """Calls a function again and again while element 0 of an array is not zero.

    Args:
        condition: an array of int32, which the function changes.
        while_body: the function.
        kwargs: what it is called with.
    Raises:
        UsageError (a TypeError): the condition is no such array, or the body is no function.
    """
    holds = _condition(condition, "capture_while()")
    body = _body(while_body, "while_body", "capture_while()")
    while holds():
        body(**kwargs)

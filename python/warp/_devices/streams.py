"""Streams and events, which order the work of CUDA devices. The CPU does what it is told when it is told: asking for a
stream of it is an error, waiting for it returns at once."""

from __future__ import annotations

from typing import Any

from warp._weft import get_device
from warp._weft import usage_error as _usage_error

__all__ = [
    "Event",
    "ScopedStream",
    "Stream",
    "get_event_elapsed_time",
    "get_stream",
    "no_stream",
    "record_event",
    "set_stream",
    "synchronize_event",
    "synchronize_stream",
    "wait_event",
    "wait_stream",
]


def no_stream(api: str, device: Any = None) -> Exception:
    """The error for what needs a stream of a device that has none."""
    name = get_device(device).alias
    message = f"{api}: device {name!r} has no streams and events: work on it is done when the call returns. "
    return _usage_error(message + "help: leave it out where device.is_cpu", RuntimeError)


class Stream:
    """A queue of work on a CUDA device.

    Raises:
        UsageError (a RuntimeError): the device has no streams; the CPU has none.
    """

    def __init__(self, device: Any = None, **options: Any):
        raise no_stream("Stream()", device)


class Event:
    """A point in a stream of a CUDA device, to wait for and to measure from.

    Raises:
        UsageError (a RuntimeError): the device has no events; the CPU has none.
    """

    def __init__(self, device: Any = None, cuda_event: Any = None, enable_timing: bool = False, **options: Any):
        raise no_stream("Event()", device)


def _expect(value: Any, kind: type, api: str) -> None:
    if not isinstance(value, kind):
        raise _usage_error(f"{api}: expected a wp.{kind.__name__}, got {value!r}", TypeError)


def get_stream(device: Any = None) -> Stream:
    """The current stream of a CUDA device; UsageError (a RuntimeError) for the CPU."""
    raise no_stream("get_stream()", device)


def set_stream(stream: Any, device: Any = None, sync: bool = False) -> None:
    """Makes a stream the current one of a CUDA device; UsageError (a RuntimeError) for the CPU."""
    raise no_stream("set_stream()", device)


def synchronize_stream(stream_or_device: Any = None) -> None:
    """Waits until the work of a stream, or of the current stream of a device, is done. The CPU's always is."""
    get_device(stream_or_device)


def synchronize_event(event: Event) -> None:
    """Waits until a stream has come to an event."""
    _expect(event, Event, "synchronize_event()")


def record_event(event: Event | None = None, external: bool = False) -> Event:
    """Records an event in the current stream; UsageError (a RuntimeError) for the CPU."""
    raise no_stream("record_event()")


def wait_event(event: Event, external: bool = False) -> None:
    """Makes the current stream wait for an event; UsageError (a RuntimeError) for the CPU."""
    raise no_stream("wait_event()")


def wait_stream(other_stream: Stream, event: Event | None = None, external: bool = False) -> None:
    """Makes the current stream wait for another; UsageError (a RuntimeError) for the CPU."""
    raise no_stream("wait_stream()")


def get_event_elapsed_time(start_event: Event, end_event: Event, synchronize: bool = True) -> float:
    """Milliseconds between two events of one device."""
    for event in (start_event, end_event):
        _expect(event, Event, "get_event_elapsed_time()")
    raise no_stream("get_event_elapsed_time()")


class ScopedStream:
    """Makes a stream the current one inside a ``with`` block; None leaves the current one, on every device."""

    def __init__(self, stream: Stream | None, sync_enter: bool = True, sync_exit: bool = False):
        if stream is not None:
            _expect(stream, Stream, "ScopedStream()")
        self.stream = stream

    def __enter__(self) -> Stream | None:
        return self.stream

    def __exit__(self, *error) -> None:
        pass

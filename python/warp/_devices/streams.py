"""Streams and events, which order the work of devices. The CPU finishes its work before a call returns, so that its
streams have nothing to wait for; they are there so that programs with streams run on it too."""

from __future__ import annotations

from typing import Any

from warp._weft import Event, Stream, get_device
from warp._weft import open_event_ipc_handle as _open_event
from warp._weft import streams as _streams
from warp._weft import usage_error as _usage_error

__all__ = [
    "Event",
    "ScopedStream",
    "Stream",
    "event_from_ipc_handle",
    "get_event_elapsed_time",
    "get_stream",
    "no_stream",
    "record_event",
    "set_stream",
    "stream_for_others",
    "synchronize_event",
    "synchronize_stream",
    "wait_event",
    "wait_stream",
]


def no_stream(api: str, device: Any = None) -> Exception:
    """The error of functions that need a stream known to other libraries, for a device that has none such."""
    name = get_device(device).alias
    message = (
        f"{api}: device {name!r} has no streams that other libraries know: its work is done when the call returns. "
    )
    return _usage_error(message + "help: leave it out where device.is_cpu", RuntimeError)


def stream_for_others(stream_or_device: Any, api: str) -> Stream:
    """A stream, or the current one of a device, which another library may know: not the CPU's."""
    if not isinstance(stream_or_device, Stream):
        stream_or_device = get_stream(stream_or_device)
    if not stream_or_device.device.is_cuda:
        raise no_stream(api, stream_or_device.device)
    return stream_or_device


def _expect(value: Any, kind: type, api: str) -> None:
    if not isinstance(value, kind):
        raise _usage_error(f"{api}: expected a wp.{kind.__name__}, got {value!r}", TypeError)


def get_stream(device: Any = None) -> Stream:
    """The stream into which this thread puts its work for a device; the default device if None."""
    return _streams.current(device)


def set_stream(stream: Stream, device: Any = None, sync: bool = False) -> None:
    """Makes a stream the current one of its device, for this thread.

    Args:
        stream: a wp.Stream.
        device: whose it is; it has to be that of the stream.
        sync: whether the work that is to come waits for that of the stream before.
    Raises:
        UsageError (a TypeError): it is no stream; (a RuntimeError): it is of another device.
    """
    _expect(stream, Stream, "set_stream()")
    if device is not None and get_device(device) != stream.device:
        message = f"set_stream(): the stream is of {str(stream.device)!r}, not of {str(get_device(device))!r}"
        raise _usage_error(message, RuntimeError)
    if sync:
        stream.wait_stream(_streams.current(stream.device))
    _streams.set_current(stream)


def synchronize_stream(stream_or_device: Any = None) -> None:
    """Waits until the work of a stream, or of the current stream of a device, is done. The CPU's always is."""
    is_stream = isinstance(stream_or_device, Stream)
    _streams.synchronize(stream_or_device if is_stream else _streams.current(stream_or_device))


def synchronize_event(event: Event) -> None:
    """Waits until a stream has come to an event."""
    _expect(event, Event, "synchronize_event()")
    _streams.synchronize_event(event)


def record_event(event: Event | None = None, external: bool = False) -> Event:
    """Records an event, or a new one, in the current stream of its device, and gives it back.

    Args:
        external: in a capture, each launch of the graph records it, for those outside of the graph; so it can measure
            time there. Without it the event orders streams of the capture.
    Raises:
        UsageError (a RuntimeError): it is recorded by a graph, and this is the body of a condition.
    """
    if event is not None:
        _expect(event, Event, "record_event()")
    return _streams.current(None if event is None else event.device).record_event(event, external)


def event_from_ipc_handle(handle: bytes, device: Any = None) -> Event:
    """The event of another process, by the handle that its ``Event.ipc_handle()`` gave.

    Streams of both processes wait for it. The other process records it, or this one; a message of the program says that
    it is recorded, because a wait for an event that was never recorded delays nothing.

    Args:
        handle: 64 bytes.
        device: the CUDA device that both processes use; the default device if None.
    Raises:
        UsageError: the handle is none of 64 bytes (a ValueError); the device is the CPU or its driver shares no events,
            the event is of this process, or there is no such event (a RuntimeError).
    """
    return _open_event(handle, device)


def _waiting(device: Any) -> Stream:
    """The stream that waits for one of ``device``: the current one of the default device if both are CUDA devices."""
    default = get_device()
    return _streams.current(default if default.is_cuda and device.is_cuda else device)


def wait_event(event: Event, external: bool = False) -> None:
    """Makes the current stream wait for an event: that of the default device, or of the event's if one of the two is a
    CPU.

    Args:
        event: may be of another CUDA device.
        external: in a capture, each launch of the graph waits for the event as recorded at that time.
    """
    _expect(event, Event, "wait_event()")
    _waiting(event.device).wait_event(event, external)


def wait_stream(other_stream: Stream, event: Event | None = None, external: bool = False) -> None:
    """Makes the current stream wait for the work that is in another one: that of the default device, or of the other
    stream's if one of the two is a CPU.

    Args:
        other_stream: a wp.Stream, which may be of another CUDA device.
        event: recorded in ``other_stream`` for that; a new one if None.
        external: as of :func:`wait_event`.
    """
    _expect(other_stream, Stream, "wait_stream()")
    _waiting(other_stream.device).wait_stream(other_stream, event, external)


def get_event_elapsed_time(start_event: Event, end_event: Event, synchronize: bool = True) -> float:
    """Milliseconds between two events of one device, which were made with ``enable_timing=True``.

    Args:
        synchronize: whether to wait for the second one first.
    Raises:
        UsageError (a RuntimeError): an event measures no time, was not recorded, or they are of two devices.
    """
    for event in (start_event, end_event):
        _expect(event, Event, "get_event_elapsed_time()")
    return _streams.elapsed(start_event, end_event, synchronize)


class ScopedStream:
    """Makes a stream the current one inside a ``with`` block, for this thread; None leaves the current one.

    Args:
        sync_enter: whether the work inside waits for that of the stream before.
        sync_exit: whether the work behind the block waits for that inside.
    """

    def __init__(self, stream: Stream | None, sync_enter: bool = True, sync_exit: bool = False):
        if stream is not None:
            _expect(stream, Stream, "ScopedStream()")
        self.stream, self.sync_enter, self.sync_exit = stream, sync_enter, sync_exit
        self._before: list[Stream] = []  # a stack: blocks may nest

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._before.append(_streams.current(self.stream.device))
            set_stream(self.stream, sync=self.sync_enter)
        return self.stream

    def __exit__(self, *error) -> None:
        if self.stream is not None:
            set_stream(self._before.pop(), sync=self.sync_exit)

"""The parts of interoperability that need Paddle's own API; memory goes through C++ (bindings/interop/tensors)."""

from __future__ import annotations

from typing import Any

import warp._weft as _weft
from warp._devices.streams import Stream, no_stream, stream_for_others
from warp._interop.framework import Framework
from warp._interop.library import import_library
from warp._weft import Device, get_device, usage_error

__all__ = [
    "device_from_paddle",
    "device_to_paddle",
    "dtype_from_paddle",
    "dtype_is_compatible",
    "dtype_to_paddle",
    "from_capsule",
    "is_grad_enabled",
    "new_gradient",
    "require_cuda",
    "stream_from_paddle",
    "stream_to_paddle",
    "tensor_type",
    "with_gradient",
]


_FRAMEWORK = Framework("paddle", "dtype of Paddle")

# ---- called by C++ ----

tensor_type = _FRAMEWORK.tensor_type
is_grad_enabled = _FRAMEWORK.is_grad_enabled
from_capsule = _FRAMEWORK.from_capsule


def new_gradient(tensor: Any) -> Any:
    """Zeros, set as the gradient of a tensor."""
    tensor.grad = import_library("paddle").zeros_like(tensor)
    return tensor.grad


def with_gradient(tensor: Any, gradient: Any) -> Any:
    """The tensor as a leaf that requires a gradient: `gradient`, unless it is None."""
    tensor.stop_gradient = False
    if gradient is not None:
        tensor.grad_ = gradient  # `grad` would copy it
    return tensor


def require_cuda(device: str) -> None:
    """For arrays on CUDA devices: a Paddle without CUDA takes their memory and cannot do anything with it."""
    if not import_library("paddle").device.is_compiled_with_cuda():
        raise usage_error(
            f"to_paddle(): the array is on '{device}', and this Paddle has no CUDA devices. help: array.to('cpu')",
            RuntimeError,
        )


# ---- devices ----


def _place_name(place: Any) -> str | None:
    """`"cpu"`, `"gpu:0"` or another name of Paddle; None if it is no place."""
    if isinstance(place, str):
        return place.lower()
    text = str(place)  # "Place(cpu)", "Place(gpu:0)", "Place(gpu_pinned)"
    is_place = text.startswith("Place(") and type(place).__module__.startswith("paddle")
    return text.removeprefix("Place(").removesuffix(")") if is_place else None


def device_from_paddle(paddle_device: Any) -> Device:
    """The device of a place of Paddle (``paddle.CPUPlace()``, ``tensor.place``) or of its name: ``"cpu"``, ``"gpu:0"``.

    Raises:
        UsageError (a RuntimeError): it is no place, or one that is not here.
    """
    import_library("paddle")
    name = _place_name(paddle_device)
    if name in ("cpu", "gpu_pinned"):
        return get_device("cpu")
    kind, _, index = (name or "").partition(":")
    if kind == "gpu" and (index.isdecimal() or not index):
        return get_device(f"cuda:{index}" if index else "cuda")
    raise usage_error(
        f"device_from_paddle(): Weft has no device for {paddle_device!r}, expected a place, 'cpu' or 'gpu:0'",
        RuntimeError,
    )


def device_to_paddle(warp_device: Any = None) -> str:
    """The name that Paddle has for a device: ``"cpu"``, ``"gpu:0"``.

    Args:
        warp_device: a device or its name; the default device if None.
    Raises:
        UsageError (a RuntimeError): there is no such device.
    """
    found = get_device(warp_device)
    return "cpu" if found.is_cpu else f"gpu:{found.ordinal}"


# ---- types ----


def dtype_from_paddle(paddle_dtype: Any) -> type:
    """The scalar type of a dtype of Paddle: ``wp.float32`` of ``paddle.float32``.

    Raises:
        UsageError (a TypeError): it is none, or Weft has no such numbers (complex ones).
    """
    return _FRAMEWORK.scalar_type(paddle_dtype)


def dtype_to_paddle(warp_dtype: Any) -> Any:
    """The dtype of Paddle for a scalar type. Unsigned integers of 16, 32 and 64 bits become signed ones of their size,
    which Paddle has not.

    Raises:
        UsageError (a TypeError): it is no scalar type.
    """
    return _FRAMEWORK.dtype_of(warp_dtype)


def dtype_is_compatible(paddle_dtype: Any, warp_dtype: Any) -> bool:
    """Whether ``wp.from_paddle`` takes a tensor of this dtype of Paddle as an array of this dtype: the numbers are the
    same, or integers of one size, or bytes and bool. Of vectors and matrices the components count.

    Raises:
        UsageError (a TypeError): one of them is no type of numbers of Weft.
    """
    return _weft.can_stand_for(_FRAMEWORK.scalar_type(paddle_dtype), warp_dtype)


# ---- streams ----


def stream_from_paddle(stream_or_device: Any = None) -> Stream:
    """The stream of a ``paddle.device.cuda.Stream``, or the current one of a place; none is made, nothing waits.

    Raises:
        UsageError (a RuntimeError): the device has no streams; the CPU has none.
    """
    paddle = import_library("paddle")
    given = stream_or_device
    if not hasattr(given, "cuda_stream") and not hasattr(given, "stream_base"):
        place = getattr(given, "device", given)
        device = get_device() if place is None else device_from_paddle(place)
        if not device.is_cuda:
            raise no_stream("stream_from_paddle()", device)
        given = paddle.device.current_stream(device_to_paddle(device))
    given = getattr(given, "stream_base", given)  # the handle is there
    place = getattr(given, "place", None) or given.device
    return Stream(device_from_paddle(place), cuda_stream=given.cuda_stream)


def stream_to_paddle(stream_or_device: Any = None) -> Any:
    """The stream of Paddle for a stream, or for the current one of a device; none is made, nothing waits. It keeps the
    stream alive.

    Raises:
        UsageError (a RuntimeError): the device has no streams; the CPU has none. This release of Paddle takes no
            streams of others: ``paddle.device.get_stream_from_external`` is missing, or Paddle was built for the CPU.
    """
    paddle = import_library("paddle")
    api = "stream_to_paddle()"
    stream = stream_for_others(stream_or_device, api)
    take = getattr(paddle.device, "get_stream_from_external", None)
    if take is None:
        message = f"{api}: Paddle {paddle.__version__} takes no stream of another library, later releases do. "
        raise usage_error(message + "help: let Weft use one of Paddle's, by stream_from_paddle()", RuntimeError)
    place = device_to_paddle(stream.device)
    if not paddle.device.is_compiled_with_cuda():
        message = f"{api}: this Paddle was built for the CPU, and has no {place!r}. help: a build of Paddle for GPUs"
        raise usage_error(message, RuntimeError)
    made = take(stream.cuda_stream, place)
    made._weft_stream = stream  # Paddle has the handle only
    return made

"""The parts of interoperability that need PyTorch's own API; memory goes through C++ (bindings/interop/tensors)."""

from __future__ import annotations

from typing import Any

import warp._weft as _weft
from warp._devices.streams import Stream, no_stream, stream_for_others
from warp._interop.framework import Framework
from warp._interop.library import import_library
from warp._weft import Device, get_device, usage_error

__all__ = [
    "device_from_torch",
    "device_to_torch",
    "dtype_from_torch",
    "dtype_is_compatible",
    "dtype_to_torch",
    "from_capsule",
    "is_grad_enabled",
    "new_gradient",
    "new_tensor",
    "require_cuda",
    "stream_from_torch",
    "stream_to_torch",
    "tensor_type",
    "with_gradient",
]


_FRAMEWORK = Framework("torch", "torch.dtype")

# ---- called by C++ ----

tensor_type = _FRAMEWORK.tensor_type
is_grad_enabled = _FRAMEWORK.is_grad_enabled
from_capsule = _FRAMEWORK.from_capsule


def new_gradient(tensor: Any) -> Any:
    """Zeros, set as the gradient of a tensor."""
    tensor.grad = import_library("torch").zeros_like(tensor, requires_grad=False)
    return tensor.grad


def new_tensor(like: Any, shape: list[int], dtype: str) -> Any:
    """An uninitialised tensor on the device of another one."""
    return like.new_empty(shape, dtype=getattr(import_library("torch"), dtype))


def with_gradient(tensor: Any, gradient: Any) -> Any:
    """The tensor as a leaf that requires a gradient: `gradient`, unless it is None."""
    tensor.requires_grad_(True)
    if gradient is not None:
        tensor.grad = gradient
    return tensor


def require_cuda(device: str) -> None:
    """For arrays on CUDA devices: a PyTorch without CUDA takes their memory and cannot do anything with it."""
    if not import_library("torch").cuda.is_available():
        raise usage_error(
            f"to_torch(): the array is on '{device}', and this PyTorch has no CUDA devices. help: array.to('cpu')",
            RuntimeError,
        )


# ---- devices ----


def device_from_torch(torch_device: Any) -> Device:
    """The device of a ``torch.device`` or of its name, such as ``"cpu"`` or ``"cuda:0"``.

    Raises:
        UsageError (a RuntimeError): it is no device of PyTorch, or one that is not here.
    """
    torch = import_library("torch")
    try:
        device = torch.device(torch_device)
    except (RuntimeError, TypeError):
        raise usage_error(
            f"device_from_torch(): {torch_device!r} is no device of PyTorch, expected torch.device, 'cpu' or 'cuda:0'",
            RuntimeError,
        ) from None
    if device.type not in ("cpu", "cuda"):
        raise usage_error(
            f"device_from_torch(): Weft has no device for {str(device)!r}, expected 'cpu' or 'cuda:0'", RuntimeError
        )
    return get_device("cpu" if device.type == "cpu" else str(device))


def device_to_torch(warp_device: Any = None) -> str:
    """The name that PyTorch has for a device: ``"cpu"``, ``"cuda:0"``.

    Args:
        warp_device: a device or its name; the default device if None.
    Raises:
        UsageError (a RuntimeError): there is no such device.
    """
    found = get_device(warp_device)
    return "cpu" if found.is_cpu else found.alias


# ---- types ----


def dtype_from_torch(torch_dtype: Any) -> type:
    """The scalar type of a ``torch.dtype``: ``wp.float32`` of ``torch.float32``.

    Raises:
        UsageError (a TypeError): it is none, or Weft has no such numbers (complex and quantized ones).
    """
    return _FRAMEWORK.scalar_type(torch_dtype)


def dtype_to_torch(warp_dtype: Any) -> Any:
    """The ``torch.dtype`` of a scalar type. Unsigned integers of 16, 32 and 64 bits become signed ones of their size,
    since PyTorch computes little with the others.

    Raises:
        UsageError (a TypeError): it is no scalar type.
    """
    return _FRAMEWORK.dtype_of(warp_dtype)


def dtype_is_compatible(torch_dtype: Any, warp_dtype: Any) -> bool:
    """Whether ``wp.from_torch`` takes a tensor of this ``torch.dtype`` as an array of this dtype: the numbers are the
    same, or integers of one size, or bytes and bool. Of vectors and matrices the components count.

    Raises:
        UsageError (a TypeError): one of them is no type of numbers of Weft.
    """
    return _weft.can_stand_for(_FRAMEWORK.scalar_type(torch_dtype), warp_dtype)


# ---- streams ----


def stream_from_torch(stream_or_device: Any = None) -> Stream:
    """The stream of a ``torch.cuda.Stream``, or the current one of a device of PyTorch; none is made, nothing waits.

    Raises:
        UsageError (a RuntimeError): the device has no streams; the CPU has none.
    """
    torch = import_library("torch")
    given = stream_or_device
    if isinstance(given, torch.Stream) and not hasattr(given, "cuda_stream"):
        given = given.device
    if not hasattr(given, "cuda_stream"):
        device = get_device() if given is None else device_from_torch(given)
        if not device.is_cuda:
            raise no_stream("stream_from_torch()", device)
        given = torch.cuda.current_stream(str(device))
    return Stream(device_from_torch(given.device), cuda_stream=given.cuda_stream)


def stream_to_torch(stream_or_device: Any = None) -> Any:
    """The ``torch.cuda.Stream`` of a stream, or of the current one of a device; none is made, nothing waits.

    Raises:
        UsageError (a RuntimeError): the device has no streams; the CPU has none.
    """
    torch = import_library("torch")
    stream = stream_for_others(stream_or_device, "stream_to_torch()")
    made = torch.cuda.ExternalStream(stream.cuda_stream, device=torch.device(str(stream.device)))
    made.weft_stream = stream  # lives as long
    return made

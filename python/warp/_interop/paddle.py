"""What is Paddle's own way; memory goes through C++ (bindings/interop/tensors)."""

from __future__ import annotations

from typing import Any

from warp._interop.library import import_library

__all__ = ["from_capsule", "gradient_of", "tensor_type", "with_gradient"]


def tensor_type() -> type:
    return import_library("paddle").Tensor


def gradient_of(tensor: Any) -> Any:
    """The tensor's gradient, made and set where there is none yet; None where it is not ours to set (see torch.py)."""
    paddle = import_library("paddle")
    if not tensor.is_leaf or not paddle.is_grad_enabled():
        return None
    if tensor.grad is None and not tensor.stop_gradient:
        tensor.grad = paddle.zeros_like(tensor)
    return tensor.grad


def with_gradient(tensor: Any, gradient: Any) -> Any:
    """The tensor as a leaf that requires a gradient, which is `gradient` where there is one."""
    tensor.stop_gradient = False
    if gradient is not None:
        tensor.grad_ = gradient  # `grad` would copy it
    return tensor


def from_capsule(capsule: Any) -> Any:
    """For releases of Paddle without the C exchange API."""
    return import_library("paddle").utils.dlpack.from_dlpack(capsule)

"""What is PyTorch's own way; memory goes through C++ (bindings/interop/tensors)."""

from __future__ import annotations

from typing import Any

from warp._interop.library import import_library

__all__ = ["from_capsule", "gradient_of", "tensor_type", "with_gradient"]


def tensor_type() -> type:
    return import_library("torch").Tensor


def gradient_of(tensor: Any) -> Any:
    """The tensor's gradient, made and set where there is none yet; None where it is not ours to set.

    A gradient that is set inside of torch.autograd.Function or a custom operator would be added to what that returns,
    and the gradient of a tensor that was computed is none of its attributes.
    """
    torch = import_library("torch")
    if not tensor.is_leaf or not torch.is_grad_enabled():
        return None
    if tensor.grad is None and tensor.requires_grad:
        tensor.grad = torch.zeros_like(tensor, requires_grad=False)
    return tensor.grad


def with_gradient(tensor: Any, gradient: Any) -> Any:
    """The tensor as a leaf that requires a gradient, which is `gradient` where there is one."""
    tensor.requires_grad_(True)
    if gradient is not None:
        tensor.grad = gradient
    return tensor


def from_capsule(capsule: Any) -> Any:
    """For releases of PyTorch without the C exchange API."""
    return import_library("torch").utils.dlpack.from_dlpack(capsule)

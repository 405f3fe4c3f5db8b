"""What is Paddle's own way, for `from_paddle` and `to_paddle`: the memory goes through C++ (bindings/interop/tensors)."""

from __future__ import annotations

from typing import Any

from warp._interop.library import import_library

__all__ = ["gradient_of", "tensor_type", "with_gradient"]


def tensor_type() -> type:
    return import_library("paddle").Tensor

"""Arrays and tensors of PyTorch, by the module's name of earlier releases: ``import warp.torch``.

It can be imported without PyTorch.
"""

from warp._interop.torch import (
    device_from_torch,
    device_to_torch,
    dtype_from_torch,
    dtype_is_compatible,
    dtype_to_torch,
    stream_from_torch,
    stream_to_torch,
)
from warp._weft import from_torch, to_torch

__all__ = [
    "device_from_torch",
    "device_to_torch",
    "dtype_from_torch",
    "dtype_is_compatible",
    "dtype_to_torch",
    "from_torch",
    "stream_from_torch",
    "stream_to_torch",
    "to_torch",
]

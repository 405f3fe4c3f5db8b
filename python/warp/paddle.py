"""Arrays and tensors of Paddle, by the module's name of earlier releases: ``import warp.paddle``.

It can be imported without Paddle.
"""

from warp._interop.paddle import (
    device_from_paddle,
    device_to_paddle,
    dtype_from_paddle,
    dtype_is_compatible,
    dtype_to_paddle,
    stream_from_paddle,
    stream_to_paddle,
)
from warp._weft import from_paddle, to_paddle

__all__ = [
    "device_from_paddle",
    "device_to_paddle",
    "dtype_from_paddle",
    "dtype_is_compatible",
    "dtype_to_paddle",
    "from_paddle",
    "stream_from_paddle",
    "stream_to_paddle",
    "to_paddle",
]

"""JAX: arrays in place, devices and dtypes. The names are those of the module `warp` too.

JAX itself is imported when one of them is first used.
"""

from warp._interop.jax_arrays import (
    device_from_jax,
    device_to_jax,
    dtype_from_jax,
    dtype_to_jax,
    from_jax,
    to_jax,
)
from warp._interop.jax_callables import jax_callable
from warp._interop.jax_kernels import jax_kernel

__all__ = [
    "device_from_jax",
    "device_to_jax",
    "dtype_from_jax",
    "dtype_to_jax",
    "from_jax",
    "jax_callable",
    "jax_kernel",
    "to_jax",
]

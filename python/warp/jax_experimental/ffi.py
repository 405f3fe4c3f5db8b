"""``jax_kernel`` with the number of outputs, by the name that its module had; today it is ``wp.jax_kernel``."""

from warp._interop.jax_kernels import jax_kernel

__all__ = ["jax_kernel"]

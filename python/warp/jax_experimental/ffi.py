"""``jax_callable`` and ``jax_kernel`` with the number of outputs, by the name that their module had; now in ``wp``."""

from warp._interop.jax_callables import jax_callable
from warp._interop.jax_kernels import jax_kernel

__all__ = ["jax_callable", "jax_kernel"]

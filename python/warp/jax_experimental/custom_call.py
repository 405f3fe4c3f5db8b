"""``jax_kernel`` as it was first: the number of outputs is found from the call."""

from typing import Any

from warp._interop.jax_generic import GenericJaxKernel
from warp._interop.jax_kernels import CountingJaxKernel

__all__ = ["jax_kernel"]


def jax_kernel(kernel: Any, launch_dims: Any = None) -> CountingJaxKernel | GenericJaxKernel:
    """A kernel as a function of arrays of JAX: it takes the kernel's first arguments, and always returns a list of the
    others.

    Args:
        kernel: inputs first, then outputs; at least one of each.
        launch_dims: the grid and the shape of the outputs; by default those of the first argument. Leading dimensions
            of an argument in excess of its parameter's are merged into the first one.
    """
    if getattr(kernel, "is_generic", False):
        return GenericJaxKernel(kernel, lambda instance: CountingJaxKernel(instance, launch_dims))
    return CountingJaxKernel(kernel, launch_dims)

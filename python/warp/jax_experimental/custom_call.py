"""``jax_kernel`` as it was first: the number of outputs is found from the call."""

from typing import Any

from warp._interop.jax_generic import GenericJaxKernel
from warp._interop.jax_kernels import CountingJaxKernel

__all__ = ["jax_kernel"]


def jax_kernel(kernel: Any, launch_dims: Any = None) -> CountingJaxKernel | GenericJaxKernel:
    """A kernel as a function of arrays of JAX: it takes the kernel's first arguments, and returns the others, in a list
    also where there is one.

    Args:
        kernel: inputs first, then outputs; at least one of each.
        launch_dims: the grid and the shape of the outputs; those of the first argument where it is missing. Dimensions
            of an argument before those that its parameter has become its first one.
    """
    if getattr(kernel, "is_generic", False):
        return GenericJaxKernel(kernel, lambda instance: CountingJaxKernel(instance, launch_dims))
    return CountingJaxKernel(kernel, launch_dims)

"""The module's name of earlier releases: ``jax_kernel(kernel)``, whose outputs are the arguments that a call omits.

Programs of today use :func:`warp.jax_kernel`, with the number of outputs.
"""

from warp.jax_experimental.custom_call import jax_kernel

__all__ = ["jax_kernel"]

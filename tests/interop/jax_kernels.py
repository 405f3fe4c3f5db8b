"""A kernel and a process that several tests of jax_kernel use."""

import warp as wp
import warp.jax_experimental


@wp.kernel
def triple_kernel(input: wp.array(dtype=float), output: wp.array(dtype=float)):
    tid = wp.tid()
    output[tid] = 3.0 * input[tid]

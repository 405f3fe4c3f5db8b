"""Kernels of the tests about the order of work in streams, and of what stands for other libraries."""

import warp as wp


@wp.kernel
def write(x: wp.array[float], value: float):
    i = wp.tid()
    x[i] = value


@wp.kernel
def read(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel
def triple(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 3.0 * x[i]

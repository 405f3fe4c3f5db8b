"""Copies from and to the elements that an indexedarray chooses, as kernels: their adjoints carry gradients back."""

from typing import Any

import warp as wp


@wp.kernel
def gather(source: Any, to: wp.array(dtype=Any)):
    i = wp.tid()
    to[i] = source[i]


@wp.kernel
def gather_2d(source: Any, to: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    to[i, j] = source[i, j]


@wp.kernel
def gather_3d(source: Any, to: wp.array3d(dtype=Any)):
    i, j, k = wp.tid()
    to[i, j, k] = source[i, j, k]


@wp.kernel
def gather_4d(source: Any, to: wp.array4d(dtype=Any)):
    i, j, k, n = wp.tid()
    to[i, j, k, n] = source[i, j, k, n]


gathers = (gather, gather_2d, gather_3d, gather_4d)


@wp.kernel
def scatter(source: wp.array(dtype=Any), to: Any):
    i = wp.tid()
    to[i] = source[i]


@wp.kernel
def scatter_2d(source: wp.array2d(dtype=Any), to: Any):
    i, j = wp.tid()
    to[i, j] = source[i, j]


@wp.kernel
def scatter_3d(source: wp.array3d(dtype=Any), to: Any):
    i, j, k = wp.tid()
    to[i, j, k] = source[i, j, k]


@wp.kernel
def scatter_4d(source: wp.array4d(dtype=Any), to: Any):
    i, j, k, n = wp.tid()
    to[i, j, k, n] = source[i, j, k, n]


scatters = (scatter, scatter_2d, scatter_3d, scatter_4d)

"""Copies as kernels: their adjoints carry gradients back through wp.copy() and the like, for every dtype and stride,
and through the elements that an indexedarray chooses.
"""

from typing import Any

import warp as wp


@wp.kernel
def copy_1d(source: wp.array(dtype=Any), to: wp.array(dtype=Any)):
    i = wp.tid()
    to[i] = source[i]


@wp.kernel
def copy_2d(source: wp.array2d(dtype=Any), to: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    to[i, j] = source[i, j]


@wp.kernel
def copy_3d(source: wp.array3d(dtype=Any), to: wp.array3d(dtype=Any)):
    i, j, k = wp.tid()
    to[i, j, k] = source[i, j, k]


@wp.kernel
def copy_4d(source: wp.array4d(dtype=Any), to: wp.array4d(dtype=Any)):
    i, j, k, n = wp.tid()
    to[i, j, k, n] = source[i, j, k, n]


kernels = (copy_1d, copy_2d, copy_3d, copy_4d)


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

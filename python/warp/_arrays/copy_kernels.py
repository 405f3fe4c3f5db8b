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
def check_indices(given: wp.array(dtype=Any), size: int, to: wp.array(dtype=int)):
    """Indices whose values the host has not seen: those of a graph that is being captured."""
    i = wp.tid()
    at = wp.int64(given[i])
    if at < wp.int64(0):
        at += wp.int64(size)
    if at < wp.int64(0) or at >= wp.int64(size):
        to[i] = 0
        raise IndexError("indexedarray(): an index of this graph is out of range")
    to[i] = int(at)


# Of an element that is chosen several times the last value stays. `lastN[k]` is the last position along axis N whose
# index is k, so that one thread writes each element.


@wp.kernel
def find_last(indices: wp.array(dtype=int), last: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_max(last, indices[i], i)


@wp.kernel
def scatter(source: wp.array(dtype=Any), indices0: wp.array(dtype=int), last0: wp.array(dtype=int), to: Any):
    i = wp.tid()
    if last0[indices0[i]] == i:
        to[i] = source[i]


@wp.kernel
def scatter_2d(
    source: wp.array2d(dtype=Any),
    indices0: wp.array(dtype=int),
    last0: wp.array(dtype=int),
    indices1: wp.array(dtype=int),
    last1: wp.array(dtype=int),
    to: Any,
):
    i, j = wp.tid()
    if last0[indices0[i]] == i and last1[indices1[j]] == j:
        to[i, j] = source[i, j]


@wp.kernel
def scatter_3d(
    source: wp.array3d(dtype=Any),
    indices0: wp.array(dtype=int),
    last0: wp.array(dtype=int),
    indices1: wp.array(dtype=int),
    last1: wp.array(dtype=int),
    indices2: wp.array(dtype=int),
    last2: wp.array(dtype=int),
    to: Any,
):
    i, j, k = wp.tid()
    if last0[indices0[i]] == i and last1[indices1[j]] == j and last2[indices2[k]] == k:
        to[i, j, k] = source[i, j, k]


@wp.kernel
def scatter_4d(
    source: wp.array4d(dtype=Any),
    indices0: wp.array(dtype=int),
    last0: wp.array(dtype=int),
    indices1: wp.array(dtype=int),
    last1: wp.array(dtype=int),
    indices2: wp.array(dtype=int),
    last2: wp.array(dtype=int),
    indices3: wp.array(dtype=int),
    last3: wp.array(dtype=int),
    to: Any,
):
    i, j, k, n = wp.tid()
    is_last = last0[indices0[i]] == i and last1[indices1[j]] == j
    if is_last and last2[indices2[k]] == k and last3[indices3[n]] == n:
        to[i, j, k, n] = source[i, j, k, n]


scatters = (scatter, scatter_2d, scatter_3d, scatter_4d)

"""Windows of NumPy arrays: a tile that is loaded, stored or added at an offset, element by element."""

import numpy as np


def _inside(shape, offset, extents):
    """(places in the window, places in the array) of the elements that lie in the array."""
    for at in np.ndindex(*shape):
        there = tuple(o + i for o, i in zip(offset, at, strict=True))
        if all(0 <= t < n for t, n in zip(there, extents)):
            yield at, there


def window(a, shape, offset):
    """The elements of `a` from `offset` on, with zeros for those outside of it."""
    out = np.zeros((*shape, *a.shape[len(shape) :]), a.dtype)
    for at, there in _inside(shape, offset, a.shape):
        out[at] = a[there]
    return out


def written(a, t, offset):
    """A copy of `a` with the elements of `t` from `offset` on; those outside of `a` are dropped."""
    out = a.copy()
    for at, there in _inside(t.shape[: len(offset)], offset, a.shape):
        out[there] = t[at]
    return out

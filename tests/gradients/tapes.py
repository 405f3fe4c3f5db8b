"""What tests of tapes begin with: kernels that have to be undone, and arrays of doubles."""

import numpy as np
import warp as wp


@wp.kernel
def square(x: wp.array[wp.float64]):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel
def multiply(a: wp.array[wp.float64], b: wp.array[wp.float64], c: wp.array[wp.float64]):
    i = wp.tid()
    c[i] = a[i] * b[i]


def doubles(values, **options):
    return wp.array(np.asarray(values, dtype=np.float64), dtype=wp.float64, **options)

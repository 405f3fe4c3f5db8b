import math  # noqa: F401

import warp as wp


@wp.func
def f(a: float) -> "math.pi":  # error: the annotation of the result of 'f' is float 3.14
    return a


@wp.kernel
def kernel(x: wp.array[float]):
    x[0] = f(x[0])

import math

import warp as wp


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    x[i] = math.sqrt(x[i])  # error: cannot  # help: the built-in function is wp.sqrt

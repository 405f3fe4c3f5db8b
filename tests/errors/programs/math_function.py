import math

import warp as wp


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    x[i] = math.gamma(x[i])  # error: kernels cannot use 'gamma', which is the Python function math.gamma

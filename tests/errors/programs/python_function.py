import warp as wp


def helper(a):
    return a


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = helper(1.0)  # error: the Python function 'helper'  # note: kernels call functions made with @wp.func

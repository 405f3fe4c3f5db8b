import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _j, _a in enumerate(n):  # error: a for loop runs over range(), a tuple, a list, a vector or an array in kernels, not over int32
        pass

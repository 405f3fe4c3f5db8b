import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _j, _a in enumerate(n):  # error: a for loop runs over range(), a tuple or a vector in kernels, not over int32
        pass

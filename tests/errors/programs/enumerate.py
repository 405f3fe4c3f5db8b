import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _j, _a in enumerate(range(3)):  # error: the class 'enumerate' cannot be called in kernels
        pass

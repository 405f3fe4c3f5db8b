import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    def g():  # error: 'def' is not supported in kernels
        pass

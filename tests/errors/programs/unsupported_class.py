import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    class A:  # error: 'class' is not supported in kernels
        pass

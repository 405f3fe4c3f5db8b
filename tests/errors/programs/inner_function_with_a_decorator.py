import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    @wp.func
    def half(v: float):  # error: 'a decorator of a function within a function' is not supported in kernels
        return 0.5 * v

    x[0] = half(x[0])

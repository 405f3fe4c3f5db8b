import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    def half(v: float):
        return 0.5 * v

    x[0] = half(n)  # error: argument 'v' of 'half' is int32, expected float32

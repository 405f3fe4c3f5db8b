import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    def half(v):
        w = 0.5 * v
        return w

    x[0] = half(x[0]) + w  # error: name 'w' is not defined

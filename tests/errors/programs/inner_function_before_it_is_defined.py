import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    x[0] = half(x[0])  # error: 'half' is used before it is assigned

    def half(v):
        return 0.5 * v

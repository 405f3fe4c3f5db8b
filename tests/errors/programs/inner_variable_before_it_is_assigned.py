import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    w = 1.0

    def half(v):
        v = v * w  # error: 'w' is used before it is assigned
        w = 0.5
        return v

    x[0] = half(x[0])

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    match n:
        case {"a": 1}:  # error: a pattern of a mapping is not supported in kernels
            x[0] = 1.0

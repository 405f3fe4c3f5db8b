import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    match n:
        case int(k):  # error: a pattern of a class is not supported in kernels
            x[0] = float(k)

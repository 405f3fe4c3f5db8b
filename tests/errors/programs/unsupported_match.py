import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    match n:  # error: 'match' is not supported in kernels
        case 1:
            pass

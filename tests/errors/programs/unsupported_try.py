import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    try:  # error: 'try' is not supported in kernels
        pass
    except Exception:
        pass

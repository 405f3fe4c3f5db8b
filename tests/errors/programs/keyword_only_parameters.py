import warp as wp


@wp.kernel
def kernel(*, x: float, n: int):  # error: kernel 'kernel' has keyword-only parameters
    pass

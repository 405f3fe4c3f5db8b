import warp as wp


@wp.kernel
def kernel(*, x: float, n: int):  # error: parameter 'x' of kernel 'kernel' is given by name only  # help: the '*'
    pass

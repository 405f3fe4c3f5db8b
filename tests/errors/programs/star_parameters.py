import warp as wp


@wp.kernel
def kernel(*x):  # error: kernel 'kernel' has *x, which kernels cannot have
    pass

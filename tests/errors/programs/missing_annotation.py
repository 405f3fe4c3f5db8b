import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n):  # error: parameter 'n' of kernel 'kernel' has no type  # help: annotate it: n: float
    x[wp.tid()] = 1.0

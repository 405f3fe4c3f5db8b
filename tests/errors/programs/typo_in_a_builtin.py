import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = wp.nrmalize(1.0)  # error: the module 'warp' has no attribute 'nrmalize'  # help: did you mean 'normalize'?

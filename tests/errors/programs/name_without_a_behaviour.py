import warp as wp


@wp.kernel
def kernel(x: wp.array[float], address: wp.array[wp.uint64]):
    i = wp.tid()
    address[i] = wp.store(x[i])  # error: the module 'warp' has no attribute 'store'

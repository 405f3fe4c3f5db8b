import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.static({})  # error: wp.static() gave a dict, which kernels cannot use

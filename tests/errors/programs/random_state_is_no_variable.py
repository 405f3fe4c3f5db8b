import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.randf(wp.rand_init(1))  # error: is changed by the call and must be a local variable

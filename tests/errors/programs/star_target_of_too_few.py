import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    a, b, *c = (1,)  # error: 3 targets for 1 values

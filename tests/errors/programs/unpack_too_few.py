import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    a, c = (1, 2, 3)  # error: 2 targets for 3 values

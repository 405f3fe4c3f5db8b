import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = 999999999999999999999999999  # error: the integer 999999999999999999999999999 does not fit any integer type  # help: write it as a float: 999999999999999999999999999.0

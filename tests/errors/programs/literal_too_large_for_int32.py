import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = 99999999999  # error: the integer 99999999999 does not fit int32, whose range is -2147483648 to 2147483647  # help: write wp.int64(99999999999)

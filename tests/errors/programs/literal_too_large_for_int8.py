import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.int8(1) + 300  # error: the integer 300 does not fit int8, whose range is -128 to 127

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y: int = 1.5  # error: 'y' is the float literal 1.5, expected int32  # help: write wp.int32(...)

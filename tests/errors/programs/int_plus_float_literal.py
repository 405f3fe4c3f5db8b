import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    n += 1.5  # error: '+' does not take int32 and the float literal 1.5  # help: write float(...) around the integer

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = 1.0 + n  # error: '+' does not take the float literal 1.0 and int32  # note: argument 'a' is the literal 1.0, expected int32 as in 'b'

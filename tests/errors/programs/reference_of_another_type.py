import warp as wp


@wp.func
def grow(x: wp.ref[float]):
    x += 1.0


@wp.kernel
def kernel(a: wp.array[float]):
    i = wp.tid()
    grow(i)  # error: argument 'x' of 'grow' is int32, expected float32

import warp as wp


@wp.func
def grow(x: wp.ref[float]):
    x += 1.0


@wp.kernel
def kernel(a: wp.array[float]):
    i = wp.tid()
    grow(3.0)  # error: argument 'x' of 'grow' is passed by reference, and the float literal 3.0 here is nothing that can be assigned

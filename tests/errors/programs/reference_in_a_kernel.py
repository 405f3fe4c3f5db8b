import warp as wp


@wp.kernel
def kernel(a: wp.ref[float]):  # error: parameter 'a' of kernel 'kernel' cannot be passed by reference  # help: take an array
    a = 1.0

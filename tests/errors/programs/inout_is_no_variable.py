import warp as wp


@wp.kernel
def kernel(x: wp.array[float]):
    q, r = wp.mat33(), wp.mat33()
    wp.qr3(wp.mat33(x[0]), q, wp.mat33())  # error: argument 'R' of wp.qr3() is changed by the call and must be a local variable

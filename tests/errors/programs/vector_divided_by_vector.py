import warp as wp


@wp.kernel
def kernel(x: wp.array[wp.vec3]):
    i = wp.tid()
    x[i] = x[i] / x[i]  # error: '/' does not take vec3f and vec3f  # help: wp.cw_div(a, b)

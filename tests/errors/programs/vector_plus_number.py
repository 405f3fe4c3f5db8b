import warp as wp


@wp.kernel
def kernel(x: wp.array[wp.vec3]):
    i = wp.tid()
    x[i] = x[i] + 1.0  # error: '+' does not take vec3f and the float literal 1.0  # help: write wp.vec3f(1.0)

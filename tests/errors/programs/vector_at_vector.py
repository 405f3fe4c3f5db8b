import warp as wp


@wp.kernel
def kernel(x: wp.array[wp.vec3], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] @ x[i]  # error: '@' does not take vec3f and vec3f  # help: wp.dot(a, b) is a number

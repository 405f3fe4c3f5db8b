import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    w = wp.vec3(1.0) * wp.vec3(1.0)  # error: '*' does not take vec3f and vec3f

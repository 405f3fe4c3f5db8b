import warp as wp


@wp.kernel
def kernel(x: wp.array[wp.vec3], q: wp.array[wp.quat]):
    i = wp.tid()
    x[i] = q[i] * x[i]  # error: '*' does not take quatf and vec3f  # help: wp.quat_rotate(q, v) rotates a vector

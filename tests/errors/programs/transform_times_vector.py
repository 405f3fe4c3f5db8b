import warp as wp


@wp.kernel
def kernel(x: wp.array[wp.vec3], t: wp.array[wp.transform]):
    i = wp.tid()
    x[i] = t[i] * x[i]  # error: '*' does not take transformf and vec3f  # help: wp.transform_point(t, p) moves a point

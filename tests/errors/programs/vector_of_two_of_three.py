import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vec3(1.0, 2.0)  # error: vec3f() takes nothing, one value for all components, 3 components, or another vector of this shape; got (the float literal 1.0, the float literal 2.0)

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vec3(x=1.0)  # error: vec3f() has no parameter 'x'

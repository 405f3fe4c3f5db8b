import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    w = wp.mat22(1.0) * wp.vec3(1.0)  # error: '*' does not take mat22f and vec3f  # note: Mat[r,c,S], b: Vec[c,S]

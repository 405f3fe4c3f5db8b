import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = wp.vec3(1.0).q  # error: vec3f has no attribute 'q'  # note: it has: x, y, z

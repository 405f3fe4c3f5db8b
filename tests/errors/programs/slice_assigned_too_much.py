import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    v = wp.vec3()
    v[0:2] = wp.vec3()  # error: the value assigned to this part of 'v' is vec3f, expected vec2f

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    v = wp.vec3()
    v[2:1] = 1.0  # error: this slice of vec3f has no components

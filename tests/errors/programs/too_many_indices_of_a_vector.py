import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = wp.vec3(1.0)[0, 0]  # error: 2 indices for vec3f, which takes 1

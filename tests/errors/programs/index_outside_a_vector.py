import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = wp.vec3(1.0)[-4]  # error: index -4 is outside vec3f, which has 3 components

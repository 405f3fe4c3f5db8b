import warp as wp


G = wp.vec3(1.0, 2.0, 3.0)


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    G[0] = 1.0  # error: this name is no local variable, so nothing of it can be assigned

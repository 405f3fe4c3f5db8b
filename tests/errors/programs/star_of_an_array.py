import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vec3(*x)  # error: '*' needs a tuple or a vector, not array[float32]

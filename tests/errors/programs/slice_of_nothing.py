import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vec3()[2:1]  # error: this slice of vec3f has no components

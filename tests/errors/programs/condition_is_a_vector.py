import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = 1.0 if wp.vec3(1.0) else 2.0  # error: a condition must be a bool or a number, not vec3f

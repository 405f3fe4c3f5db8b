import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vector(1.0, dtype=wp.vec3)  # error: dtype of wp.vector() must be a scalar type, not the type vec3f

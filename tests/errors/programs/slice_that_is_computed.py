import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vec3()[0:n]  # error: the bounds and the step of a slice of a vector, matrix or tuple must be integers known at compile time, not int32

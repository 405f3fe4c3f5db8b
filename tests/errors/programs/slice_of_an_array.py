import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = x[0:4:n]  # error: the step of a slice must be an integer known at compile time, not int32  # help: index with a multiple

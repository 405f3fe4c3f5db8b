import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vector('a', 'b')  # error: a component of wp.vector() must be a number, not the string

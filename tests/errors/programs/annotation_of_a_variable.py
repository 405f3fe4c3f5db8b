import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y: 'float' = 1.0  # error: the annotation of a variable must be a type, not the string

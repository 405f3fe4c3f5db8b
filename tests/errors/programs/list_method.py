import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    values = [1.0, 2.0]
    values.pop()  # error: a list of (the float literal 1.0, the float literal 2.0) has no attribute 'pop'

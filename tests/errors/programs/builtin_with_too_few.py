import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = min(1.0)  # error: no overload of wp.min() takes (the float literal 1.0)

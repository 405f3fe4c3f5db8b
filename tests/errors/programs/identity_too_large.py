import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.identity(n=5000, dtype=float)  # error: no overload of wp.identity()  # note: vectors and matrices have at most 65536 components

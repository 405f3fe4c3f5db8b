import warp as wp


@wp.func
def grow(x: wp.ref[float], n: int):
    x = n  # error: the value of 'x' is int32, expected float32


@wp.kernel
def kernel(a: wp.array[float]):
    i = wp.tid()
    grow(a[i], i)

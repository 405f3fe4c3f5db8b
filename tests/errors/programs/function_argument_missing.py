import warp as wp


@wp.func
def f(a: int):
    return 1.0


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f()  # error: argument 'a' of 'f' is missing

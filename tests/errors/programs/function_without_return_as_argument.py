import warp as wp


@wp.func
def f(a: int):
    pass


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = wp.sin(f(n))  # error: this call returns nothing, so it cannot be used as a value

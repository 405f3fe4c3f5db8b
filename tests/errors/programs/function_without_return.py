import warp as wp


@wp.func
def f(a: int):
    pass


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)  # error: this call returns nothing, so there is no value to assign

import warp as wp


@wp.func
def f(a: int):
    return nope + 1  # error: name 'nope' is not defined


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)  # note: in 'f', called from here

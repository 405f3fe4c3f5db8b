import warp as wp


@wp.func
def f(a: int):  # error: 'f' does not return a value on every path
    if a > 0:
        return 1.0  # note: it returns float32 here


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)  # note: in 'f', called from here

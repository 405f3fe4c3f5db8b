import warp as wp


@wp.func
def f(a: int):  # note: the function is f(a: int32)
    return 1.0


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n, n)  # error: 'f' takes 1 argument, got 2

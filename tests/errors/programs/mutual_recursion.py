import warp as wp


@wp.func
def f(a: int):
    return g(a)  # note: in 'g', called from here


@wp.func
def g(a: int):
    return f(a)  # error: 'f' calls 'g' calls 'f'


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)  # note: in 'f', called from here

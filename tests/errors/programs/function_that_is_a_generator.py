import warp as wp


@wp.func
def f(a: int):
    yield a  # error: yield is not supported in kernels


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)

import warp as wp


@wp.func
def f(*a):  # error: 'f' has *a, which kernels and their functions cannot have
    return 1.0


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)

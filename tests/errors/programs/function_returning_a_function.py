import warp as wp


@wp.func
def f(a: int):
    return wp.sin  # error: functions of kernels cannot return the built-in function 'sin'


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)

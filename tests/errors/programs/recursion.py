import warp as wp


@wp.func
def f(a: int):
    return f(a - 1)  # error: functions cannot call themselves, directly or through others: 'f' calls 'f'


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)  # note: in 'f', called from here

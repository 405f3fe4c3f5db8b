import warp as wp


@wp.func
def f(a: int):
    if a > 0:
        return 1.0  # note: it returns float32 here
    return a  # error: 'f' returns int32 here and float32 elsewhere


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(n)

import warp as wp


@wp.func
def f(value: int):  # note: the function is f(value: int32)
    return 1.0


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = f(valeu=n)  # error: 'f' has no parameter 'valeu'  # help: did you mean 'value'?

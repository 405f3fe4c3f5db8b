import warp as wp


@wp.func
def twice(a: float):
    return 2.0 * a


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    if n > 5:
        f = twice  # note: assigned here
    x[i] = f(x[i])  # error: 'f' may have no value here: on some paths only it is assigned, to the function 'twice'

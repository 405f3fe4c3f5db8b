import warp as wp


@wp.func
def f(a: float) -> float:  # error: 'f' does not return a value on every path
    if a > 0.0:
        return a


@wp.kernel
def kernel(x: wp.array[float]):
    x[0] = f(x[0])

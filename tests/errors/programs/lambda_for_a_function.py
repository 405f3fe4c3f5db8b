import warp as wp


@wp.func
def apply(f: wp.Function, v: float):
    return f(v)


@wp.kernel
def kernel(x: wp.array[float], n: int):
    x[0] = apply(lambda v: v * 2.0, x[0])  # error: argument 'f' of 'apply' is a lambda, which can only be called in the function that it stands in  # help: make it a function of its own with @wp.func

import warp as wp


@wp.func
def f(a: float) -> float:  # error: 'f' does not return a value  # note: it is annotated with float32
    b = a


@wp.kernel
def kernel(x: wp.array[float]):
    x[0] = f(x[0])  # note: in 'f', called from here

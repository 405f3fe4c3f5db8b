import warp as wp


@wp.func
def f(a: float) -> int:  # note: the annotation
    return a * 2.0  # error: 'f' returns float32 here, and is annotated with int32


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    x[i] = float(f(x[i]))

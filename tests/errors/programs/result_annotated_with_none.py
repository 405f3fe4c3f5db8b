import warp as wp


@wp.func
def f(a: float) -> None:
    return a  # error: 'f' returns float32 here, and is annotated with None


@wp.kernel
def kernel(x: wp.array[float]):
    f(x[0])

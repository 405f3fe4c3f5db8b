import warp as wp


@wp.func
def f(a: float) -> tuple[float, int]:
    return a, a  # error: and is annotated with


@wp.kernel
def kernel(x: wp.array[float]):
    y, n = f(x[0])
    x[0] = y

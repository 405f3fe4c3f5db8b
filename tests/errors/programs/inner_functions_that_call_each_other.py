import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    first = lambda k: second(k)  # noqa: E731
    second = lambda k: first(k)  # error: functions cannot call themselves, directly or through others: this lambda does
    x[0] = first(1.0)

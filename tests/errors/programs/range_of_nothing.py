import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _a in range():  # error: range() takes a stop, a start and a stop, or a start, a stop and a step
        pass

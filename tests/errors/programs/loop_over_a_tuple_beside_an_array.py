import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    for v, w in zip(x, (1.0, 2.0)):  # error: a tuple, a list or a vector beside what has a length at run time only cannot be looped over
        x[0] += v * w

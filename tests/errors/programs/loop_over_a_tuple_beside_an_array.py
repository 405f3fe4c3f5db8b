import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    for v, w in zip(x, (1.0, 2.0)):  # error: a loop cannot run over a tuple, a list or a vector beside an iterable whose length is known only at run time
        x[0] += v * w

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf('%5s', 'a')  # error: '%5s' cannot have a width

import warp as wp


G = 1.0


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    G += 1.0  # error: 'G' is used before it is assigned

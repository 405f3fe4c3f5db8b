import warp as wp


G = 1 << 100


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = G  # error: an int that does not fit into 64 bits

import warp as wp


G = '\ud800'


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(G)  # error: a string that is no valid Unicode

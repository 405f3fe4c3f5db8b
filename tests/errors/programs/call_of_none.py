import warp as wp


G = None


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = G(3)  # error: None cannot be called in kernels

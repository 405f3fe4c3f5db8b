import warp as wp


G = wp.zeros(3)


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = G[0]  # error: kernels cannot use 'G', which is an array

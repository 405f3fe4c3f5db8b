import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(n, flush=True)  # error: print() has no 'flush' in kernels

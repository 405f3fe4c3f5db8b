import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.zeros(shape=100000, dtype=float)  # error: the arrays made in kernel 'kernel' need 400000 bytes for each thread, and there are 65536

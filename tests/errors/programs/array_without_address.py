import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.array(shape=n, dtype=float)  # error: wp.array() in a kernel makes a view of memory at an address and needs ptr

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    a, c = n  # error: int32 cannot be unpacked into 2 targets  # help: tuples, vectors and the result of wp.tid() can be unpacked

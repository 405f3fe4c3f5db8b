import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    raise n  # error: kernels cannot raise int32

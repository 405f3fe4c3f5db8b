import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = [k for k in n]  # error: not over int32

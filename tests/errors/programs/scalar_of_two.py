import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = float(1.0, 2.0)  # error: float32() takes one value, got 2

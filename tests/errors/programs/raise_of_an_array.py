import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    raise ValueError(x)  # error: print() cannot show array[float32]

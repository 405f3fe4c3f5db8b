import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    print(f"{x:.3f}")  # error: the format '.3f' is for numbers, not for array[float32]

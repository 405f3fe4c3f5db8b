import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = [j * k for k in range(60) for j in range(60)]  # error: comprehensions are written out

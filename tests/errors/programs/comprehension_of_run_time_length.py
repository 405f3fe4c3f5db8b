import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = [x[k] for k in range(n)]  # error: the length of a comprehension must be known at compile time  # help: write a loop

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = [x[k] for k in range(3) if x[k] > 0.0]  # error: whether a comprehension takes an element must be known at compile time  # help: write a loop

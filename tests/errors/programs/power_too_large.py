import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = float(7**30)  # error: this integer does not fit 64 bits  # help: write one operand as a float

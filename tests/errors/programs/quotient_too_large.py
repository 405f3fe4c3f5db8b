import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = float((-9223372036854775807 - 1) // -1)  # error: this integer does not fit 64 bits

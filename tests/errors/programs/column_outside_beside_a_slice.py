import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    m = wp.matrix(1.0, shape=(2, 4))
    x[i] = m[0:2, -5][0]  # error: index -5 is outside matrix(shape=(2, 4), dtype=float32), which has 4 columns

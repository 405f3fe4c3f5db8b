import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    m = wp.mat33(1.0)
    x[i] = m[3, 0:2][0]  # error: index 3 is outside mat33f, which has 3 rows

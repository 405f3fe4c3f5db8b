import warp as wp


@wp.kernel
def kernel(x: wp.array[wp.mat22d], y: wp.float64):
    i = wp.tid()
    x[i] = y - x[i]  # error: '-' does not take float64 and mat22d  # help: write wp.mat22d(x)

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.mat22(1.0, 2.0, 3.0)  # error: mat22f() takes nothing, one value for all components, 4 components, or another matrix of this shape

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = (y := 1.0)  # error: an assignment inside an expression (:=) is not supported in kernels

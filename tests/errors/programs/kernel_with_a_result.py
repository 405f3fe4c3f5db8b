import warp as wp


@wp.kernel
def kernel(x: wp.array[float]) -> float:  # error: kernels return nothing, and this one is annotated with float32
    x[0] = 1.0

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    raise  # error: raise without an exception has nothing to raise again in kernels  # help: write raise ValueError("text")

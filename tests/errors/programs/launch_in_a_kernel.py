import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.launch(kernel, dim=3)  # error: kernels cannot use 'launch', which is the Python function 'warp.launch'

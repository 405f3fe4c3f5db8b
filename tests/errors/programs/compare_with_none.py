import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = x == None  # error: '==' cannot compare array[float32] and None  # help: write 'is None'

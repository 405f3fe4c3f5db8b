import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(f'{x[i]:d}')  # error: the format 'd' is for integers, and this is float32

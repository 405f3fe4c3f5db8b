import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    s = f'{n}'  # error: f-strings are only supported as an argument of print()

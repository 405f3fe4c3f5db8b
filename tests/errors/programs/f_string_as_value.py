import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    s = f'{n}'  # error: f-strings and format() are only supported in print(), assert and raise

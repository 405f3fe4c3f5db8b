import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = undefined_thing  # error: name 'undefined_thing' is not defined

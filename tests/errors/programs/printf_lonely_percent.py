import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf('100%\n')  # error: '%' is no conversion of wp.printf()  # help: %% for the sign itself

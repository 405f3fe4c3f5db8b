import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    print("{a}".format(b=n))  # error: format() is given no argument 'a' that '{a}' asks for

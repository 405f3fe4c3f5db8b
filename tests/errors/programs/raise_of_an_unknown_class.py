import warp as wp


class TooSmall(ValueError):
    pass


@wp.kernel
def kernel(x: wp.array[float], n: int):
    if n < 3:
        raise TooSmall("n")  # error: kernels cannot raise the class 'TooSmall'  # help: raise one of Python's own: ValueError

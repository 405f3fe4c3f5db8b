import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: dict):  # error: the annotation of parameter 'n' is the class dict, which is no type of a kernel's values
    x[wp.tid()] = 1.0

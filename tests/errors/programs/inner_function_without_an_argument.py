import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    def scaled(v, by):  # note: the function
        return v * by

    x[0] = scaled(x[0])  # error: argument 'by' of 'scaled' is missing

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    value = 1.0
    x[i] = valeu  # error: name 'valeu' is not defined  # help: did you mean 'value'?

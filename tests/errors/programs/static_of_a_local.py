import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.static(i)  # error: NameError: name 'i' is not defined  # help: it can use globals, closure variables and variables of unrolled loops

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = x[i] + n  # error: '+' does not take float32 and int32  # help: values never convert by themselves

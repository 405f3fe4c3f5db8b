import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = n(3)  # error: int32 cannot be called  # help: functions of kernels are decorated with @wp.func

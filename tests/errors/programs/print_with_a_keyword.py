import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(n, sep=',')  # error: print() takes no 'sep' in kernels  # help: use wp.printf()

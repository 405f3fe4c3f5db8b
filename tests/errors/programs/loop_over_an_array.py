import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _a in x:  # error: a for loop runs over range(), a tuple or a vector in kernels, not over array[float32]  # help: write for i in range(len(a)) and use a[i]
        pass

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    x[0] = sum([float(each) for each in range(3)])
    x[1] = float(each)  # error: name 'each' is not defined

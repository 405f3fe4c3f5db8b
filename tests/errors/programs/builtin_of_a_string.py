import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = abs('a')  # error: no overload of wp.abs() takes (the string "a")

import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.sin(1.0).y = 1.0  # error: this cannot be assigned  # help: assign to a variable, an array element, a component or a field

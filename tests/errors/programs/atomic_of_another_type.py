import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.atomic_add(x, 0, n)  # error: no overload of wp.atomic_add()  # note: argument 'value' is int32, expected float32 as in 'arr'

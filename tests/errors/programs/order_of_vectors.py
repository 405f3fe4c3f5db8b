import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vec3(1.0) > wp.vec3(2.0)  # error: '>' cannot compare vec3f and vec3f  # help: only scalars have an order

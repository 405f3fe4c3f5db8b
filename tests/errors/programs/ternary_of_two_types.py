import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = 1.0 if n > 2 else wp.vec3(1.0)  # error: this chooses between the float literal 1.0 and vec3f  # help: choose between numbers, vectors, matrices or structs of one type

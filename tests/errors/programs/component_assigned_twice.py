import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    v = wp.vec3(1.0)
    v.xx = wp.vec2(1.0)  # error: a component appears twice as a target

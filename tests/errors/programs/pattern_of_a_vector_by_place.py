import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    match wp.vec3():
        case wp.vec3(1.0):  # error: a pattern of vec3f takes no parts by place  # help: name them: x=a, y=b
            x[0] = 1.0

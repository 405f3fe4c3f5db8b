import warp as wp


@wp.kernel
def kernel(x: wp.array[wp.vec3], n: int):
    match x[0]:
        case 1:  # error: '==' cannot compare vec3f and the int literal 1
            x[0] = wp.vec3(1.0)

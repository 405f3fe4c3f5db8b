import warp as wp


@wp.struct
class Point:
    x: float
    y: float


@wp.kernel
def kernel(x: wp.array[float], n: int):
    match Point():
        case Point(z=1.0):  # error: Point has no attribute 'z'
            x[0] = 1.0

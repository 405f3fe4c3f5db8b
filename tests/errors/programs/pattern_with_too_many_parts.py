import warp as wp


@wp.struct
class Point:
    x: float
    y: float


@wp.kernel
def kernel(x: wp.array[float], n: int):
    match Point():
        case Point(1.0, y, z):  # error: Point has 2 fields; the pattern has more parts
            x[0] = y + z

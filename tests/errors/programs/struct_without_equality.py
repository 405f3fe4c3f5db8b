import warp as wp


@wp.struct
class Point:
    x: float


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    p = Point(x[i])
    x[i] = float(p == p)  # error: '==' cannot compare Point and Point  # help: write @dataclass above the class

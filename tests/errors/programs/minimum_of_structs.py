import warp as wp


@wp.struct
class Point:
    x: float
    y: float


@wp.kernel
def kernel(x: wp.array[Point], n: int):
    p = min(p for p in x)  # error: no overload of wp.min() takes (Point, Point)

"""`case Point(x=0, y=y)`: patterns of structs, of numbers and of vectors."""

from dataclasses import dataclass

import numpy as np
import warp as wp


@wp.struct
class Point:
    x: float
    y: float


@wp.struct
class Raised(Point):
    z: float


@wp.struct
@dataclass
class Segment:
    start: Point
    end: Point
    kind: int = 1


def quadrant(x, y):
    """The same match, by Python."""
    point = (x, y)
    match point:
        case (0.0, 0.0):
            return 0.0
        case (0.0, b) | (b, 0.0):
            return b
        case (a, b) if a > b:
            return a - b
        case (a, _):
            return 10.0 + a


def test_fields_are_compared_and_named():
    @wp.kernel
    def matched(points: wp.array[Point], out: wp.array[float]):
        i = wp.tid()
        match points[i]:
            case Point(x=0.0, y=0.0):
                out[i] = 0.0
            case Point(x=0.0, y=b) | Point(b, 0.0):
                out[i] = b
            case Point(a, y=b) if a > b:
                out[i] = a - b
            case Point(a, _):
                out[i] = 10.0 + a

    points = [(0.0, 0.0), (0.0, 3.0), (4.0, 0.0), (5.0, 2.0), (-1.0, 2.0)]
    array, out = wp.array([Point(*p) for p in points], dtype=Point), wp.zeros(len(points), dtype=float)
    wp.launch(matched, dim=len(points), inputs=[array, out])
    assert out.numpy().tolist() == [quadrant(*p) for p in points]


def test_types_are_known_when_the_kernel_is_compiled():
    @wp.func
    def name_of(value: wp.Any):
        match value:
            case int(n):
                return float(n)
            case wp.float64():
                return 64.0
            case float(f):
                return f
            case Raised(z=z):
                return z
            case Point(y=y):
                return y
            case wp.vec3(x=1.0, z=z):
                return z
            case wp.vec3():
                return wp.undefined_in_this_branch()  # never compiled: no call here has an int8
            case (a, b):
                return a + b
        return -1.0

    @wp.kernel
    def matched(out: wp.array[float]):
        out[0] = name_of(7)
        out[1] = name_of(wp.float64(1.0))
        out[2] = name_of(2.5)
        out[3] = name_of(Raised(x=1.0, y=2.0, z=3.0))
        out[4] = name_of(Point(1.0, 4.0))
        out[5] = name_of((5.0, 6.0))
        out[6] = name_of(wp.int8(1))

    out = wp.zeros(7, dtype=float)
    wp.launch(matched, dim=1, inputs=[out])
    assert out.numpy().tolist() == [7.0, 64.0, 2.5, 3.0, 4.0, 11.0, -1.0]


def test_what_is_derived_is_of_the_class_too_and_patterns_are_nested():
    @wp.kernel
    def matched(out: wp.array[float]):
        match Raised(x=1.0, y=2.0, z=3.0):
            case Segment():
                out[0] = -1.0
            case Point(x, y):
                out[0] = x + y
        match Segment(Point(1.0, 2.0), Point(3.0, 4.0), wp.tid() + 2):
            case Segment(start=Point(x=5.0)):
                out[1] = -1.0
            case Segment(Point(x=a), end=Point(y=b) as end, kind=2):
                out[1] = a + 10.0 * b + 100.0 * end.x

    out = wp.zeros(2, dtype=float)
    wp.launch(matched, dim=1, inputs=[out])
    assert out.numpy().tolist() == [3.0, 341.0]


def test_their_gradients_are_those_of_the_branch():
    @wp.kernel
    def matched(points: wp.array[Point], out: wp.array[float]):
        i = wp.tid()
        match points[i]:
            case Point(x=0.0, y=y):
                out[i] = y * y
            case Point(x, y):
                out[i] = 3.0 * x * y

    points = wp.array([Point(0.0, 2.0), Point(5.0, 7.0)], dtype=Point, requires_grad=True)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(matched, dim=2, inputs=[points, out])
    tape.backward(grads={out: wp.ones(2, dtype=float)})
    found = points.grad.numpy()
    np.testing.assert_array_equal(found["x"], [0.0, 21.0])
    np.testing.assert_array_equal(found["y"], [4.0, 15.0])

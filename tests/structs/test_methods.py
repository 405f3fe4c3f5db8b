"""Methods, properties and inheritance of structs in kernels, and dataclasses: the results of Python itself."""

import dataclasses

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

N = 37


@wp.struct
class Shape:
    center: wp.vec3d
    size: wp.float64 = 2.0

    def area(self):
        return self.size * self.size

    def distance(self, p: wp.vec3d, scale: wp.float64 = 1.0):
        return (wp.length(p - self.center) - self.size) * scale

    def move(self, by: wp.vec3d):
        self.center += by
        self.grow(0.5)

    def grow(self, by: wp.float64):
        if by > wp.float64(0.0):
            self.size += by
            return True
        return False

    @property
    def doubled(self):
        return self.size * wp.float64(2.0)

    @staticmethod
    def unit(x: wp.float64):
        return x * wp.float64(10.0)


@wp.struct
class Box(Shape):
    edge: wp.float64

    def area(self):
        return Shape.area(self) * wp.float64(6.0) + self.edge


@wp.struct
@dataclasses.dataclass
class Point:
    x: wp.float64
    y: wp.float64 = 3.0
    w: wp.float64 = dataclasses.field(default=0.5)

    def norm(self):
        return self.x * self.x + self.y * self.y


def test_methods_change_their_struct():
    @wp.kernel
    def k(boxes: wp.array[Box], out: wp.array2d[wp.float64]):
        i = wp.tid()
        s = Shape(size=wp.float64(i))
        for _j in range(i % 3):
            s.move(wp.vec3d(1.0, 0.0, 0.0))
        b = Box(edge=1.5)
        b.move(wp.vec3d(0.0, 1.0, 0.0))
        boxes[i].move(wp.vec3d(0.0, 0.0, 2.0))
        out[i, 0] = s.area() + s.center[0] * wp.float64(1000.0)
        out[i, 1] = s.distance(wp.vec3d(3.0, 0.0, 0.0)) + s.distance(wp.vec3d(0.0, 0.0, 0.0), scale=2.0)
        out[i, 2] = b.area() + b.doubled + Shape.unit(1.0) + b.unit(2.0)
        out[i, 3] = boxes[i].area() + boxes[i].center[2]

    boxes, out = wp.zeros(N, dtype=Box), wp.zeros((N, 4), dtype=wp.float64)
    wp.launch(k, dim=N, inputs=[boxes, out])
    for i in range(N):
        moves = i % 3
        size = i + 0.5 * moves
        distance = abs(3 - moves) - size + 2 * (moves - size)
        expected = [size * size + 1000 * moves, distance, 6 * 2.5**2 + 1.5 + 5 + 30, 6 * 0.25 + 2]
        assert out.numpy()[i].tolist() == expected, i
    assert boxes.numpy()["size"].tolist() == [0.5] * N


def test_derived_structs_have_fields_and_methods_of_their_bases():
    box = Box(edge=1.0)
    assert isinstance(box, Shape) and box.size == 2.0 and box.area() == 25.0
    assert wp.zeros(1, dtype=Box).numpy().dtype.names == ("center", "size", "edge")
    with pytest.raises(wp.UsageError, match="derived from int, which is no struct"):

        @wp.struct
        class Number(int):
            x: float

    with pytest.raises(wp.UsageError, match="field 'size' of Again is one of its base already"):

        @wp.struct
        class Again(Shape):
            size: wp.float64


def test_a_dataclass_is_a_struct():
    @wp.kernel
    def k(p: Point, out: wp.array[wp.float64]):
        q = Point(x=2.0)
        out[0] = q.norm() + p.norm() + q.w

    out = wp.zeros(1, dtype=wp.float64)
    wp.launch(k, dim=1, inputs=[Point(1.0, 1.0), out])
    assert out.numpy()[0] == 13 + 2 + 0.5
    assert Point(x=2.0).y == 3.0


def test_gradients_pass_through_methods():
    @wp.kernel
    def k(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        s = Shape(size=x[i])
        for _j in range(i):
            s.grow(x[i] * x[i])
            s.move(wp.vec3d(x[i], 0.0, 0.0))
        y[i] = s.area() * s.center[0] + s.doubled

    values = np.array([0.3, 0.7, -0.4, 0.2])
    x = wp.array(values, requires_grad=True)
    y = wp.zeros(4, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, dim=4, inputs=[x, y])
    tape.backward(grads={y: wp.ones(4, dtype=wp.float64)})

    def by_python(x, i):
        size, center = x + i * (x * x + 0.5), i * x
        return size * size * center + 2 * size

    for i in range(4):
        slope = (by_python(values[i] + 1e-6, i) - by_python(values[i] - 1e-6, i)) / 2e-6
        np.testing.assert_allclose([y.numpy()[i], x.grad.numpy()[i]], [by_python(values[i], i), slope], rtol=1e-6)

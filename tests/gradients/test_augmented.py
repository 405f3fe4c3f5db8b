"""Gradients, products with the Hessian and tangents through `a[i] += x`: of elements that one thread has, and of those
that threads share. All against central differences."""

import numpy as np
import pytest
import warp as wp
from differences import check_program
from tapes import doubles

pytestmark = pytest.mark.protected

N = 6
rng = np.random.default_rng(17)


def numbers(*shape):
    return rng.uniform(0.3, 1.2, shape)


@wp.struct
class Body:
    mass: wp.float64
    velocity: wp.vec3d


@wp.struct
class Arrays:
    x: wp.array(dtype=wp.float64)
    total: wp.array(dtype=wp.float64)


@wp.kernel
def own(a: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] += a[i] * x[i] * x[i]
    y[i] -= wp.sin(a[i])


@wp.kernel
def own_and_read(a: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    a[i] += x[i] * x[i]
    y[i] += a[i] * a[i]
    a[i] -= y[i] * x[i]
    y[i] *= a[i]
    x[i] += y[i]


@wp.kernel
def own_in_loops(a: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    for j in range(i + 2):
        a[i] += wp.sin(a[i] * x[i])
        if a[i] > wp.float64(2.5):
            break
        y[i] += a[i] * x[i]
    y[i] -= a[i]


@wp.kernel
def shared(a: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[0] += a[i] * x[i] * x[i]
    y[i % 3] -= wp.sin(x[i])
    y[(i * 5) % 4 + 1] += x[i] * x[i] * a[i]
    for j in range(i):
        y[j] += a[j] * x[i]


@wp.kernel
def shared_and_plain(a: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    a[i] = x[i] * x[i]
    a[i] += x[i] * wp.float64(2.0)
    y[i / 2] += a[i] * a[i]


@pytest.mark.parametrize("kernel", [own, own_and_read, own_in_loops, shared, shared_and_plain], ids=lambda k: k.key)
@pytest.mark.parametrize("output", [0, 1, 2])
def test_augmented_assignments_of_scalars_are_differentiated(kernel, output):
    def program(*arrays):
        copies = [wp.clone(array, requires_grad=True) for array in arrays]
        wp.launch(kernel, dim=N, inputs=copies)
        return copies[output]

    check_program(program, [numbers(N), numbers(N), numbers(N)], unused=None)


@wp.kernel
def parts_of_vectors(v: wp.array[wp.vec3d], m: wp.array[wp.mat22d], y: wp.array[wp.vec3d]):
    i = wp.tid()
    y[i].x += v[i][1] * v[i][2]
    y[i][i % 3] -= v[i][0] * y[i].x
    y[i].yz += wp.vec2d(m[i][0, 1], m[i][1, 0] * v[i][2])
    m[i][1] += wp.vec2d(v[i][0], v[i][1] * y[i][1])
    m[i][0, 1] -= m[i][1, 1] * v[i][0]
    y[i] += v[i] * m[i][0, 1]
    y[i] -= wp.cross(v[i], y[i]) * m[i][1, 1]


@wp.kernel
def shared_parts_of_vectors(v: wp.array[wp.vec3d], m: wp.array[wp.mat22d], y: wp.array[wp.vec3d]):
    i = wp.tid()
    y[0].x += v[i][1] * v[i][2]
    y[i % 2][i % 3] -= v[i][0] * v[i][0]
    y[1].yz += wp.vec2d(m[i][0, 1], m[i][1, 0] * v[i][2])
    y[(i * 3) % 4] -= v[i] * m[i][0, 1]


@pytest.mark.parametrize("kernel", [parts_of_vectors, shared_parts_of_vectors], ids=lambda k: k.key)
def test_parts_of_vectors_and_matrices(kernel):
    def program(v, m, y):
        copies = [wp.clone(array, requires_grad=True) for array in (v, m, y)]
        wp.launch(kernel, dim=N, inputs=copies)
        return copies[2]

    types = {0: wp.vec3d, 1: wp.mat22d, 2: wp.vec3d}
    check_program(program, [numbers(N, 3), numbers(N, 2, 2), numbers(N, 3)], dtypes=types)


@wp.kernel
def to_bodies(x: wp.array[wp.float64], bodies: wp.array[Body]):
    i = wp.tid()
    bodies[i].mass += x[i] * x[i]
    bodies[i].velocity.y -= x[i] * bodies[i].mass
    bodies[i].velocity += wp.vec3d(x[i], bodies[i].mass, wp.float64(1.0))
    bodies[0].mass += wp.sin(x[i])
    bodies[1].velocity.z -= x[i] * x[i]


@wp.kernel
def from_bodies(bodies: wp.array[Body], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] += bodies[i].mass * bodies[i].mass + wp.dot(bodies[i].velocity, bodies[i].velocity)


@wp.kernel
def own_fields(x: wp.array[wp.float64], bodies: wp.array[Body]):
    i = wp.tid()
    bodies[i].mass += x[i] * x[i]
    bodies[i].velocity.y -= x[i] * bodies[i].mass
    bodies[i].velocity += wp.vec3d(x[i], bodies[i].mass, wp.float64(1.0))
    for j in range(3):
        bodies[i].velocity[j] += bodies[i].velocity[2 - j] * x[i]


@pytest.mark.parametrize("kernel", [own_fields], ids=lambda k: k.key)
def test_fields_of_structs(kernel):
    def program(x):
        bodies = wp.zeros(N, dtype=Body, requires_grad=True)
        y = wp.zeros(N, dtype=wp.float64, requires_grad=True)
        wp.launch(kernel, dim=N, inputs=[x, bodies])
        wp.launch(from_bodies, dim=N, inputs=[bodies, y])
        return y

    check_program(program, [numbers(N)])


@wp.kernel
def shared_fields(x: wp.array[wp.float64], bodies: wp.array[Body]):
    i = wp.tid()
    bodies[i % 2].mass += wp.sin(x[i])
    bodies[1].velocity.z -= x[i] * x[i]
    bodies[0].velocity += wp.vec3d(x[i], x[i] * x[i], wp.float64(1.0))


def test_fields_that_threads_share():
    def program(x):
        bodies = wp.zeros(N, dtype=Body, requires_grad=True)
        y = wp.zeros(N, dtype=wp.float64, requires_grad=True)
        wp.launch(shared_fields, dim=N, inputs=[x, bodies])
        wp.launch(from_bodies, dim=N, inputs=[bodies, y])
        return y

    check_program(program, [numbers(N)])


@wp.kernel
def rows_and_slices(x: wp.array2d[wp.float64], y: wp.array2d[wp.float64]):
    i = wp.tid()
    row = y[i]
    for j in range(3):
        row[j] += x[i, j] * x[i, (j + 1) % 3]
        y[(i + 1) % 2][j] -= x[i, j] * x[i, j]
    end = y[0, 1:]
    end[i % 2] += wp.sin(x[i, 0])


def test_rows_and_slices():
    def program(x):
        y = wp.zeros((N, 3), dtype=wp.float64, requires_grad=True)
        wp.launch(rows_and_slices, dim=N, inputs=[x, y])
        return y

    check_program(program, [numbers(N, 3)])


@wp.func
def add_square(a: wp.array(dtype=wp.Any), i: int, x: wp.Any):
    a[i] += x * x


@wp.kernel
def through_a_function(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    add_square(y, i, x[i])
    add_square(y, 0, x[i])


@wp.kernel
def in_a_struct(s: Arrays):
    i = wp.tid()
    s.total[i] += s.x[i] * s.x[i]
    s.total[0] -= s.x[i]


def test_functions_and_arrays_of_structs():
    def program(x):
        y = wp.zeros(N, dtype=wp.float64, requires_grad=True)
        wp.launch(through_a_function, dim=N, inputs=[x, y])
        s = Arrays()
        s.x, s.total = y, wp.zeros(N, dtype=wp.float64, requires_grad=True)
        wp.launch(in_a_struct, dim=N, inputs=[s])
        return s.total

    check_program(program, [numbers(N)], twice=False)


@wp.kernel
def through_indices(x: wp.array[wp.float64], y: wp.indexedarray[wp.float64]):
    i = wp.tid()
    y[i] += x[i] * x[i]


def test_indexed_arrays_give_each_thread_its_gradient():
    base = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    x = doubles(np.arange(1.0, 5.0), requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(through_indices, dim=4, inputs=[x, base[wp.array([0, 1, 1, 0], dtype=int)]])
    np.testing.assert_array_equal(base.numpy(), [17.0, 13.0])
    tape.backward(grads={base: doubles([2.0, 3.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 12.0, 18.0, 16.0])


@pytest.mark.host_memory("wraps the memory of NumPy arrays")
def test_arrays_that_show_an_element_often_get_all_of_its_gradient():
    memory, slopes = np.zeros(1), np.full(1, 2.0)
    same = wp.array(ptr=memory.ctypes.data, shape=(1000,), strides=(0,), dtype=wp.float64)
    same.grad = wp.array(ptr=slopes.ctypes.data, shape=(1000,), strides=(0,), dtype=wp.float64)
    values = np.linspace(0.0, 1.0, 1000)
    a, x = doubles(np.ones(1000)), doubles(values, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(own, dim=1000, inputs=[a, x, same])
    np.testing.assert_allclose(memory, [(values**2).sum() - 1000 * np.sin(1.0)])
    tape.backward()
    np.testing.assert_allclose(x.grad.numpy(), 4.0 * values)

"""wp.address_of: the addresses of arrays, elements, fields and components; wp.index: brackets as a function."""

import numpy as np
import pytest
import warp as wp


@wp.struct
class Body:
    mass: float
    velocity: wp.vec3
    turn: wp.mat33


def addresses(kernel, *arguments):
    found = wp.zeros(8, dtype=wp.uint64)
    wp.launch(kernel, dim=1, inputs=[*arguments, found])
    return found.numpy()


def test_elements_lie_where_shape_and_strides_say():
    @wp.kernel(enable_backward=False)
    def kernel(a: wp.array2d[float], found: wp.array[wp.uint64]):
        found[0] = wp.address_of(a)
        found[1] = wp.address_of(a[1])
        found[2] = wp.address_of(a[2, 3])
        found[3] = wp.address_of(a[-1, -1])
        row = a[1]
        found[4] = wp.address_of(row[2])

    whole = wp.zeros((4, 5), dtype=float)
    expected = np.array([0, 20, 2 * 20 + 12, 3 * 20 + 16, 20 + 8], dtype=np.uint64)
    assert (addresses(kernel, whole)[:5] - np.uint64(whole.ptr)).tolist() == expected.tolist()
    part = whole[:, 1::2]
    expected = np.array([0, 20, 20 * 2 + 8 * 1, 3 * 20 + 8], dtype=np.uint64)

    @wp.kernel(enable_backward=False)
    def strided(a: wp.array2d[float], found: wp.array[wp.uint64]):
        found[0] = wp.address_of(a)
        found[1] = wp.address_of(a[1])
        found[2] = wp.address_of(a[2, 1])
        found[3] = wp.address_of(a[-1, -1])

    assert (addresses(strided, part)[:4] - np.uint64(part.ptr)).tolist() == expected.tolist()


def test_fields_and_components_lie_where_numpy_says():
    @wp.kernel(enable_backward=False)
    def kernel(bodies: wp.array[Body], i: int, found: wp.array[wp.uint64]):
        found[0] = wp.address_of(bodies[i])
        found[1] = wp.address_of(bodies[i].mass)
        found[2] = wp.address_of(bodies[i].velocity)
        found[3] = wp.address_of(bodies[i].velocity[i])
        found[4] = wp.address_of(bodies[i].velocity.z)
        found[5] = wp.address_of(bodies[i].turn[i])
        found[6] = wp.address_of(bodies[i].turn[2, 1])
        found[7] = wp.address_of(bodies[i].velocity.yz)

    bodies = wp.zeros(3, dtype=Body)
    kind = np.dtype(Body.numpy_dtype())
    places = {name: kind.fields[name][1] for name in kind.names}
    velocity, turn = places["velocity"], places["turn"]
    inside = [0, places["mass"], velocity, velocity + 4, velocity + 8, turn + 12, turn + 28, velocity + 4]
    found = addresses(kernel, bodies, 1) - np.uint64(bodies.ptr)
    assert found.tolist() == [kind.itemsize + each for each in inside]


def test_memory_at_an_address_is_the_element():
    @wp.kernel(enable_backward=False)
    def kernel(a: wp.array2d[wp.vec2], out: wp.array[float]):
        other = wp.array(ptr=wp.address_of(a[1, 1].y), shape=(1,), dtype=float)
        out[0] = other[0]
        other[0] = 9.0

    numbers = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    a, out = wp.array(numbers, dtype=wp.vec2), wp.zeros(1, dtype=float)
    wp.launch(kernel, dim=1, inputs=[a, out])
    assert out.numpy()[0] == numbers[1, 1, 1]
    numbers[1, 1, 1] = 9.0
    assert (a.numpy() == numbers).all()


def local(a: wp.array[float]):
    x = a[0]
    a[1] = float(wp.address_of(x))


def computed(a: wp.array[float]):
    a[1] = float(wp.address_of(a[0] + 1.0))


def none_at_all(a: wp.array[float]):
    a[1] = float(wp.address_of())


def scattered_components(a: wp.array[wp.vec3]):
    a[0] = wp.vec3(float(wp.address_of(a[1].xz)))


@pytest.mark.parametrize(
    "function, message",
    [
        (local, "has no address"),
        (computed, "a value that is computed has no address"),
        (none_at_all, "takes one argument, got 0"),
        (scattered_components, "do not lie side by side"),
    ],
)
def test_other_values_have_no_address(function, message):
    kernel = wp.kernel(function, module="unique")
    kind = wp.vec3 if function is scattered_components else float
    with pytest.raises(wp.CompileError, match=message):
        wp.launch(kernel, dim=1, inputs=[wp.zeros(3, dtype=kind)])


def test_index_is_brackets_as_a_function():
    @wp.kernel
    def kernel(v: wp.vec3, m: wp.mat22, q: wp.quat, t: wp.transform, i: int, out: wp.array[float]):
        out[0] = wp.index(v, 1)
        out[1] = wp.index(v, i)
        out[2] = wp.index(m, 1, 0)
        row = wp.index(m, i)
        out[3] = row[1]
        out[4] = wp.index(q, 3)
        out[5] = wp.index(t, 6)
        out[6] = wp.index(out, 0)

    out = wp.zeros(7, dtype=float)
    values = [wp.vec3(1, 2, 3), wp.mat22(1, 2, 3, 4), wp.quat(1, 2, 3, 4), wp.transform(1, 2, 3, 4, 5, 6, 7), 1]
    wp.launch(kernel, dim=1, inputs=[*values, out])
    assert out.numpy().tolist() == [2.0, 2.0, 3.0, 4.0, 4.0, 7.0, 2.0]


def test_gradients_go_through_index():
    @wp.kernel
    def kernel(v: wp.array[wp.vec3], i: int, out: wp.array[float]):
        out[0] = wp.index(v[0], i) * wp.index(v[0], 2)

    v, out = (
        wp.array([[2.0, 3.0, 5.0]], dtype=wp.vec3, requires_grad=True),
        wp.zeros(1, dtype=float, requires_grad=True),
    )
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[v, 1, out])
    tape.backward(out)
    assert v.grad.numpy().tolist() == [[0.0, 5.0, 3.0]]

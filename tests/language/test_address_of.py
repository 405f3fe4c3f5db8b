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


@wp.kernel
def sums_of_own_arrays(x: wp.array[float], n: int, out: wp.array2d[float]):
    i = wp.tid()
    z = wp.zeros(shape=(2, 4), dtype=float)
    if x[i] > 1.5:  # lanes that leave their array as it is
        for j in range(8):
            z[j // 4, j % 4] = x[i] * float(j + 1)
    flat = wp.array(ptr=z.ptr, shape=(8,), dtype=float)
    for j in range(n):
        flat[j] += 0.5
    row = wp.array(ptr=wp.address_of(z[1]), shape=(4,), dtype=float)
    row[3] = 2.0 * row[3]
    out[i, 0] = flat[7]
    out[i, 1] = z[0, 1]
    out[i, 2] = float(wp.address_of(z[1, 2]) - z.ptr)
    out[i, 3] = row[0]


def test_an_array_that_a_kernel_makes_has_an_address(device):
    numbers = np.arange(100, dtype=np.float32) % 7
    x, out = wp.array(numbers, device=device), wp.zeros((100, 4), dtype=float, device=device)
    wp.launch(sums_of_own_arrays, 100, inputs=[x, 8, out], device=device)
    taken = np.where(numbers > 1.5, numbers, 0.0)
    expected = np.stack([2 * (8 * taken + 0.5), 2 * taken + 0.5, np.full(100, 24.0), 5 * taken + 0.5], axis=1)
    np.testing.assert_array_equal(out.numpy(), expected)


@wp.func
def swap_halves(z: wp.array[wp.vec2]):
    front = wp.array(ptr=z.ptr, shape=(2,), dtype=wp.vec4)
    kept = front[0]
    front[0] = front[1]
    front[1] = kept


def test_functions_take_the_address_of_their_callers_array(device):
    @wp.kernel(enable_backward=False)
    def kernel(out: wp.array2d[wp.vec2]):
        i = wp.tid()
        for turn in range(2):  # zero again in the second turn
            z = wp.zeros(shape=(4,), dtype=wp.vec2)
            for j in range(4):
                z[j] += wp.vec2(float(i), float(j + turn))
            swap_halves(z)
            for j in range(4):
                out[i, j] = z[j]

    out = wp.zeros((40, 4), dtype=wp.vec2, device=device)
    wp.launch(kernel, 40, inputs=[out], device=device)
    i, j = np.meshgrid(np.arange(40), [3, 4, 1, 2], indexing="ij")
    np.testing.assert_array_equal(out.numpy(), np.stack([i, j], axis=2))


def test_one_of_several_own_arrays_is_chosen_by_its_address(device):
    @wp.kernel(enable_backward=False)
    def kernel(out: wp.array[float]):
        i = wp.tid()
        a = wp.zeros(shape=(3,), dtype=float)
        b = wp.zeros(shape=(3,), dtype=float)
        chosen = wp.array(ptr=wp.where(i % 3 == 0, a.ptr, b.ptr), shape=(3,), dtype=float)
        chosen[i % 2] = float(i)
        out[i] = 100.0 * a[i % 2] + b[i % 2]

    out = wp.zeros(50, dtype=float, device=device)
    wp.launch(kernel, 50, inputs=[out], device=device)
    i = np.arange(50)
    np.testing.assert_array_equal(out.numpy(), np.where(i % 3 == 0, 100 * i, i))


def test_gradients_go_through_views_of_own_arrays(device):
    @wp.kernel
    def kernel(x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        z = wp.zeros(shape=(4,), dtype=float)
        for j in range(4):
            z[j] = x[i] * float(j + 1)
        pairs = wp.array(ptr=z.ptr, shape=(2, 2), dtype=float)
        pairs[1, 1] = pairs[0, 1] * pairs[1, 0]
        out[i] = z[3] + pairs[0, 0]

    x = wp.array(np.arange(1, 21, dtype=np.float32), requires_grad=True, device=device)
    out = wp.zeros(20, dtype=float, requires_grad=True, device=device)
    with wp.Tape() as tape:
        wp.launch(kernel, 20, inputs=[x, out], device=device)
    out.grad.fill_(1.0)
    tape.backward()
    numbers = x.numpy()
    np.testing.assert_array_equal(out.numpy(), 6 * numbers**2 + numbers)
    np.testing.assert_array_equal(x.grad.numpy(), 12 * numbers + 1)


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

"""wp.launch(..., adjoint=True): gradients of structs, of arrays of structs, and of arguments that are no arrays."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


@wp.struct
class Spring:
    stiffness: float
    rest: wp.array(dtype=float)


@wp.struct
class Body:
    scale: float
    kind: int
    x: wp.array(dtype=float)
    spring: Spring
    axis: wp.vec3
    shape: wp.mat22
    turn: wp.quat
    pose: wp.transform


@wp.kernel
def parabola(s: Spring, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s.stiffness * s.rest[i] * s.rest[i]


@wp.kernel
def energy(b: Body, total: wp.array(dtype=float)):
    i = wp.tid()
    x = b.x[i]
    value = b.scale * x * x + b.spring.stiffness * wp.sin(b.spring.rest[i] * x) + b.axis[i] * x
    value += b.shape[0, 1] * b.shape[1, 0] * x + b.turn[i] * b.turn[3] * x
    value += wp.transform_get_translation(b.pose)[i] * x * float(b.kind)
    wp.atomic_add(total, 0, value)


def numbers_of_body(body):
    """Its numbers with a derivative, as one row, but for arrays."""
    fields = [body.scale, body.spring.stiffness, *body.axis, *body.shape[0], *body.shape[1], *body.turn, *body.pose]
    return np.array([float(one) for one in fields])


def body_of(numbers, x, rest, device):
    body = Body()
    body.scale, body.kind, body.spring.stiffness = float(numbers[0]), 2, float(numbers[1])
    body.axis, body.shape = wp.vec3(*numbers[2:5]), wp.mat22(*numbers[5:9])
    body.turn, body.pose = wp.quat(*numbers[9:13]), wp.transform(*numbers[13:20])
    body.x = wp.array(x, dtype=float, device=device)
    body.spring.rest = wp.array(rest, dtype=float, device=device)
    return body


def energy_in_numpy(numbers, x, rest):
    total = numbers[0] * x**2 + numbers[1] * np.sin(rest * x) + numbers[2:5] * x + numbers[6] * numbers[7] * x
    return (total + numbers[9:12] * numbers[12] * x + 2.0 * numbers[13:16] * x).sum()


def slopes(function, values):
    """Central differences in float64."""
    values, found = np.asarray(values, dtype=np.float64), []
    for i in range(len(values)):
        ends = []
        for step in (1e-6, -1e-6):
            moved = values.copy()
            moved[i] += step
            ends.append(function(moved))
        found.append((ends[0] - ends[1]) / 2e-6)
    return np.array(found)


def test_the_arrays_and_numbers_of_a_struct_get_their_gradients(device):
    s, gradient = Spring(), Spring()
    s.stiffness, s.rest = 2.0, wp.array([1.0, 2.0, 3.0], dtype=float, device=device)
    gradient.stiffness, gradient.rest = 0.0, wp.zeros(3, device=device)
    y, seed = wp.zeros(3, device=device), wp.ones(3, device=device)
    wp.launch(parabola, 3, [s], [y], [gradient], [seed], device=device, adjoint=True)
    np.testing.assert_array_equal(gradient.rest.numpy(), [4.0, 8.0, 12.0])
    assert gradient.stiffness == 14.0
    wp.launch(parabola, 3, [s], [y], [gradient], [seed], device=device, adjoint=True)
    np.testing.assert_array_equal(gradient.rest.numpy(), [8.0, 16.0, 24.0])
    assert gradient.stiffness == 28.0, "gradients are added"
    np.testing.assert_array_equal(seed.numpy(), np.ones(3))
    assert s.stiffness == 2.0


def test_structs_in_structs_vectors_matrices_quaternions_and_transforms(device):
    rng = np.random.default_rng(1)
    numbers, x, rest = rng.uniform(-1, 1, 20), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)
    body = body_of(numbers, x, rest, device)
    gradient = body_of(np.zeros(20), np.zeros(3), np.zeros(3), device)
    total, seed = wp.zeros(1, device=device), wp.full(1, 0.5, device=device)
    wp.launch(energy, 3, [body], [total], [gradient], [seed], device=device, adjoint=True)
    by_numbers = 0.5 * slopes(lambda moved: energy_in_numpy(moved, x, rest), numbers)
    assert np.count_nonzero(by_numbers) >= 12
    np.testing.assert_allclose(numbers_of_body(gradient), by_numbers, rtol=1e-4, atol=1e-5)
    by_x = 0.5 * slopes(lambda moved: energy_in_numpy(numbers, moved, rest), x)
    by_rest = 0.5 * slopes(lambda moved: energy_in_numpy(numbers, x, moved), rest)
    np.testing.assert_allclose(gradient.x.numpy(), by_x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient.spring.rest.numpy(), by_rest, rtol=1e-4, atol=1e-5)
    assert gradient.kind == 2


@wp.kernel
def weighted(scale: float, axis: wp.vec3, turn: wp.mat22, n: int, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = scale * scale * axis[i] * x[i] + turn[0, 1] * float(n)


def test_vectors_matrices_and_arrays_of_one_element_take_the_gradients_of_numbers(device):
    x, y = wp.array([1.0, 2.0, 3.0], dtype=float, device=device), wp.zeros(3, device=device)
    axis, turn, scale = wp.vec3(), wp.mat22(), wp.zeros(1, device=device)
    inputs = [3.0, (4.0, 5.0, 6.0), wp.mat22(1.0, 2.0, 3.0, 4.0), 7, x]
    given = [scale, axis, turn, 5, None]
    seed = wp.ones(3, device=device)
    wp.launch(weighted, 3, inputs, [y], given, [seed], device=device, adjoint=True)
    assert scale.numpy()[0] == 2.0 * 3.0 * (4.0 + 10.0 + 18.0)
    assert list(axis) == [9.0, 18.0, 27.0]
    assert turn == wp.mat22(0.0, 21.0, 0.0, 0.0)


def test_other_entries_for_arguments_that_are_no_arrays_are_not_looked_at(device):
    x, y = wp.ones(3, device=device), wp.zeros(3, device=device)
    gradient, seed, axis = wp.zeros(3, device=device), wp.ones(3, device=device), wp.vec3(1.0, 2.0, 3.0)
    for entry in (axis, 1.0, None, "anything", wp.vec2(), wp.vec3d(), [0.0, 0.0, 0.0]):
        gradient.zero_()
        given = [0.0, entry, None, 0, gradient]
        wp.launch(weighted, 3, [2.0, axis, wp.mat22(), 1, x], [y], given, [seed], device=device, adjoint=True)
        np.testing.assert_array_equal(gradient.numpy(), [4.0, 8.0, 12.0])
        assert axis == wp.vec3(1.0, 2.0, 3.0), "the argument itself is no gradient of it"


def test_gradients_in_a_struct_that_lie_in_another_way_or_are_left_out(device):
    s, gradient = Spring(), Spring()
    s.stiffness = 2.0
    s.rest = wp.array([1.0, 2.0, 3.0], dtype=float, device=device, requires_grad=True)
    holder = wp.zeros(6, device=device)
    gradient.rest = holder[::2]
    y, seed = wp.zeros(3, device=device), wp.ones(3, device=device)
    wp.launch(parabola, 3, [s], [y], [gradient], [seed], device=device, adjoint=True)
    np.testing.assert_array_equal(holder.numpy(), [4.0, 0.0, 8.0, 0.0, 12.0, 0.0])
    np.testing.assert_array_equal(s.rest.grad.numpy(), np.zeros(3))
    only_number = Spring()
    wp.launch(parabola, 3, [s], [y], [only_number], [seed], device=device, adjoint=True)
    assert only_number.stiffness == 14.0
    np.testing.assert_array_equal(s.rest.grad.numpy(), [4.0, 8.0, 12.0])


def test_a_command_takes_gradients_of_structs_and_numbers(device):
    s, gradient, other = Spring(), Spring(), Spring()
    s.stiffness, s.rest = 2.0, wp.array([1.0, 2.0, 3.0], dtype=float, device=device)
    gradient.rest, other.rest = wp.zeros(3, device=device), wp.zeros(3, device=device)
    y, seed = wp.zeros(3, device=device), wp.ones(3, device=device)
    command = wp.launch(parabola, 3, [s], [y], [gradient], [seed], device=device, adjoint=True, record_cmd=True)
    assert gradient.stiffness == 0.0
    command.launch()
    command.set_param_by_name("s", other, adjoint=True)
    command.launch()
    for one in (gradient, other):
        assert one.stiffness == 14.0
        np.testing.assert_array_equal(one.rest.numpy(), [4.0, 8.0, 12.0])


@wp.struct
class Part:
    weight: float
    x: wp.array(dtype=float)


@wp.kernel
def of_parts(parts: wp.array(dtype=Part), total: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(total, 0, parts[i].weight * parts[i].x[j] * parts[i].x[j])


def part(weight, x, device):
    made = Part()
    made.weight, made.x = weight, wp.array(x, dtype=float, device=device)
    return made


def test_arrays_in_the_elements_of_an_array_get_theirs(device):
    values = [part(2.0, [1.0, 2.0, 3.0], device), part(3.0, [4.0, 5.0, 6.0], device)]
    slots = [part(0.0, np.zeros(3), device) for _ in range(2)]
    parts, gradient = wp.array(values, dtype=Part, device=device), wp.array(slots, dtype=Part, device=device)
    total, seed = wp.zeros(1, device=device), wp.ones(1, device=device)
    wp.launch(of_parts, (2, 3), [parts], [total], [gradient], [seed], device=device, adjoint=True)
    np.testing.assert_array_equal(slots[0].x.numpy(), [4.0, 8.0, 12.0])
    np.testing.assert_array_equal(slots[1].x.numpy(), [24.0, 30.0, 36.0])
    assert [one.weight for one in gradient.list()] == [14.0, 77.0]


def test_numbers_with_a_derivative_in_loops_and_branches(device):
    @wp.kernel
    def steps(rate: float, n: int, x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        value = x[i]
        for _ in range(n):
            if value > 1.0:
                value = value * rate
            else:
                value = wp.sin(value) + rate
        y[i] = value

    rng = np.random.default_rng(2)
    start = rng.uniform(0.0, 2.0, 700)

    def in_numpy(rate):
        value = start.copy()
        for _ in range(3):
            value = np.where(value > 1.0, value * rate, np.sin(value) + rate)
        return value.sum()

    x, y = wp.array(start, dtype=float, device=device), wp.zeros(700, device=device)
    gradient, seed = wp.zeros(1, device=device), wp.ones(700, device=device)
    wp.launch(steps, 700, [0.7, 3, x], [y], [gradient], [seed], device=device, adjoint=True)
    np.testing.assert_allclose(gradient.numpy(), slopes(lambda v: in_numpy(v[0]), [0.7]), rtol=1e-4)


def test_a_gradient_that_does_not_fit_is_an_error(device):
    s, y, seed = Spring(), wp.zeros(3, device=device), wp.ones(3, device=device)
    s.stiffness, s.rest = 2.0, wp.ones(3, device=device)

    def launch(gradient):
        wp.launch(parabola, 3, [s], [y], [gradient], [seed], device=device, adjoint=True)

    with pytest.raises(TypeError, match="the gradient given for argument 1 of kernel 'parabola', a Spring, is a Part"):
        launch(part(0.0, np.zeros(3), device))
    wrong = Spring()
    wrong.rest = wp.zeros(2, device=device)
    with pytest.raises(ValueError, match=r"for 'rest' of argument 1 of kernel 'parabola' is float32 of shape \(2,\)"):
        launch(wrong)
    values = wp.array([part(1.0, np.ones(3), device)], dtype=Part, device=device)
    gradients = wp.array([part(0.0, np.zeros(2), device)], dtype=Part, device=device)
    with pytest.raises(ValueError, match="in the elements of an array of Part has another shape or other strides"):
        wp.launch(of_parts, (1, 3), [values], [y], [gradients], [seed], device=device, adjoint=True)

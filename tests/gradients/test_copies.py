"""Gradients of copies by the host: of every layout and dtype, within one memory, from one device to another."""

import numpy as np
import protected_device
import pytest
import tapes
import warp as wp

RNG = np.random.default_rng(29)

DEVICES = ["cpu", protected_device.NAME]


@wp.kernel
def cube(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = x[i] * x[i] * x[i]


@wp.struct
class Body:
    name: int
    weight: wp.float16
    at: wp.vec3d
    turned: wp.mat22f


@pytest.fixture(autouse=True)
def second_device():
    protected_device.add()


def array(values, device, **options):
    return wp.array(values, dtype=wp.float64, device=device, requires_grad=True, **options)


@pytest.mark.parametrize("to", DEVICES)
@pytest.mark.parametrize("source", DEVICES)
def test_gradients_go_back_from_one_device_to_another(source, to):
    values, seed = RNG.standard_normal(5), RNG.standard_normal(5)
    x, y = array(values, source), array(np.zeros(5), to)
    with wp.Tape() as tape:
        wp.launch(cube, dim=5, inputs=[x], device=source)
        wp.copy(y, x)
        wp.launch(cube, dim=5, inputs=[y], device=to)
        wp.copy(y, x, dest_offset=3, src_offset=1, count=2)
        back = y.to("cpu", requires_grad=True)
    tape.backward(grads={back: wp.array(seed, dtype=wp.float64, device="cpu")})
    # back is x^9 in its first three elements, and x^3 of elements 1 and 2 in the others.
    expected = np.zeros(5)
    expected[:3] = 9.0 * values[:3] ** 8 * seed[:3]
    expected[1:3] += 3.0 * values[1:3] ** 2 * seed[3:]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-13)
    assert not y.grad.numpy().any()
    tape.zero()
    assert not x.grad.numpy().any()
    tape.backward(grads={back: wp.array(seed, dtype=wp.float64, device="cpu")})
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("to", DEVICES)
def test_assignments_to_parts_of_arrays_elsewhere_have_gradients(to):
    x, y = array(RNG.standard_normal((3, 4)), "cpu"), array(np.zeros((4, 6)), to)
    seed = RNG.standard_normal((4, 6))
    with wp.Tape() as tape:
        y[:, 1:4] = x.transpose()
        y[0].assign(wp.clone(x[:2, 1:], requires_grad=True).reshape(6))
    tape.backward(grads={y: wp.array(seed, dtype=wp.float64, device=to)})
    expected = seed[:, 1:4].T.copy()
    expected[:, 0] = 0.0  # overwritten
    expected[:2, 1:] += seed[0].reshape(2, 3)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("to", DEVICES)
def test_floats_of_structs_have_gradients(to):
    fields = {"name": 3, "weight": 2.5, "at": wp.vec3d(1.0, 2.0, 3.0), "turned": wp.mat22f(1.0, 2.0, 3.0, 4.0)}
    body = Body()
    for name, value in fields.items():
        setattr(body, name, value)
    x = wp.array([body, body], dtype=Body, device="cpu", requires_grad=True)
    y = wp.zeros(2, dtype=Body, device=to, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
    for _ in range(2):
        y.grad.assign([body, body])
        tape.backward()
    for one in x.grad.numpy():
        assert one["weight"] == 5.0
        np.testing.assert_array_equal(one["at"], [2.0, 4.0, 6.0])
        np.testing.assert_array_equal(one["turned"], [[2.0, 4.0], [6.0, 8.0]])
    assert y.numpy()["name"].tolist() == [3, 3]


def test_elements_that_are_shown_often_get_the_sum_of_all_gradients():
    x, y = array([1.0, 2.0], "cpu"), array(np.zeros((3, 2)), "cpu")
    rows = wp.array(ptr=x.ptr, dtype=wp.float64, shape=(3, 2), strides=(0, 8), device="cpu")
    rows.grad = wp.array(ptr=x.grad.ptr, dtype=wp.float64, shape=(3, 2), strides=(0, 8), device="cpu")
    seed = RNG.standard_normal((3, 2))
    with wp.Tape() as tape:
        wp.copy(y, rows)
    tape.backward(grads={y: wp.array(seed, dtype=wp.float64, device="cpu")})
    np.testing.assert_allclose(x.grad.numpy(), seed.sum(axis=0), rtol=1e-15)


def test_a_copy_to_elements_that_are_shown_often_has_no_gradient():
    x, y = array([[1.0, 2.0]] * 3, "cpu"), array([0.0, 0.0], "cpu")
    rows = wp.array(ptr=y.ptr, dtype=wp.float64, shape=(3, 2), strides=(0, 8), device="cpu")
    rows.grad = wp.array(ptr=y.grad.ptr, dtype=wp.float64, shape=(3, 2), strides=(0, 8), device="cpu")
    with wp.Tape() as tape:
        wp.copy(rows, x)
    y.grad.fill_(1.0)
    with pytest.raises(wp.UsageError, match=r"of shape \(3, 2\) that shows some elements several times"):
        tape.backward()


def test_a_gradient_that_comes_after_the_copy_goes_back():
    x, y = tapes.doubles([2.0, 3.0]), tapes.doubles([0.0, 0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
    x.requires_grad = True
    tape.backward(grads={y: tapes.doubles([5.0, 7.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [5.0, 7.0])


def test_copies_on_a_tape_are_told_apart_from_other_writes():
    x, y = tapes.doubles([2.0, 3.0]), tapes.doubles([0.0, 0.0])
    with wp.Tape() as tape:
        wp.copy(y, x)
        y.fill_(1.0)
        y.assign(np.array([1.0, 2.0]))
    copy, fill, _ = tape.launches
    assert copy.to is y and copy.source is x and repr(copy) == "<copy of (2,)>"
    assert fill.to is y and fill.source is None and repr(fill) == "<write of (2,)>"
    assert fill.uses() == [(y, True)] and copy.uses() == [(y, True), (x, False)]


def test_the_second_derivative_of_a_program_with_copies():
    values, vector = RNG.standard_normal(4), RNG.standard_normal(4)

    def program(x):
        y = wp.zeros_like(x)
        wp.copy(y, x)
        wp.copy(y[1:], y[:3])
        wp.launch(cube, dim=4, inputs=[y], device="cpu")
        return y

    (product,) = wp.autograd.hvp(program, inputs=[array(values, "cpu")], vectors=[array(vector, "cpu")])
    expected = 6.0 * values * vector  # of x0^3 + x0^3 + x1^3 + x2^3
    expected[0], expected[3] = 2.0 * expected[0], 0.0
    np.testing.assert_allclose(product.numpy(), expected, rtol=1e-14)

"""Gradients that the caller supplies: read in place if the array is overwritten as a whole, copied otherwise,
never written, also if they share memory with other arrays."""

import numpy as np
import pytest
import warp as wp
from tapes import doubles

RNG = np.random.default_rng(0)
F = wp.array2d[wp.float64]
SHAPES = (3, 5), (5, 3)


@wp.kernel
def whole(x: F, y: F):
    i, j = wp.tid()
    y[j, i] = x[i, j] * x[i, j]


@wp.kernel
def inner(x: F, y: F):
    i, j = wp.tid()
    if i > 0:
        y[j, i] = x[i, j] * x[i, j]


@wp.kernel
def added(x: F, y: F):
    i, j = wp.tid()
    y[j, i] = y[j, i] * 0.5 + x[i, j] * x[i, j]


@wp.kernel
def scaled(y: F, z: F):
    i, j = wp.tid()
    z[i, j] = wp.sin(y[i, j])


def arrays():
    x = doubles(RNG.normal(size=(3, 5)), requires_grad=True)
    y, z = (doubles(RNG.normal(size=(5, 3)), requires_grad=True) for _ in range(2))
    return x, y, z, RNG.normal(size=(5, 3))


def check(x, y, of_x, of_y, seed, given):
    np.testing.assert_allclose(x.grad.numpy(), of_x, rtol=1e-12)
    np.testing.assert_allclose(y.grad.numpy(), of_y, rtol=1e-12)
    assert (seed.numpy() == given).all()


@pytest.mark.parametrize("stale", [0.0, 7.0])
def test_an_array_that_is_overwritten_as_a_whole(stale):
    x, y, _, given = arrays()
    y.grad.fill_(stale)
    seed = doubles(given)
    tape = wp.Tape()
    with tape:
        wp.launch(whole, (3, 5), [x, y])
    for times in (1, 2):
        tape.backward(grads={y: seed})
        check(x, y, times * 2 * x.numpy() * given.T, np.zeros((5, 3)), seed, given)
    y.retain_grad = True
    x.grad.zero_()
    tape.backward(grads={y: seed})
    check(x, y, 2 * x.numpy() * given.T, given, seed, given)


def test_elements_that_are_left_keep_their_gradient():
    x, y, _, given = arrays()
    seed = doubles(given)
    tape = wp.Tape()
    with tape:
        wp.launch(inner, (3, 5), [x, y])
    tape.backward(grads={y: seed})
    rows = np.array([0, 1, 1])
    check(x, y, 2 * x.numpy() * given.T * rows[:, None], given * (1 - rows), seed, given)
    for grid in ((2, 5), (3, 4)):
        x.grad.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(whole, grid, [x, y])
        tape.backward(grads={y: seed})
        inside = np.zeros((3, 5))
        inside[: grid[0], : grid[1]] = 1
        check(x, y, 2 * x.numpy() * given.T * inside, given * (1 - inside.T), seed, given)


def test_an_array_that_is_read_too():
    x, y, _, given = arrays()
    seed = doubles(given)
    tape = wp.Tape()
    with tape:
        wp.launch(added, (3, 5), [x, y])
    tape.backward(grads={y: seed})
    check(x, y, 2 * x.numpy() * given.T, 0.5 * given, seed, given)


def test_what_comes_after_the_launch_that_overwrites():
    x, y, z, given = arrays()
    seed, of_z = doubles(given), doubles(RNG.normal(size=(5, 3)))
    tape = wp.Tape()
    with tape:
        wp.launch(whole, (3, 5), [x, y])
        wp.launch(scaled, (5, 3), [y, z])
    tape.backward(grads={y: seed, z: of_z})
    total = given + of_z.numpy() * np.cos(y.numpy())
    check(x, y, 2 * x.numpy() * total.T, np.zeros((5, 3)), seed, given)
    tape.zero()
    x.grad.zero_()
    tape.backward(grads={z: of_z, y: seed})
    check(x, y, 2 * x.numpy() * total.T, np.zeros((5, 3)), seed, given)


def test_an_array_that_is_overwritten_twice():
    x, y, _, given = arrays()
    seed = doubles(given)
    tape = wp.Tape()
    with tape:
        wp.launch(added, (3, 5), [x, y])
        wp.launch(whole, (3, 5), [x, y])
    tape.backward(grads={y: seed})
    check(x, y, 2 * x.numpy() * given.T, np.zeros((5, 3)), seed, given)


def test_a_gradient_that_lies_in_the_gradient_of_another_array():
    x, y, z, given = arrays()
    tape = wp.Tape()
    with tape:
        wp.launch(whole, (3, 5), [x, y])
        wp.launch(scaled, (5, 3), [z, wp.zeros_like(y, requires_grad=True)])
    z.grad.assign(doubles(given))
    tape.backward(grads={y: z.grad})
    check(x, y, 2 * x.numpy() * given.T, np.zeros((5, 3)), z.grad, given)

    shared = doubles(np.zeros((3, 5)), requires_grad=True)
    same = wp.array(ptr=shared.grad.ptr, shape=(5, 3), dtype=wp.float64)
    y = doubles(np.zeros((5, 3)), requires_grad=True)
    shared.assign(x)
    same.assign(doubles(given))
    tape = wp.Tape()
    with tape:
        wp.launch(whole, (3, 5), [shared, y])
    tape.backward(grads={y: same})
    before = given.reshape(3, 5)  # the memory's contents, to which the gradient is added
    np.testing.assert_allclose(shared.grad.numpy(), before + 2 * x.numpy() * given.T, rtol=1e-12)


def test_two_arrays_of_one_memory():
    x, y, _, given = arrays()
    tape = wp.Tape()
    with tape:
        wp.launch(whole, (3, 5), [x, y])
    part = np.full((1, 3), 2.5)
    tape.backward(grads={y: doubles(given), y[1:2]: doubles(part)})
    total = given.copy()
    total[1] = 2.5
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy() * total.T, rtol=1e-12)


def test_a_gradient_with_other_strides():
    x, y, _, given = arrays()
    seed = doubles(np.ascontiguousarray(given.T)).transpose()
    tape = wp.Tape()
    with tape:
        wp.launch(whole, (3, 5), [x, y])
    tape.backward(grads={y: seed})
    check(x, y, 2 * x.numpy() * given.T, np.zeros((5, 3)), seed, given)


def test_a_gradient_on_another_device(device):
    x, y = (wp.array(RNG.normal(size=shape), dtype=wp.float64, requires_grad=True, device=device) for shape in SHAPES)
    given = RNG.normal(size=SHAPES[1])
    seed = wp.array(given, dtype=wp.float64, device="cpu")
    with wp.Tape() as tape:
        wp.launch(whole, SHAPES[0], [x, y], device=device)
    tape.backward(grads={y: seed})
    check(x, y, 2 * x.numpy() * given.T, np.zeros((5, 3)), seed, given)


def test_a_gradient_that_lies_in_the_gradient_of_its_array_in_another_order():
    x, y, _, given = arrays()
    y.grad.assign(doubles(given))
    seed = y.grad[::-1]
    tape = wp.Tape()
    with tape:
        wp.launch(whole, (3, 5), [x, y])
    tape.backward(grads={y: seed})
    check(x, y, 2 * x.numpy() * given[::-1].T, given, seed, given[::-1])

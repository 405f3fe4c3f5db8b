"""wp.autograd.hvp: products with Hessians against differences of gradients, closed forms, and by their symmetry."""

import numpy as np
import pytest
import warp as wp
from runs import check_hessian
from tapes import doubles, gradients
from test_tangents import KERNELS, arguments, difference, one_of_two

RNG = np.random.default_rng(17)


@pytest.fixture(autouse=True)
def _room_for_loops():
    before = wp.config.gradient_loop_bytes
    yield
    wp.config.gradient_loop_bytes = before


@wp.kernel
def energy(x: wp.array[wp.vec3d], k: wp.float64, loss: wp.array[wp.float64]):
    i = wp.tid()
    j = (i + 1) % x.shape[0]
    stretch = wp.length(x[i] - x[j]) - wp.float64(1.0)
    s = wp.float64(0.0)
    for n in range(i % 3):
        s = s * stretch + wp.sin(x[i][n])
    wp.atomic_add(loss, 0, k * stretch * stretch + s * s)


def test_the_hessian_times_a_vector():
    x, v = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 3))

    def gradient(moved):
        array = wp.array(moved[0], dtype=wp.vec3d, requires_grad=True)
        loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        return gradients(energy, 6, [array, 2.0], [loss], [np.ones(1)])[0]

    given = wp.array(x, dtype=wp.vec3d)
    loss = wp.zeros(1, dtype=wp.float64)
    found = wp.autograd.hvp(energy, 6, [given, 2.0], [loss], vectors=[wp.array(v, dtype=wp.vec3d)])
    np.testing.assert_allclose(found[0].numpy(), difference(gradient, [x], [v]), rtol=1e-6, atol=1e-7)
    assert found[1] is None and loss.numpy()[0] == 0.0 and given.grad is None


@pytest.mark.parametrize("name", KERNELS)
def test_hessians_of_loops_branches_and_memory(name):
    kernel, values, others, dtype, dim = KERNELS[name]
    size = max(dim, 12)
    weights = RNG.standard_normal(size)

    def gradient(moved):
        given = arguments(moved, others, dtype)
        given[0].requires_grad = True
        return gradients(kernel, dim, given, [doubles(np.zeros(size), requires_grad=True)], [weights])[0]

    v = RNG.standard_normal(values[0].shape)
    given, y = arguments(values, others, dtype), doubles(np.zeros(size))
    vectors = [wp.array(v, dtype=dtype)]
    found = wp.autograd.hvp(kernel, dim, given, [y], vectors=vectors, weights=[doubles(weights)])
    expected = difference(gradient, values, [v])
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=2e-6, atol=1e-6 * max(1.0, np.abs(expected).max()))
    np.testing.assert_array_equal(y.numpy(), 0.0)


def hessian(kernel, dim, inputs, outputs):
    """By the first input, column by column."""
    size = inputs[0].size
    columns = [wp.autograd.hvp(kernel, dim, inputs, outputs, vectors=[doubles(unit)])[0] for unit in np.eye(size)]
    return np.stack([column.numpy() for column in columns], axis=1)


@wp.kernel
def mixed(x: wp.array[wp.float64], work: wp.array[wp.float64], y: wp.array[wp.float64]):
    n = x.shape[0]
    local = wp.zeros(shape=3, dtype=wp.float64)
    for i in range(n):
        work[i] = x[i] * x[(i + 1) % n]
        local[i % 3] = local[(i + 1) % 3] * x[i] + work[i // 2]
        work[i] *= work[i] + local[i % 3]
    for i in range(n):
        if work[i] > wp.float64(0.0):
            y[0] += wp.sin(work[i]) * local[i % 3]
        else:
            y[0] -= work[i] * work[n - 1 - i]


def test_hessians_through_memory_are_symmetric():
    x, work, y = doubles(RNG.standard_normal(7)), doubles(np.zeros(7)), doubles(np.zeros(1))
    found = hessian(mixed, 1, [x, work], [y])
    assert np.abs(found).max() > 1.0
    np.testing.assert_allclose(found, found.T, atol=1e-12 * np.abs(found).max())


@wp.kernel
def fourth_power(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = x[i] * x[i]
    y[i] = y[i] * y[i]


def test_the_hessian_of_a_square_squared_in_place_has_the_closed_form():
    x = RNG.standard_normal(9)
    found = hessian(fourth_power, 9, [doubles(x)], [doubles(np.zeros(9))])
    np.testing.assert_allclose(found, np.diag(12.0 * x**2), rtol=1e-13)


def test_hessians_of_arrays_that_are_chosen_at_run_time():
    x, z, v, w = (RNG.standard_normal(4) for _ in range(4))
    inputs, vectors = [doubles(x), doubles(z)], [doubles(v), doubles(w)]
    found = wp.autograd.hvp(one_of_two, 4, inputs, [doubles(np.zeros(4))], vectors=vectors)
    odd = np.arange(4) % 2 == 1  # 2 x² or z² besides: x² + x z, and z² + x² where i is odd
    np.testing.assert_allclose(found[0].numpy(), np.where(odd, 2 * v, 2 * v + w))
    np.testing.assert_allclose(found[1].numpy(), np.where(odd, 2 * w, v))


@wp.kernel
def long_loop(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
    i = wp.tid()
    s = x[i]
    t = wp.float64(1.0)
    for k in range(n + i):
        s = s + wp.float64(0.01) * wp.sin(s * t) * x[(i + k) % x.shape[0]]
        t = t * wp.cos(wp.float64(0.01) * s)
    y[i] = s * t


@pytest.mark.parametrize("count", [3, 100, 3000])
def test_checkpoints_give_the_bits_of_complete_trails(count):
    x, v = RNG.standard_normal((2, 5))

    def product(room):
        wp.config.gradient_loop_bytes = room
        inputs = [doubles(x), count]
        return wp.autograd.hvp(long_loop, 5, inputs, [doubles(np.zeros(5))], vectors=[doubles(v)])[0].numpy()

    expected = product(1 << 26)
    assert np.isfinite(expected).all() and np.abs(expected).max() > 1e-3
    for room in (1, 300, 3000):
        np.testing.assert_array_equal(product(room), expected)


@pytest.mark.parametrize("first", range(0, 24, 12))
def test_random_kernels_have_the_hessian_of_differences(tmp_path, first):
    assert sum(check_hessian(seed, tmp_path) for seed in range(first, first + 12)) >= 8


@pytest.mark.large
@pytest.mark.parametrize("first", range(0, 2_000, 250))
def test_two_thousand_random_kernels(tmp_path, first):
    assert sum(check_hessian(seed, tmp_path) for seed in range(5 * 10**7 + first, 5 * 10**7 + first + 250)) >= 150

"""Gradients through what atomics give: tickets, and extremes. The order of the threads is that of the launch."""

import numpy as np
import pytest
import warp as wp
from differences import check_program
from tapes import doubles, gradients

pytestmark = pytest.mark.protected


@wp.kernel
def compact(
    x: wp.array[wp.float64],
    count: wp.array[int],
    source: wp.array[int],
    kept: wp.array[wp.float64],
):
    i = wp.tid()
    if x[i] > wp.float64(0.0):
        slot = wp.atomic_add(count, 0, 1)
        source[slot] = i
        kept[slot] = x[i] * x[i] * wp.float64(slot + 1)


@pytest.mark.parametrize("n", [7, 20_000])
def test_numbers_taken_by_atomics_are_those_of_the_launch(n):
    rng = np.random.default_rng(n)
    values, seed = rng.normal(size=n), rng.normal(size=n)
    x = doubles(values, requires_grad=True)
    count, source = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    kept = doubles(np.zeros(n), requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(compact, n, [x, count, source, kept])
        count.zero_()
    tape.backward(grads={kept: doubles(seed)})
    taken = int((values > 0).sum())
    order = source.numpy()[:taken]
    expected = np.zeros(n)
    expected[order] = 2 * values[order] * np.arange(1, taken + 1) * seed[:taken]
    np.testing.assert_allclose(x.grad.numpy(), expected)


@wp.kernel
def spend(x: wp.array[wp.float64], balance: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_sub(balance, i % 2, x[i] * x[i])


@wp.kernel
def spend_and_tell(x: wp.array[wp.float64], balance: wp.array[wp.float64], before: wp.array[wp.float64]):
    i = wp.tid()
    before[i] = wp.atomic_sub(balance, i, x[i])


@pytest.mark.seed("S-BLT-007")
def test_the_value_and_the_gradient_of_atomic_sub():
    start = np.array([10.0, 20.0])

    def program(x):
        balance = doubles(start, requires_grad=True)
        for _ in range(2):
            wp.launch(spend, 5, [x, balance])
        return balance * balance

    values = np.array([1.0, 2.0, 0.5, -1.5, 0.25])
    spent = np.array([(values[::2] ** 2).sum(), (values[1::2] ** 2).sum()])
    np.testing.assert_allclose(program(doubles(values)).numpy(), (start - 2.0 * spent) ** 2)
    check_program(program, [values])
    balance, before = doubles(np.arange(5.0)), doubles(np.full(5, -9.0))
    wp.launch(spend_and_tell, 5, [doubles(values), balance, before])
    np.testing.assert_array_equal(before.numpy(), np.arange(5.0))
    np.testing.assert_array_equal(balance.numpy(), np.arange(5.0) - values)


@wp.kernel
def count_down(x: wp.array[float], counter: wp.array[int], seen: wp.array[int], total: wp.array[float]):
    i = wp.tid()
    seen[i] = wp.atomic_sub(counter, 0, 1)
    wp.atomic_sub(total, 0, x[i])


@pytest.mark.seed("S-BLT-007")
def test_each_thread_gets_another_old_value():
    n = 20_000
    counter, seen, total = wp.full(1, n, dtype=int), wp.zeros(n, dtype=int), wp.zeros(1, requires_grad=True)
    x = wp.ones(n, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(count_down, n, [x, counter, seen, total])
    assert counter.numpy()[0] == 0 and total.numpy()[0] == -n
    assert sorted(seen.numpy().tolist()) == list(range(1, n + 1))
    tape.backward(grads={total: wp.full(1, 2.0)})
    assert (x.grad.numpy() == -2.0).all()


@wp.kernel
def smallest(x: wp.array2d[wp.float64], least: wp.array[wp.float64], most: wp.array[wp.vec2d]):
    i, j = wp.tid()
    wp.atomic_min(least, j, wp.sin(x[i, j]) * wp.float64(3.0))
    if i > 0:
        wp.atomic_max(most, j, wp.vec2d(x[i, j] * x[i, j], -x[i, j]))


def test_the_gradient_of_an_extreme_goes_to_who_gave_it():
    rng = np.random.default_rng(3)
    shape = (500, 40)
    values = rng.normal(size=shape)
    seeds = rng.normal(size=40), rng.normal(size=(40, 2))
    start = np.full(40, np.inf)
    start[::4] = -5.0  # smaller than all
    x, least = doubles(values, requires_grad=True), doubles(start, requires_grad=True)
    most = wp.full(40, wp.vec2d(-10.0, -10.0), dtype=wp.vec2d, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(smallest, shape, [x, least, most])
    result = least.numpy().copy()
    tape.backward(grads={least: doubles(seeds[0]), most: wp.array(seeds[1], dtype=wp.vec2d)})
    expected = np.zeros(shape)
    for j in range(40):
        i = np.argmin(np.sin(values[:, j]))
        if start[j] == np.inf:
            expected[i, j] += 3 * np.cos(values[i, j]) * seeds[0][j]
        i = 1 + np.argmax(values[1:, j] ** 2)
        expected[i, j] += 2 * values[i, j] * seeds[1][j, 0]
        i = 1 + np.argmin(values[1:, j])
        expected[i, j] -= seeds[1][j, 1]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)
    # The earlier value keeps the gradient if no thread was below it.
    np.testing.assert_allclose(least.grad.numpy(), np.where(start == -5.0, seeds[0], 0.0))
    np.testing.assert_allclose(result[1], 3 * np.sin(values[:, 1]).min())


@wp.kernel
def largest_of_line(x: wp.array[float], most: wp.array[float]):
    i = wp.tid()
    v = x[i] * 1.7 + wp.sin(x[i]) * 0.3
    wp.atomic_max(most, 0, v * v - 0.1 * v)


@wp.kernel
def spread(most: wp.array[float], y: wp.array[float]):
    y[wp.tid()] = most[0] * 2.0
    most[0] = 0.0


def test_bits_of_the_offer_decide_and_later_writes_do_not_matter():
    n = 40_000
    values = np.random.default_rng(4).normal(size=n).astype(np.float32)
    x = wp.array(values, requires_grad=True)
    most = wp.full(1, -1e9, dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(largest_of_line, n, [x, most])
        wp.launch(spread, 1, [most, y])
    tape.backward(y)
    found = x.grad.numpy()
    assert np.count_nonzero(found) == 1
    i = np.flatnonzero(found)[0]
    a = values[i].astype(float)
    v = a * 1.7 + np.sin(a) * 0.3
    np.testing.assert_allclose(found[i], 2 * (2 * v - 0.1) * (1.7 + 0.3 * np.cos(a)), rtol=1e-4)


@wp.kernel
def ties(x: wp.array[wp.float64], most: wp.array[wp.float64]):
    wp.atomic_max(most, 0, x[wp.tid()])


def test_of_several_equal_offers_one_has_the_gradient():
    x, most = doubles(np.ones(1000), requires_grad=True), doubles([0.0], requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(ties, 1000, [x, most])
    tape.backward(most)
    assert sorted(x.grad.numpy())[-2:] == [0.0, 1.0]


@wp.kernel
def rows(x: wp.array2d[wp.float64], count: wp.array[int], y: wp.array[wp.float64]):
    i, j = wp.tid()
    slot = wp.atomic_add(count, 0, 2)
    other = wp.atomic_sub(count, 1, 1)
    y[slot / 2] = x[i, j] * wp.float64(other)


def test_several_atomics_in_two_dimensions_and_a_recorded_launch():
    shape = (30, 50)
    values = np.random.default_rng(5).normal(size=shape)
    x, count = doubles(values, requires_grad=True), wp.zeros(2, dtype=int)
    y = doubles(np.zeros(1500), requires_grad=True)
    command = wp.launch(rows, shape, [x, count, y], record_cmd=True)
    tape = wp.Tape()
    with tape:
        command.launch()
    tape.backward(grads={y: doubles(np.ones(1500))})
    # Each thread has one factor, from 0 down to -1499.
    assert sorted(x.grad.numpy().ravel()) == sorted(-np.arange(1500.0))
    np.testing.assert_allclose(np.sort(y.numpy()), np.sort((x.grad.numpy() * values).ravel()))


# ---- what is refused ----


@wp.kernel
def differentiable_result(total: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = wp.atomic_add(total, 0, x[i])


@wp.kernel
def mixed(x: wp.array[wp.float64], most: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_max(most, 0, x[i])
    wp.atomic_add(most, 0, x[i])


def test_what_has_no_gradient_is_said():
    x, y = doubles(np.ones(3), requires_grad=True), doubles(np.zeros(9), requires_grad=True)
    total = doubles([0.0], requires_grad=True)
    with wp.Tape(), pytest.raises(wp.CompileError, match="whose derivative depends on the order"):
        wp.launch(differentiable_result, 3, [total, x, y])
    with wp.Tape(), pytest.raises(wp.CompileError, match="of which another atomic makes an extreme"):
        wp.launch(mixed, 3, [x, total])
    count = wp.zeros(1, dtype=int)
    source, kept = wp.zeros(9, dtype=int), doubles(np.zeros(9), requires_grad=True)
    with pytest.raises(wp.UsageError, match="which only a tape keeps"):
        wp.launch(compact, 3, [x, count, source], [kept], adjoint=True, adj_inputs=[None] * 3, adj_outputs=[kept])
    with pytest.raises(wp.UsageError, match="which only a launch that the tape records keeps"):
        wp.Tape().record_launch(compact, 3, [x, count, source, kept])


def test_results_of_an_array_without_gradient_are_numbers():
    total = doubles([0.0])
    x, y = doubles(np.arange(1.0, 4.0), requires_grad=True), doubles(np.zeros(3), requires_grad=True)

    @wp.kernel(module="unique")
    def scaled(total: wp.array[wp.float64], x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = wp.atomic_add(total, 0, wp.float64(1.0)) * x[i]

    tape = wp.Tape()
    with tape:
        wp.launch(scaled, 3, [total, x, y])
    tape.backward(grads={y: doubles(np.ones(3))})
    np.testing.assert_allclose(x.grad.numpy() * x.numpy(), y.numpy())
    assert sorted(x.grad.numpy()) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("n", [3, 40, 700, 3000])
def test_every_thread_adds_to_every_element(n):
    """Small gradients are private to each chunk of threads if the loops add much to them; large ones are not."""

    @wp.kernel
    def pull(x: wp.array[wp.vec3], weight: wp.array[float], count: int, force: wp.array[wp.vec3]):
        i = wp.tid()
        p = x[i]
        total = wp.vec3()
        for j in range(count):
            d = x[j] - p
            total += d * (weight[j] / (wp.dot(d, d) + 0.5))
        force[i] = total

    rng = np.random.default_rng(n)
    x, seed = (rng.normal(size=(n, 3)).astype(np.float32) for _ in range(2))
    weight = rng.uniform(0.5, 1.5, n).astype(np.float32)
    inputs = [wp.array(x, dtype=wp.vec3, requires_grad=True), wp.array(weight, requires_grad=True), n]
    by_x, by_weight = gradients(pull, n, inputs, [wp.zeros(n, dtype=wp.vec3, requires_grad=True)], [seed])

    x, seed, weight = (value.astype(np.float64) for value in (x, seed, weight))
    expected, of_weight = np.zeros((n, 3)), np.zeros(n)
    for i in range(n):
        d = x - x[i]
        near = 1.0 / ((d * d).sum(axis=1) + 0.5)
        along = d @ seed[i]
        of_weight += along * near
        by_d = (weight * near)[:, None] * seed[i] - (2.0 * weight * near**2 * along)[:, None] * d
        expected += by_d
        expected[i] -= by_d.sum(axis=0)
    np.testing.assert_allclose(by_x, expected, rtol=1e-4, atol=2e-4 * np.abs(expected).max())
    np.testing.assert_allclose(by_weight, of_weight, rtol=1e-4, atol=2e-4 * np.abs(of_weight).max())

"""Gradients through what atomics in loops give. The order of the threads is read off from what the launch wrote."""

import numpy as np
import pytest
import warp as wp
from tapes import doubles, gradients

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(0)


@wp.kernel
def pairs(
    x: wp.array[wp.float64],
    count: wp.array[int],
    first: wp.array[int],
    second: wp.array[int],
    y: wp.array[wp.float64],
):
    i = wp.tid()
    for j in range(x.shape[0]):
        if x[j] > x[i]:
            slot = wp.atomic_add(count, 0, 1)
            first[slot] = i
            second[slot] = j
            y[slot] = x[i] * x[j] * x[j] * wp.float64(slot + 1)


def launch_pairs(values):
    n = len(values)
    most = n * n
    x = doubles(values, requires_grad=True)
    count, first, second = (wp.zeros(size, dtype=int) for size in (1, most, most))
    y = doubles(np.zeros(most), requires_grad=True)
    wp.launch(pairs, n, [x, count, first, second, y])
    return x, count, first, second, y


def gradient_of_pairs(values, first, second, seed):
    taken = len(first)
    factor = seed[:taken] * np.arange(1, taken + 1)
    expected = np.zeros(len(values))
    np.add.at(expected, first, values[second] ** 2 * factor)
    np.add.at(expected, second, 2 * values[first] * values[second] * factor)
    return expected


@pytest.mark.parametrize("room", [1 << 24, 256])
@pytest.mark.parametrize("n", [1, 5, 130])
def test_lists_that_all_threads_append_to(n, room, monkeypatch):
    monkeypatch.setattr(wp.config, "gradient_loop_bytes", room)
    values, seed = RNG.uniform(0.5, 1.5, n), RNG.normal(size=n * n)
    tape = wp.Tape()
    with tape:
        x, count, first, second, y = launch_pairs(values)
        count.zero_()
    taken = n * (n - 1) // 2
    expected = gradient_of_pairs(values, first.numpy()[:taken], second.numpy()[:taken], seed)
    for times in (1, 2):
        tape.backward(grads={y: doubles(seed)})
        # Threads add in any order.
        np.testing.assert_allclose(x.grad.numpy(), times * expected, rtol=1e-11)


@wp.kernel
def workers(
    x: wp.array2d[wp.float64],
    taken: wp.array[wp.int64],
    sold: wp.array[int],
    by: wp.array2d[int],
    at: wp.array2d[int],
    y: wp.array[wp.float64],
    total: wp.array[wp.float64],
):
    i, j = wp.tid()
    thread = 3 * i + j
    state = wp.float64(0.5)
    many = int(0)
    while True:
        k = int(wp.atomic_add(taken, i, wp.int64(1)))
        if k >= x.shape[1]:
            break
        for part in range(2):
            if wp.atomic_sub(sold, 0, 1) % 3 == 0:
                y[thread] = y[thread] * state + x[i, k]
                at[i, k] += 1 + part
        state = state * x[i, k] + wp.float64(0.25)
        by[i, k] = thread * 1000 + many
        many += 1
    wp.atomic_add(total, 0, state)


def test_work_that_threads_take_until_there_is_no_more():
    """A grid of two axes, atomics of two types, one in an endless loop and one in a loop inside of it, among elements
    that are read after they were written."""
    values = RNG.uniform(0.5, 1.2, (4, 41))
    x = doubles(values, requires_grad=True)
    taken, sold = wp.zeros(4, dtype=wp.int64), wp.full(1, 1000, dtype=int)
    by, at = wp.zeros((4, 41), dtype=int), wp.zeros((4, 41), dtype=int)
    y, total = doubles(np.full(12, 0.3), requires_grad=True), doubles([0.0], requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(workers, (4, 3), [x, taken, sold, by, at, y, total])
    seed = RNG.normal(size=12)
    tape.backward(grads={y: doubles(seed), total: doubles([1.5])})

    by, at = by.numpy(), at.numpy()
    assert sold.numpy()[0] == 1000 - 2 * values.size
    expected, written, sums = np.zeros_like(values), np.zeros(12), 0.0
    for thread in range(12):
        i = thread // 3
        mine = sorted((by[i, k] % 1000, k) for k in range(41) if by[i, k] // 1000 == thread)
        assert [order for order, _ in mine] == list(range(len(mine)))
        state, last, states = 0.5, 0.3, []
        for _, k in mine:
            states.append(state)
            for _ in range([0, 1, 1, 2][at[i, k]]):
                last = last * state + values[i, k]
            state = state * values[i, k] + 0.25
        written[thread], sums = last, sums + state
        # And back: the value that each product took is found by running forward to there.
        d_state, d_last = 1.5, seed[thread]
        for position in reversed(range(len(mine))):
            k, state = mine[position][1], states[position]
            d_state, d_x = d_state * values[i, k], d_state * state
            before = [0.3]
            for earlier in range(position + 1):
                for _ in range([0, 1, 1, 2][at[i, mine[earlier][1]]]):
                    before.append(before[-1] * states[earlier] + values[i, mine[earlier][1]])
            for which in range([0, 1, 1, 2][at[i, k]]):
                d_x += d_last
                d_state += d_last * before[-2 - which]
                d_last *= state
            expected[i, k] += d_x
    np.testing.assert_allclose(y.numpy(), written, rtol=1e-12)
    np.testing.assert_allclose(total.numpy(), [sums], rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-9)


@wp.kernel
def nearest(x: wp.array[wp.vec2d], to: wp.array[wp.vec2d], best: wp.array[wp.float64]):
    i = wp.tid()
    for j in range(to.shape[0]):
        d = x[i] - to[j]
        wp.atomic_min(best, j % 7, wp.dot(d, d) * wp.float64(0.3) + wp.sin(d[0]))


@pytest.mark.parametrize("n", [1, 9, 400])
def test_extremes_in_a_loop_belong_to_who_offered_them(n):
    values, targets = RNG.normal(size=(n, 2)), RNG.normal(size=(40, 2))
    x = wp.array(values, dtype=wp.vec2d, requires_grad=True)
    to = wp.array(targets, dtype=wp.vec2d, requires_grad=True)
    best = wp.full(7, 1e9, dtype=wp.float64, requires_grad=True)
    seed = RNG.normal(size=7)
    of_x, of_to = gradients(nearest, n, [x, to], [best], [seed])

    d = values[:, None] - targets[None]
    offers = (d * d).sum(axis=2) * 0.3 + np.sin(d[..., 0])
    expected, expected_to = np.zeros((n, 2)), np.zeros((40, 2))
    for b in range(7):
        columns = np.arange(b, 40, 7)
        i, c = np.unravel_index(np.argmin(offers[:, columns]), (n, len(columns)))
        j = columns[c]
        np.testing.assert_allclose(best.numpy()[b], offers[i, j], rtol=1e-12)
        slope = seed[b] * (0.6 * d[i, j] + np.array([np.cos(d[i, j, 0]), 0.0]))
        expected[i] += slope
        expected_to[j] -= slope
    np.testing.assert_allclose(of_x, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(of_to, expected_to, rtol=1e-10, atol=1e-12)


@wp.kernel
def alone(x: wp.array[wp.float64], count: wp.array[int], y: wp.array[wp.float64]):
    start = wp.atomic_add(count, 0, 1)
    for j in range(x.shape[0]):
        y[wp.atomic_add(count, 0, 2) - start] = x[j] * x[j] * wp.float64(j)


def test_a_kernel_that_does_not_ask_for_its_thread():
    x, count, y = doubles(RNG.normal(size=6), requires_grad=True), wp.full(1, 5, dtype=int), doubles(np.zeros(12))
    y.requires_grad = True
    seed = RNG.normal(size=12)
    (found,) = gradients(alone, 1, [x, count], [y], [seed])
    np.testing.assert_allclose(found, 2 * x.numpy() * np.arange(6) * seed[1::2])


def test_a_launch_without_threads_keeps_no_atomic_results():
    tape = wp.Tape()
    x, y = doubles(np.ones(3), requires_grad=True), doubles(np.ones(3), requires_grad=True)
    with tape:
        wp.launch(alone, 0, [x, wp.zeros(1, dtype=int), y])
    tape.backward(grads={y: doubles(np.ones(3))})
    assert not x.grad.numpy().any()


@wp.kernel
def products(x: wp.array[wp.float64], count: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    for j in range(x.shape[0]):
        if x[j] > x[i]:
            y[wp.atomic_add(count, 0, 1)] = x[i] * x[j] * x[j]


def test_hessians_follow_recorded_atomic_results():
    values, vector = RNG.uniform(0.5, 1.5, 30), RNG.normal(size=30)
    inputs, outputs = [doubles(values), wp.zeros(1, dtype=int)], [doubles(np.zeros(900))]
    found = wp.autograd.hvp(products, 30, inputs, outputs, vectors=[doubles(vector), None])[0]
    below = values[:, None] < values[None]  # [i, j]: x[i] x[j]^2 is a summand
    mixed = 2 * below * values[None]
    hessian = mixed + mixed.T + np.diag(2 * (below * values[:, None]).sum(axis=0))
    np.testing.assert_allclose(found.numpy(), hessian @ vector, rtol=1e-12)


@pytest.mark.host_memory("a launch that fails anyway, with a race", on="cuda")
def test_more_tickets_than_a_tape_may_keep(monkeypatch):
    monkeypatch.setattr(wp.config, "gradient_log_bytes", 20 * 100)
    tape = wp.Tape()
    with tape:
        launch_pairs(RNG.uniform(0.5, 1.5, 14))  # 91
        with pytest.raises(wp.UsageError, match=r"105 times in loops.*gradient_log_bytes, 2000.*record_tape=False"):
            launch_pairs(RNG.uniform(0.5, 1.5, 15))
    assert len(tape.launches) == 1
    with pytest.raises(ValueError, match=r"gradient_log_bytes.*expected an int from 1"):
        wp.config.gradient_log_bytes = 0


@wp.func
def append(entries: wp.array[wp.float64], count: wp.array[int], a: wp.float64):
    at = wp.atomic_add(count, 0, 1)
    entries[at] = a
    return at


@wp.kernel
def own_lists(x: wp.array[wp.float64], y: wp.array[wp.float64], masks: wp.array[int]):
    i = wp.tid()
    mine = wp.zeros(8, dtype=wp.float64)
    count = wp.zeros(2, dtype=int)
    for j in range(4 + i % 4):
        at = append(mine, count, x[i] * x[j])
        wp.atomic_sub(mine, at, x[j] * wp.float64(at))
        wp.atomic_max(mine, at, wp.float64(0.25))
        wp.atomic_min(mine, at, wp.float64(4.0) * x[i])
        wp.atomic_or(count, 1, 1 << at)
        wp.atomic_cas(count, 1, 15, 100 + i)
    total = wp.float64(0.0)
    for j in range(count[0]):
        total += mine[j] * mine[j]
    y[i] = total + wp.atomic_exch(mine, 0, wp.float64(0.0)) + mine[0]
    masks[i] = count[1]


def test_atomics_of_arrays_of_the_kernels_own():
    values, seed = RNG.uniform(0.5, 3.0, 40), RNG.normal(size=40)
    y, found = doubles(np.zeros(40), requires_grad=True), wp.zeros(40, dtype=int)
    x, tape = doubles(values, requires_grad=True), wp.Tape()
    with tape:
        wp.launch(own_lists, 40, [x, y, found])
    tape.backward(grads={y: doubles(seed)})

    expected, sums, masks = np.zeros(40), [], []
    for i in range(40):
        n = 4 + i % 4
        j = np.arange(n)
        product = values[i] * values[:n] - values[:n] * j
        entry = np.minimum(np.maximum(product, 0.25), 4.0 * values[i])
        sums.append((entry * entry).sum() + entry[0])
        mask = 0
        for at in range(n):
            mask |= 1 << at
            mask = 100 + i if mask == 15 else mask
        masks.append(mask)
        slope = seed[i] * (2 * entry + (j == 0))
        inside = (product > 0.25) & (product < 4.0 * values[i])
        expected[i] += (slope * inside * values[:n]).sum() + (slope * (product >= 4.0 * values[i])).sum() * 4.0
        np.add.at(expected, j, slope * inside * (values[i] - j))
    np.testing.assert_allclose(y.numpy(), sums, rtol=1e-12)
    assert found.numpy().tolist() == masks
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-10)


@wp.kernel
def drawn(x: wp.array[wp.float64], count: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    for _ in range(3):
        slot = wp.atomic_add(count, 1, 1)
        y[4 + slot] = x[i] * x[i] * wp.float64(slot + 1)
    if x[i] > wp.float64(0.0):
        y[wp.atomic_add(count, 0, 1)] = x[i]


@pytest.mark.parametrize("apart", [True, False])
def test_arrays_that_overlap(apart):
    """The same memory as input and output, at elements that no thread reads; and an array with gaps."""
    given = np.concatenate([RNG.uniform(0.5, 1.5, 4), np.zeros(16)])
    whole = doubles(np.repeat(given, 2), requires_grad=True)[::2]
    y = doubles(np.zeros(20), requires_grad=True)[4:] if apart else whole[4:]
    count = wp.zeros(2, dtype=int)
    tape = wp.Tape()
    with tape:
        wp.launch(drawn, 4, [whole[:4], count, y])
    seed = RNG.normal(size=16)
    tape.backward(grads={y: doubles(seed)})
    values, order = given[:4], y.numpy()
    expected = np.zeros(4)
    for i in range(4):
        mine = [k for k in range(12) if np.isclose(order[4 + k], values[i] ** 2 * (k + 1), rtol=1e-12)]
        assert len(mine) == 3
        expected[i] = sum(2 * values[i] * (k + 1) * seed[4 + k] for k in mine)
        expected[i] += seed[np.flatnonzero(order[:4] == values[i])[0]]
    np.testing.assert_allclose(whole.grad.numpy()[:4], expected, rtol=1e-12)

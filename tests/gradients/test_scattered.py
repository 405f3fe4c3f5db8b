"""Gradients that threads scatter over an array: by atomics, or by a gradient of each worker's own, whichever pays."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(0)


@pytest.fixture(params=[1, 2, 7])
def workers(request, monkeypatch):
    monkeypatch.setattr(wp.config, "cpu_threads", request.param)


@wp.kernel
def springs(
    x: wp.array[wp.vec3d],
    weight: wp.array2d[wp.float32],
    ends: wp.array2d[int],
    factor: wp.array[wp.float64],
    y: wp.array[wp.float64],
):
    i = wp.tid()
    total = wp.float64(0.0)
    for k in range(ends.shape[1]):
        j = ends[i, k]
        if j >= 0:
            d = x[j] - x[i % x.shape[0]]
            total += wp.dot(d, d) * factor[0] * wp.float64(weight[j % 4, k % 3])
    y[i] = total


def expected(x, weight, ends, factor, seed):
    by_x, by_weight, by_factor = np.zeros_like(x), np.zeros(weight.shape), 0.0
    i = np.arange(len(ends))
    for k in range(ends.shape[1]):
        mine, j = i[ends[:, k] >= 0], ends[ends[:, k] >= 0, k]
        here = mine % len(x)
        d = x[j] - x[here]
        w, s = weight[j % 4, k % 3].astype(float), seed[mine]
        slope = (2 * s * w * factor)[:, None] * d
        np.add.at(by_x, j, slope)
        np.subtract.at(by_x, here, slope)
        square = (d * d).sum(axis=1)
        np.add.at(by_weight, (j % 4, k % 3), s * square * factor)
        by_factor += (s * square * w).sum()
    return by_x, by_weight, by_factor


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("points, threads", [(3, 40), (500, 70_000), (30_000, 70_000), (200_000, 5_000)])
def test_scattered_gradients_of_springs_equal_numpy(points, threads, strided, workers):
    """Few points and many threads, and many points and few threads, for which no worker has a gradient of its own."""
    x, seed = RNG.normal(size=(points, 3)), RNG.normal(size=threads)
    weight = RNG.uniform(0.5, 1.5, (4, 3)).astype(np.float32)
    ends = RNG.integers(-1, points, (threads, 4)).astype(np.int32)
    step = 2 if strided else 1
    inputs = [
        wp.array(np.repeat(x, step, axis=0), dtype=wp.vec3d, requires_grad=True)[::step],
        wp.array(weight, dtype=wp.float32, requires_grad=True),
        wp.array(ends, dtype=int),
        wp.array([0.7], dtype=wp.float64, requires_grad=True),
    ]
    y = wp.zeros(threads, dtype=wp.float64, requires_grad=True)
    for one in (inputs[0], inputs[1], inputs[3]):
        one.grad.fill_(3.0)
    tape = wp.Tape()
    with tape:
        wp.launch(springs, threads, [*inputs, y])
    by_x, by_weight, by_factor = expected(x, weight, ends, 0.7, seed)
    for times in (1, 2):
        tape.backward(grads={y: wp.array(seed, dtype=wp.float64)})
        scale = np.abs(by_x).max()
        np.testing.assert_allclose(inputs[0].grad.numpy(), 3.0 + times * by_x, rtol=1e-9, atol=1e-10 * scale)
        np.testing.assert_allclose(inputs[3].grad.numpy(), [3.0 + times * by_factor], rtol=1e-9)
        tolerance = 1e-4 * np.abs(by_weight).max()
        np.testing.assert_allclose(inputs[1].grad.numpy(), 3.0 + times * by_weight, rtol=1e-3, atol=tolerance)


@wp.kernel
def chosen(x: wp.array[wp.float64], at: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = x[at[i]] * x[at[i]]


def test_gradients_that_share_memory_are_added_to_by_atomics(workers):
    """The array and what it is picked into have gradients in one memory."""
    n = 50_000
    at = RNG.integers(0, 100, n).astype(np.int32)
    whole = wp.zeros(n + 100, dtype=wp.float64, requires_grad=True)
    x, y = whole[:100], whole[100:]
    values, seed = RNG.normal(size=100), RNG.normal(size=n)
    x.assign(values)
    tape = wp.Tape()
    with tape:
        wp.launch(chosen, n, [x, wp.array(at, dtype=int), y])
    tape.backward(grads={y: wp.array(seed, dtype=wp.float64)})
    found = np.zeros(100)
    np.add.at(found, at, 2 * values[at] * seed)
    np.testing.assert_allclose(whole.grad.numpy()[:100], found, rtol=1e-10, atol=1e-10)
    assert not whole.grad.numpy()[100:].any()

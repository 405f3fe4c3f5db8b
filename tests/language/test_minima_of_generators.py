"""min() and max() of generators, of any length and with any condition: loops, which have gradients."""

import numpy as np
import pytest
import warp as wp


@wp.kernel
def extremes(x: wp.array[float], n: int, out: wp.array[float]):
    out[0] = min(x[k] * x[k] for k in range(n))
    out[1] = max(v for v in x)
    out[2] = max(v for v in x if v < 0.5)
    out[3] = min(wp.abs(v) for k, v in enumerate(x) if k != n - 1)
    out[4] = max(a * b for a, b in zip(x, reversed(x)))
    out[5] = min((v for v in x if v > 100.0), default=7.0)
    out[6] = float(max(k for k in range(1, n, 2)))


@pytest.mark.parametrize("n", [2, 5, 40, 300])
def test_extremes_of_what_only_the_launch_knows(n):
    x = np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32)
    x[0] = -0.25
    out = wp.zeros(7, dtype=float)
    wp.launch(extremes, dim=1, inputs=[wp.array(x), n, out])
    expected = [min(x * x), max(x), max(x[x < 0.5]), min(abs(x[: n - 1])), max(x * x[::-1]), 7.0, max(range(1, n, 2))]
    np.testing.assert_array_equal(out.numpy(), np.array(expected, dtype=np.float32))


def test_extremes_of_what_is_written_out():
    @wp.kernel
    def of_vectors(v: wp.vec4, flag: int, out: wp.array[float]):
        out[0] = min(c for c in v if c > 0.0)
        out[1] = max(c * 2.0 for c in (v[0], v[1], v[2]) if c < 1.5)
        out[2] = max((c for c in v if c > 100.0), default=-1.0)
        out[3] = sum(c for c in v if c > 0.0)
        out[4] = float(any(c > 2.5 for c in v if c < 3.5)) + 2.0 * float(all(c > 2.5 for c in v if flag > 0))
        out[5] = max((c for c in ()), default=4.0)
        out[6] = min([c for k, c in enumerate(v) if k != 3])

    out = wp.zeros(7, dtype=float)
    wp.launch(of_vectors, dim=1, inputs=[wp.vec4(1.0, 3.0, 2.0, -4.0), 0, out])
    assert out.numpy().tolist() == [1.0, 2.0, -1.0, 6.0, 3.0, 4.0, 1.0]


def test_extremes_of_vectors_go_by_components():
    @wp.kernel
    def corners(points: wp.array[wp.vec3], out: wp.array[wp.vec3]):
        out[0] = min(p for p in points)
        out[1] = max(p - wp.vec3(1.0) for p in points)

    points = np.random.default_rng(1).standard_normal((33, 3)).astype(np.float32)
    out = wp.zeros(2, dtype=wp.vec3)
    wp.launch(corners, dim=1, inputs=[wp.array(points, dtype=wp.vec3), out])
    np.testing.assert_array_equal(out.numpy(), [points.min(axis=0), (points - np.float32(1)).max(axis=0)])


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_nothing_has_no_extreme(mode):
    @wp.kernel(module_options={"mode": mode})
    def least(x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = min(v for v in x if v > float(i))

    out = wp.zeros(8, dtype=float)
    wp.launch(least, dim=2, inputs=[wp.array([0.5, 1.5], dtype=float), out])
    assert out.numpy()[:2].tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match=r"min\(\) of nothing has no value.*thread \(2,\)"):
        wp.launch(least, dim=3, inputs=[wp.array([0.5, 1.5], dtype=float), out])
        wp.synchronize()


def test_their_gradients_belong_to_the_elements_that_they_are():
    @wp.kernel
    def spread(x: wp.array[wp.float64], out: wp.array[wp.float64]):
        highest = max(v * v for v in x)
        lowest = min((wp.sin(v) for k, v in enumerate(x) if k % 2 == 0), default=wp.float64(0.0))
        out[0] = highest * lowest + min(v for v in (x[0], x[1]) if v < wp.float64(10.0))

    values = np.random.default_rng(5).uniform(-1, 1, 21)
    values[0] = 0.3

    def run(v):
        return (v * v).max() * np.sin(v[::2]).min() + v[:2].min()

    x, out = wp.array(values, dtype=wp.float64, requires_grad=True), wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(spread, dim=1, inputs=[x, out])
    tape.backward(out)
    steps = 1e-6 * np.eye(21)
    expected = [(run(values + step) - run(values - step)) / 2e-6 for step in steps]
    assert out.numpy()[0] == pytest.approx(run(values), rel=1e-14)
    assert np.count_nonzero(expected) >= 2
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-8)


def test_names_of_conditions_are_those_of_the_function():
    @wp.kernel
    def named(x: wp.array[float], out: wp.array[float]):
        out[0] = sum(y * 2.0 for v in x if (y := v * v) > 0.5)
        out[1] = y

    x, out = np.array([1.0, -2.0, 0.1, 0.75], dtype=np.float32), wp.zeros(2, dtype=float)
    wp.launch(named, dim=1, inputs=[wp.array(x), out])
    squares = x * x
    np.testing.assert_allclose(out.numpy(), [2.0 * squares[squares > 0.5].sum(), squares[-1]])

"""Steps of slices of arrays that only the launch knows: views, as NumPy has them."""

import itertools

import numpy as np
import pytest
import warp as wp

N = 10


@wp.kernel
def cut(a: wp.array[int], start: int, stop: int, step: int, out: wp.array2d[int]):
    views = [a[start:stop:step], a[::step], a[start::step], a[:stop:step]]
    for row, view in enumerate(views):
        out[row, 0] = len(view)
        for k in range(len(view)):
            out[row, 1 + k] = view[k]


def test_they_take_what_numpy_takes():
    a = np.arange(N, dtype=np.int32)
    bounds = [-12, -10, -3, -1, 0, 2, 9, 10, 15]
    for start, stop, step in itertools.product(
        bounds, bounds, [1, 2, 3, 9, 100, -1, -2, -7, -100, 2**31 - 1, -(2**31)]
    ):
        out = wp.zeros((4, N + 1), dtype=int)
        wp.launch(cut, dim=1, inputs=[wp.array(a), start, stop, step, out])
        views = [a[start:stop:step], a[::step], a[start::step], a[:stop:step]]
        found = [row[1 : 1 + row[0]].tolist() for row in out.numpy()]
        assert found == [view.tolist() for view in views], (start, stop, step)


@pytest.mark.parametrize("dtype", [wp.int8, wp.uint8, wp.int64, wp.uint32, wp.uint64], ids=lambda t: t.__name__)
def test_they_are_of_any_integer_type(dtype):
    @wp.kernel
    def of_type(a: wp.array2d[int], steps: wp.array[dtype], out: wp.array2d[int]):
        i = wp.tid()
        view = a[:: steps[i], 1]
        out[i, 0] = len(view)
        out[i, 1] = view[-1]

    limits = np.iinfo(wp.dtype_to_numpy(dtype))
    steps = [s for s in (1, 2, 3, 127, -1, -3, limits.min, limits.max) if limits.min <= s <= limits.max and s != 0]
    a = np.arange(2 * N, dtype=np.int32).reshape(N, 2)
    out = wp.zeros((len(steps), 2), dtype=int)
    wp.launch(of_type, dim=len(steps), inputs=[wp.array(a), wp.array(steps, dtype=dtype), out])
    expected = [[len(a[:: int(step), 1]), a[:: int(step), 1][-1]] for step in steps]
    np.testing.assert_array_equal(out.numpy(), expected)


def test_they_are_written_through_and_have_gradients():
    @wp.kernel
    def through(x: wp.array[wp.float64], y: wp.array[wp.float64], steps: wp.array[int]):
        i = wp.tid()
        source, target = x[:: steps[i]], y[i :: steps[2]]
        for k in range(len(source)):
            target[0] += source[k] * source[k] * wp.float64(k + 1)

    values, steps = np.random.default_rng(2).standard_normal(N), [2, -3, 4]
    x, y = wp.array(values, dtype=wp.float64, requires_grad=True), wp.zeros(N, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(through, dim=3, inputs=[x, y, wp.array(steps, dtype=int)])
    tape.backward(grads={y: wp.array(np.arange(1.0, N + 1), dtype=wp.float64)})
    expected, gradient = np.zeros(N), np.zeros(N)
    for i, step in enumerate(steps):
        weights = np.arange(1, 1 + len(values[::step]))
        expected[i] = np.sum(values[::step] ** 2 * weights)
        gradient[::step] += 2 * values[::step] * weights * (i + 1)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-14)


def test_a_step_of_zero_ends_the_launch():
    out = wp.zeros((4, N + 1), dtype=int)
    with pytest.raises(ValueError, match="the step of a slice must not be 0"):
        wp.launch(cut, dim=1, inputs=[wp.zeros(N, dtype=int), 0, 5, 0, out])
        wp.synchronize()

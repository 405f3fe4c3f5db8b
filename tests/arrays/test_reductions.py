"""a.sum(), a.min(), a.dot(b), abs(a), wp.arange, wp.linspace, wp.concatenate: as NumPy's, with gradients."""

import numpy as np
import pytest
import warp as wp
import warp.autograd

pytestmark = pytest.mark.protected

DTYPES = [wp.float32, wp.float64, wp.float16, wp.int8, wp.int32, wp.int64, wp.uint8, wp.uint32, wp.bool]
SHAPES = [(1,), (7,), (3, 5), (2, 3, 4), (2, 1, 3, 2), (5000,), (300, 7)]


def numbers(shape, dtype, rng=None):
    values = (rng or np.random.default_rng(3)).standard_normal(shape) * 20.0
    numpy = wp.dtype_to_numpy(dtype)
    if dtype is wp.bool:
        return values > 0
    return (np.abs(values) if np.dtype(numpy).kind == "u" else values).astype(numpy)


def tolerance(dtype):
    return {wp.float16: 4e-3, wp.float32: 2e-6}.get(dtype, 1e-14)


@pytest.mark.parametrize("dtype", DTYPES, ids=wp.types.type_name)
def test_numbers_of_arrays_are_those_of_numpy(dtype):
    for shape in SHAPES:
        values = numbers(shape, dtype)
        a = wp.array(values, dtype=dtype)
        wide = values.astype(np.float64) if dtype is wp.float16 else values  # NumPy adds in float16
        for axis in (None, *range(-len(shape), len(shape))):
            for name in ("sum", "mean", "min", "max", "argmin", "argmax"):
                expected = np.asarray(getattr(wide if name in ("sum", "mean") else values, name)(axis=axis))
                found = getattr(a, name)(axis=axis)
                assert found.shape == (expected.shape or (1,)), (shape, axis, name)
                if dtype is not wp.float16:
                    assert found.numpy().dtype == expected.dtype, (dtype, name)
                scale = np.abs(values.astype(np.float64)).sum() if name in ("sum", "mean") else 0.0
                atol = tolerance(dtype) * (scale / (values.size if name == "mean" else 1.0))
                np.testing.assert_allclose(
                    found.numpy().astype(np.float64),
                    np.broadcast_to(expected, found.shape).astype(np.float64),
                    rtol=tolerance(dtype),
                    atol=atol,
                    err_msg=f"{shape} {axis} {name}",
                )


def test_several_axes_at_once():
    values = numbers((2, 3, 4), wp.float64)
    a = wp.array(values, dtype=wp.float64)
    for axes in ((0, 1), (2, 0), (-1, 1), (0, 1, 2), ()):
        for name in ("sum", "mean", "min", "max"):
            expected = getattr(values, name)(axis=axes)
            np.testing.assert_allclose(getattr(a, name)(axis=axes).numpy().reshape(np.shape(expected)), expected)


def test_views_with_gaps_and_turned_ones():
    values = numbers((6, 8), wp.float32)
    a = wp.array(values)
    for view, expected in ((a[::2, 1::3], values[::2, 1::3]), (a.transpose(), values.T), (a[::-1], values[::-1])):
        for axis in (None, 0, 1):
            np.testing.assert_allclose(
                view.sum(axis).numpy().reshape(-1), expected.sum(axis).reshape(-1), rtol=1e-5, atol=1e-5
            )
            np.testing.assert_array_equal(view.argmax(axis).numpy().reshape(-1), expected.argmax(axis).reshape(-1))
            np.testing.assert_array_equal(view.min(axis).numpy().reshape(-1), expected.min(axis).reshape(-1))


@pytest.mark.parametrize("count", [3, 5000])
def test_nan_and_equal_numbers_are_chosen_as_numpy_chooses_them(count):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, count).astype(np.float32)
    for _ in range(4):
        a = wp.array(values)
        assert int(a.argmin()) == values.argmin() and int(a.argmax()) == values.argmax()
        np.testing.assert_array_equal([float(a.min()), float(a.max())], [values.min(), values.max()])
        values[rng.integers(0, count)] = np.nan
    zeros = wp.array(np.array([0.0, -0.0, 0.0], np.float32))
    assert int(zeros.argmin()) == 0 and int(zeros.argmax()) == 0
    assert float(wp.array([-np.inf, np.inf], dtype=float).max()) == np.inf


def test_vectors_and_matrices_are_added_by_components():
    values = numbers((6, 3), wp.float32)
    a = wp.array(values, dtype=wp.vec3)
    np.testing.assert_allclose(a.sum().numpy()[0], values.sum(0), rtol=1e-5)
    np.testing.assert_allclose(a.mean().numpy()[0], values.mean(0), rtol=1e-5)
    assert a.sum().dtype is wp.vec3 and a.mean().dtype is wp.vec3
    np.testing.assert_allclose(float(a.dot(a)), (values.astype(np.float64) ** 2).sum(), rtol=1e-6)
    matrices = numbers((4, 5, 2, 2), wp.float64)
    b = wp.array(matrices, dtype=wp.mat22d)
    np.testing.assert_allclose(b.sum(axis=0).numpy(), matrices.sum(0))
    np.testing.assert_allclose(b.mean(axis=1).numpy(), matrices.mean(1))
    whole = wp.array(numbers((6, 3), wp.int32), dtype=wp.vec3i)
    assert whole.sum().dtype is wp.types.vector(3, wp.int64)
    np.testing.assert_array_equal(abs(a).numpy(), np.abs(values))


def test_a_mean_is_rounded_once():
    a = wp.array(np.full(60000, 3.0), dtype=wp.float16)  # whose sum is no float16
    assert float(a.mean()) == 3.0
    b = wp.array(np.full(3, 16777217), dtype=wp.int32)  # and which is no float32
    assert float(b.mean()) == 16777217.0


def test_an_empty_array_has_a_sum_and_no_extreme():
    empty = wp.zeros((0, 3))
    assert float(empty.sum()) == 0.0 and np.isnan(float(empty.mean()))
    np.testing.assert_array_equal(empty.sum(axis=0).numpy(), np.zeros(3))
    assert empty.max(axis=1).shape == (0,)
    for name in ("min", "max", "argmin", "argmax"):
        with pytest.raises(ValueError, match=rf"array.{name}\(\): an array of shape \(0, 3\) has no elements"):
            getattr(empty, name)()


def test_dot_is_the_inner_product_and_of_more_dimensions_the_product():
    x, y = numbers(100, wp.float64), numbers((100, 3), wp.float64, np.random.default_rng(1))
    a, b = wp.array(x, dtype=wp.float64), wp.array(y, dtype=wp.float64)
    np.testing.assert_allclose(float(a.dot(b[:, 1])), x.dot(y[:, 1]))
    np.testing.assert_allclose(b.transpose().dot(b).numpy(), y.T.dot(y))
    assert float(wp.array([1, 2, 3], dtype=int).dot(wp.array([4, 5, 6], dtype=int))) == 32
    assert wp.array([1], dtype=int).dot(wp.array([4], dtype=int)).dtype is wp.int32


def test_what_cannot_be_reduced_is_an_error():
    @wp.struct
    class Pair:
        x: float

    a = wp.zeros((2, 3))
    with pytest.raises(IndexError, match=r"array.sum\(\): there is no axis 2, the array of shape \(2, 3\) has 2"):
        a.sum(axis=2)
    with pytest.raises(TypeError, match=r"array.mean\(\): 'axis' is 1.0, expected an int, a tuple of ints or None"):
        a.mean(1.0)
    with pytest.raises(ValueError, match=r"'axis' is \(0, -2\), which has an axis twice"):
        a.sum((0, -2))
    with pytest.raises(TypeError, match=r"array.argmin\(\): 'axis' is \(0, 1\), expected an int or None"):
        a.argmin((0, 1))
    with pytest.raises(TypeError, match="elements are vec3f, which have no order"):
        wp.zeros(3, dtype=wp.vec3).max()
    with pytest.raises(TypeError, match=r"array.sum\(\): arrays of the struct Pair have no arithmetic"):
        wp.zeros(3, dtype=Pair).sum()
    with pytest.raises(ValueError, match=r"expected arrays of the same dtype and length, got float32 of shape \(2,\)"):
        wp.zeros(2).dot(wp.zeros(3))
    with pytest.raises(TypeError, match=r"array.dot\(\): expected an array, got list"):
        wp.zeros(2).dot([1.0, 2.0])


# ---- gradients ----


def slopes(function, values):
    """Central differences in float64."""
    found = np.zeros(values.shape)
    for index in np.ndindex(values.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = values.copy()
            moved[index] += step
            ends.append(float(function(moved)))
        found[index] = (ends[0] - ends[1]) / 2e-6
    return found


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "min", "max"])
def test_gradients_of_numbers_of_arrays(name, axis):
    values = numbers((4, 5), wp.float64) / 20.0

    def in_numpy(x):
        return (np.asarray(getattr(x, name)(axis=axis)) ** 2).sum()

    def loss(x):
        reduced = getattr(x, name)(axis=axis)
        return (reduced * reduced).sum()

    value, gradient = wp.autograd.value_and_grad(loss)(wp.array(values, dtype=wp.float64))
    np.testing.assert_allclose(float(value), in_numpy(values))
    np.testing.assert_allclose(gradient.numpy(), slopes(in_numpy, values), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [wp.float16, wp.float32])
def test_gradients_of_narrow_floats(dtype):
    values = numbers(9, dtype)
    _, gradient = wp.autograd.value_and_grad(lambda x: x.mean())(wp.array(values, dtype=dtype))
    assert gradient.dtype is dtype
    np.testing.assert_allclose(gradient.numpy(), np.full(9, 1.0 / 9.0), rtol=1e-3)
    _, gradient = wp.autograd.value_and_grad(lambda x: x.max())(wp.array(values, dtype=dtype))
    np.testing.assert_array_equal(gradient.numpy(), np.arange(9) == values.argmax())


def test_the_gradient_of_an_extreme_goes_to_the_first_of_equal_ones():
    _, gradient = wp.autograd.value_and_grad(lambda x: x.max())(wp.array([1.0, 3.0, 3.0], dtype=float))
    np.testing.assert_array_equal(gradient.numpy(), [0.0, 1.0, 0.0])


def test_gradients_of_views_products_and_magnitudes():
    values, other = numbers((6, 4), wp.float64), numbers((3, 4), wp.float64, np.random.default_rng(5))
    b = wp.array(other, dtype=wp.float64)

    def in_numpy(x):
        part = x[::2]
        return np.abs(part).sum() + part[1].dot(other[1]) + (part * part).mean() + part.T.min(axis=0).sum()

    def loss(x):
        part = x[::2]
        result = abs(part).sum() + part[1].dot(b[1]) + (part * part).mean()
        return result + part.transpose().min(axis=0).sum()

    value, gradient = wp.autograd.value_and_grad(loss)(wp.array(values, dtype=wp.float64))
    np.testing.assert_allclose(float(value), in_numpy(values))
    np.testing.assert_allclose(gradient.numpy(), slopes(in_numpy, values), rtol=1e-5, atol=1e-6)


# ---- arange, linspace, concatenate ----


@pytest.mark.parametrize(
    "arguments",
    [(5,), (0,), (-3,), (2, 9), (2, 9, 3), (9, 2, -2), (9, 2, 2), (2.0,), (0.0, 1.0, 0.1), (1, 2, 0.25), (5, 0, -0.5)],
)
def test_arange_counts_as_numpy_does(arguments):
    found, expected = wp.arange(*arguments), np.arange(*arguments)
    assert found.dtype is (wp.int32 if expected.dtype.kind == "i" else wp.float32)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(wp.arange(*arguments, dtype=wp.float64).numpy(), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("num", [0, 1, 2, 5, 1000])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_divides_as_numpy_does(num, endpoint):
    found = wp.linspace(-2, 3.5, num, endpoint, dtype=wp.float64)
    np.testing.assert_allclose(found.numpy(), np.linspace(-2, 3.5, num, endpoint), rtol=1e-14, atol=1e-15)
    assert wp.linspace(0, 1).dtype is wp.float32 and wp.linspace(0, 1).shape == (50,)


def test_made_arrays_have_the_dtype_device_and_gradient_that_is_asked_for(device):
    counted = wp.arange(3, dtype=wp.float16, device=device, requires_grad=True)
    assert counted.device == wp.get_device(device) and counted.dtype is wp.float16 and counted.requires_grad
    spread = wp.linspace(0, 6, 3, dtype=int, device=device)
    assert spread.dtype is wp.int32 and spread.device == wp.get_device(device)
    np.testing.assert_array_equal(spread.numpy(), [0, 3, 6])
    whole = wp.arange(3, dtype=wp.int64, device=device).sum()
    assert whole.device == wp.get_device(device) and int(whole) == 3
    both = wp.concatenate([counted, counted])
    assert both.device == wp.get_device(device) and both.requires_grad


def test_concatenate_puts_arrays_behind_each_other():
    rng = np.random.default_rng(2)
    a, b, c = (rng.standard_normal((n, 3)).astype(np.float32) for n in (2, 0, 4))
    arrays = [wp.array(one, dtype=float, ndim=2) if one.size else wp.zeros((0, 3)) for one in (a, b, c)]
    np.testing.assert_array_equal(wp.concatenate(arrays).numpy(), np.concatenate([a, b, c]))
    np.testing.assert_array_equal(wp.concatenate(arrays, axis=None).numpy(), np.concatenate([a, b, c], axis=None))
    turned = [one.transpose() for one in arrays]
    np.testing.assert_array_equal(wp.concatenate(turned, axis=-1).numpy(), np.concatenate([a.T, b.T, c.T], axis=-1))
    vectors = wp.concatenate((wp.zeros(1, dtype=wp.vec3), wp.ones(2, dtype=wp.vec3)))
    np.testing.assert_array_equal(vectors.numpy(), [[0.0] * 3, [1.0] * 3, [1.0] * 3])


def test_the_gradient_of_a_part_goes_to_its_array():
    a, b = (wp.array(np.arange(1.0, n), dtype=float, requires_grad=True) for n in (3, 4))
    with wp.Tape() as tape:
        both = wp.concatenate([a, b, a])
        loss = (both * both).sum()
    tape.backward(loss)
    np.testing.assert_array_equal(a.grad.numpy(), 4.0 * a.numpy())
    np.testing.assert_array_equal(b.grad.numpy(), 2.0 * b.numpy())


def test_arrays_that_cannot_be_made_are_an_error():
    with pytest.raises(ValueError, match=r"arange\(\): 'step' is 0"):
        wp.arange(1, 2, 0)
    with pytest.raises(OverflowError, match=r"arange\(\): 299 does not fit uint8"):
        wp.arange(300, dtype=wp.uint8)
    with pytest.raises(TypeError, match=r"arange\(\): 'stop' is '3', expected a number"):
        wp.arange(0, "3")
    with pytest.raises(ValueError, match=r"linspace\(\): 'stop' is nan, expected a finite number"):
        wp.linspace(0.0, float("nan"))
    with pytest.raises(ValueError, match=r"linspace\(\): 'num' is -1, expected 0 or more"):
        wp.linspace(0.0, 1.0, -1)
    with pytest.raises(TypeError, match=r"linspace\(\): 'dtype' is <class '.*vec3f'>, expected the type of a number"):
        wp.linspace(0.0, 1.0, dtype=wp.vec3)
    with pytest.raises(ValueError, match=r"concatenate\(\): expected at least one array, got none"):
        wp.concatenate([])
    with pytest.raises(TypeError, match=r"arrays\[1\] has the dtype int32, arrays\[0\] float32. help: astype"):
        wp.concatenate([wp.zeros(1), wp.zeros(1, dtype=int)])
    with pytest.raises(
        ValueError, match=r"arrays\[1\] has the shape \(2, 2\), arrays\[0\] \(2, 3\); expected the same but"
    ):
        wp.concatenate([wp.zeros((2, 3)), wp.zeros((2, 2))])
    with pytest.raises(IndexError, match=r"there is no axis 1, arrays\[0\] of shape \(2,\) has 1 dimensions"):
        wp.concatenate([wp.zeros(2)], axis=1)
    with pytest.raises(TypeError, match=r"concatenate\(\): arrays\[0\] is list, expected an array"):
        wp.concatenate([[1.0]])


# ---- value_and_grad ----


@wp.kernel
def energy(x: wp.array(dtype=wp.vec3), k: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, k[i] * wp.dot(x[i], x[i]))


def energy_of(x, k):
    total = wp.zeros(1, requires_grad=True)
    wp.launch(energy, len(x), [x, k], [total])
    return total


def test_value_and_grad_gives_both_and_leaves_the_arguments_alone():
    rng = np.random.default_rng(4)
    points, factors = rng.standard_normal((5, 3)), rng.standard_normal(5)
    x, k = wp.array(points, dtype=wp.vec3, requires_grad=True), wp.array(factors, dtype=float)
    x.grad.fill_(7.0)
    value, by_x = wp.autograd.value_and_grad(energy_of)(x, k)
    np.testing.assert_allclose(float(value), (factors * (points**2).sum(1)).sum(), rtol=1e-5)
    np.testing.assert_allclose(by_x.numpy(), 2.0 * factors[:, None] * points, rtol=1e-5)
    np.testing.assert_array_equal(x.grad.numpy(), np.full((5, 3), 7.0))
    assert not k.requires_grad
    _, (by_k, again) = wp.autograd.value_and_grad(energy_of, argnums=(1, 0))(x, k)
    np.testing.assert_allclose(by_k.numpy(), (points**2).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(again.numpy(), by_x.numpy())
    (_, aux), by_k = wp.autograd.value_and_grad(lambda x, k: (energy_of(x, k), "aux"), -1, has_aux=True)(x, k)
    assert aux == "aux"
    np.testing.assert_allclose(by_k.numpy(), (points**2).sum(1), rtol=1e-5)


def test_value_and_grad_says_what_it_cannot_do():
    with pytest.raises(TypeError, match="expected a function, got 3"):
        wp.autograd.value_and_grad(3)
    function = wp.autograd.value_and_grad(lambda x: 3.0)
    assert function.__name__ == "<lambda>"
    with pytest.raises(TypeError, match="the function returned 3.0, expected an array of one element"):
        function(wp.zeros(1))
    with pytest.raises(TypeError, match="argument 0 is an array of int32, expected an array of floats"):
        function(wp.zeros(1, dtype=int))
    with pytest.raises(IndexError, match="argnums has 0, and the function is called with 0 positional arguments"):
        function()
    with pytest.raises(ValueError, match=r"the loss has the shape \(3,\), expected one element"):
        wp.autograd.value_and_grad(lambda x: x * 2.0)(wp.zeros(3))

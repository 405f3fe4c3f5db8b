"""Gradients of functions of numbers at the ends of their types, beside mpmath: the greatest and least numbers, those
whose squares overflow or vanish, subnormal ones, zeros and infinities."""

import itertools

import mpmath
import numpy as np
import pytest
import warp as wp

mp = mpmath.mp.clone()
mp.prec = 1200  # powers of subnormal numbers

FLOATS = {wp.float16: np.float16, wp.float32: np.float32, wp.float64: np.float64}

# Functions of one number: its derivative, and what rounding is measured by besides the derivative itself.
UNARY = {
    "sqrt": (lambda x: 1 / (2 * mp.sqrt(x)), 0),
    "cbrt": (lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2), 0),
    "exp": (mp.exp, 0),
    "log": (lambda x: 1 / x, 0),
    "log2": (lambda x: 1 / (x * mp.log(2)), 0),
    "log10": (lambda x: 1 / (x * mp.log(10)), 0),
    "sin": (mp.cos, 1),
    "cos": (lambda x: -mp.sin(x), 1),
    "atan": (lambda x: 1 / (1 + x * x), 0),
    "sinh": (mp.cosh, 0),
    "cosh": (mp.sinh, 0),
    "tanh": (lambda x: mp.sech(x) ** 2, 1),
    "erf": (lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), 1),
    "erfc": (lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x), 1),
}
POSITIVE = {"sqrt", "log", "log2", "log10"}


def special(dtype):
    limits = np.finfo(dtype)
    tiny, most = float(limits.tiny), float(limits.max)
    ends = [most, tiny, float(limits.smallest_subnormal), tiny / 4, tiny**0.5 / 8, most**0.5 * 8, 0.3, 1.0, 2.0, 7.5]
    return np.array([*ends, *(-end for end in ends)], dtype)


def gradients(function, kind, columns):
    @wp.kernel(module="unique")
    def of_one(x: wp.array[kind], out: wp.array[kind]):
        i = wp.tid()
        out[i] = function(x[i])

    @wp.kernel(module="unique")
    def of_two(x: wp.array[kind], y: wp.array[kind], out: wp.array[kind]):
        i = wp.tid()
        out[i] = function(x[i], y[i])

    arrays = [wp.array(column, dtype=kind, requires_grad=True) for column in columns]
    out = wp.zeros(len(columns[0]), dtype=kind, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(of_one if len(columns) == 1 else of_two, len(out), inputs=arrays, outputs=[out])
    tape.backward(grads={out: wp.ones_like(out)})
    return [array.grad.numpy() for array in arrays]


def wrong(found, expected, dtype, scale):
    """The rows in which a gradient is not the expected number, rounded."""
    limits = np.finfo(dtype)
    for row, (value, true) in enumerate(zip(found, expected, strict=True)):
        most = float(limits.max)
        if abs(true) > most:
            good = value == np.sign(float(mp.sign(true))) * np.inf or abs(float(value)) > 0.99 * most
        else:
            error = 16 * float(limits.eps) * (abs(float(true)) + scale) + 4 * float(limits.tiny)
            good = np.isfinite(value) and abs(mp.mpf(float(value)) - true) <= error
        if not good:
            yield row, value, float(true)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name, kind):
    dtype = FLOATS[kind]
    derivative, scale = UNARY[name]
    x = special(dtype)
    x = x[x > 0] if name in POSITIVE else x
    if name in ("sin", "cos"):
        x = x[np.abs(x) < 1e6]
    expected = [derivative(mp.mpf(float(number))) for number in x]
    (found,) = gradients(getattr(wp, name), kind, [x])
    assert [(x[row], *what) for row, *what in wrong(found, expected, dtype, scale)] == []


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.__name__)
def test_atan2(kind):
    dtype = FLOATS[kind]
    numbers = np.array([*special(dtype), 0.0, np.inf, -np.inf], dtype)
    y, x = np.array(list(itertools.product(numbers, numbers)), dtype).T
    by_y, by_x = gradients(wp.atan2, kind, [y, x])
    for found, sign in ((by_y, 1), (by_x, -1)):
        expected = []
        for a, b in zip(y.astype(float), x.astype(float), strict=True):
            flat = not np.isfinite([a, b]).all() or (a == 0 and b == 0)
            square = mp.mpf(a) ** 2 + mp.mpf(b) ** 2
            expected.append(mp.mpf(0) if flat else sign * mp.mpf(b if sign > 0 else a) / square)
        assert [(y[row], x[row], *what) for row, *what in wrong(found, expected, dtype, 0)] == []


@pytest.mark.parametrize("kind", [wp.float32, wp.float64], ids=lambda kind: kind.__name__)
def test_pow_with_the_greatest_exponents(kind):
    dtype = FLOATS[kind]
    most = float(np.finfo(dtype).max)
    rows = itertools.product([0.25, 0.5, 1.0, 2.0, 3.0, most], [most, -most, most / 4, 1.0, -1.0, 0.5])
    x, y = np.array(list(rows), dtype).T
    by_x, by_y = gradients(wp.pow, kind, [x, y])

    def power(base, exponent):
        """Beyond the largest number: any such number; below the least one: 0."""
        size = mp.log(base) * exponent
        return mp.mpf(0) if size < -1e4 else mp.mpf("1e5000") if size > 1e4 else mp.exp(size)

    pairs = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    expected = [b * power(a, b - 1) for a, b in pairs], [mp.log(a) * power(a, b) for a, b in pairs]
    for found, true in zip((by_x, by_y), expected, strict=True):
        assert [(x[row], y[row], *what) for row, *what in wrong(found, true, dtype, 0)] == []


@pytest.mark.parametrize("function", [wp.normalize, wp.length], ids=["normalize", "length"])
@pytest.mark.parametrize("size", [6e-5, 1.5e-3, 0.5, 300.0, 3e4])
def test_half_precision_lengths_do_not_overflow_on_the_way(function, size):
    vec3h = wp.types.vector(3, wp.float16)
    result = vec3h if function is wp.normalize else wp.float16

    @wp.kernel(module="unique")
    def kernel(x: wp.array[vec3h], out: wp.array[result]):
        out[0] = function(x[0])

    direction = np.array([0.48, -0.6, 0.64])
    x = wp.array([direction * size], dtype=vec3h, requires_grad=True)
    out = wp.zeros(1, dtype=result, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, 1, [x], [out])
    seed = np.array([[1.0, 0.5, -0.25]]) * min(size, 1.0) if function is wp.normalize else np.ones(1)
    tape.backward(grads={out: wp.array(seed, dtype=result)})
    given = x.numpy()[0].astype(float)
    length = np.linalg.norm(given)
    unit = given / length
    value, gradient = length, unit
    if function is wp.normalize:
        seed = wp.array(seed, dtype=result).numpy()[0].astype(float)
        value, gradient = unit, (seed - unit * (unit @ seed)) / length
    np.testing.assert_allclose(out.numpy()[0].astype(float), value, rtol=2e-3)
    np.testing.assert_allclose(x.grad.numpy()[0].astype(float), gradient, rtol=4e-3, atol=2e-3 * np.abs(gradient).max())


def test_slerp_half_a_turn_away_has_the_gradient_of_its_side():
    @wp.kernel(module="unique")
    def kernel(q: wp.array[wp.quatd], t: wp.float64, out: wp.array[wp.quatd]):
        i = wp.tid()
        one = wp.quatd(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
        out[i] = wp.quat_slerp(one, q[i], t)

    def value(w):
        moved = wp.array([[0.6, 0.0, 0.8, w]], dtype=wp.quatd)
        out = wp.zeros(1, dtype=wp.quatd)
        wp.launch(kernel, 1, [moved, 0.3], [out])
        return out.numpy()[0] @ [1.0, 0.0, 0.5, 2.0]

    q = wp.array([[0.6, 0.0, 0.8, 0.0]], dtype=wp.quatd, requires_grad=True)
    out = wp.zeros(1, dtype=wp.quatd, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, 1, [q, 0.3], [out])
    tape.backward(grads={out: wp.array([[1.0, 0.0, 0.5, 2.0]], dtype=wp.quatd)})
    by_w = (value(1e-6) - value(0.0)) / 1e-6
    assert abs(by_w) > 4e-3
    np.testing.assert_allclose(q.grad.numpy()[0, 3], by_w, rtol=1e-4)

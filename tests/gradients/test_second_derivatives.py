"""wp.autograd.hvp of every builtin, in float64: the Hessian of a weighted sum of its results times a direction in which
all arguments move, against central differences of the gradient by reverse mode, to 1e-6, at random and awkward points.
"""

from statistics import NormalDist

import numpy as np
import pytest
import slopes
import warp as wp
from sweep import load
from tapes import doubles
from test_builtins import SINGLE, directed, points, rounded, size, swept, weighting
from warp import _weft

pytestmark = pytest.mark.protected

STEP = 2e-3
# Functions of the device library have an adjoint and a tangent, and no derivative of these.
LIBRARY = ["closest_point_edge_edge"]


def against_differences(call, inputs, directions, products, quotients, certain=1e-7, tolerance=1e-6):
    """Messages about the rows whose product is not that of the difference quotients of gradients."""
    messages, trusted, entries = [], 0, 0
    for a, (found, pair) in enumerate(zip(products, quotients)):
        if pair is None:
            continue
        expected, error, scale = pair
        scale = np.maximum(np.maximum(size(np.where(np.isfinite(scale), scale, 0)), np.abs(expected)), 0.01)
        usable = error < certain * scale
        trusted, entries = trusted + usable.sum(), entries + usable.size
        with np.errstate(invalid="ignore"):
            wrong = usable & ~(np.abs(found - expected) <= tolerance * scale)
        bad = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))
        if len(bad):
            shown = "\n".join(
                f"    at {[v[row].tolist() for v in inputs]} along {[d[row].tolist() for d in directions]} argument "
                f"{a} has {found[row].tolist()}, differences {expected[row].tolist()}"
                for row in bad[:2]
            )
            messages.append(f"{call}: {len(bad)} of {len(wrong)} rows\n{shown}")
    if trusted < 0.5 * entries:
        messages.append(f"{call}: differences tell only {trusted} of {entries} entries")
    return messages


@pytest.mark.parametrize("name", [n for n in _weft.builtin_names() if swept(n) and n not in SINGLE + LIBRARY])
def test_second_derivatives(name, tmp_path):
    calls = [c for c in swept(name) if c.scalar == "float64"]
    kernels = slopes.build(calls, tmp_path, f"{name}_twice")
    inputs, weights, directions = ([made(c) for c in calls] for made in (points, weighting, directed))
    quotients = slopes.second_differences(calls, kernels, inputs, weights, directions, STEP)
    products = slopes.products(calls, kernels, inputs, weights, directions)
    messages = []
    for row in zip(calls, inputs, directions, products, quotients):
        messages += against_differences(*row)
    assert not messages, "\n".join(messages)


@pytest.mark.parametrize("name", LIBRARY)
def test_second_derivatives_of_library_functions_are_errors_that_name_them(name, tmp_path):
    calls = [c for c in swept(name) if c.scalar == "float64"]
    kernels = slopes.build(calls, tmp_path, f"{name}_twice")
    inputs, weights, directions = ([made(c) for c in calls] for made in (points, weighting, directed))
    with pytest.raises(
        wp.CompileError, match="library function 'weft_lib_.*_adjoint_f64', whose derivative is not known"
    ):
        slopes.products(calls, kernels, inputs, weights, directions)


@pytest.mark.parametrize("name", SINGLE)
def test_second_derivatives_of_what_has_float32_alone(name, tmp_path):
    calls = swept(name)
    kernels = slopes.build(calls, tmp_path, f"{name}_twice")
    inputs, directions = ([rounded(made(c), c.types) for c in calls] for made in (points, directed))
    weights = [rounded(weighting(c), c.outputs) for c in calls]
    quotients = slopes.second_differences(calls, kernels, inputs, weights, directions, 0.02)
    products = slopes.products(calls, kernels, inputs, weights, directions)
    messages = []
    for row in zip(calls, inputs, directions, products, quotients):
        messages += against_differences(*row, certain=1e-3, tolerance=2e-2)
    assert not messages, "\n".join(messages)


# ---- gradients that are zero, and do not stay so ----

quantile = np.vectorize(NormalDist().inv_cdf)  # sqrt(2) * erfinv(2 * x - 1)
# Functions, and their slopes.
SLOPES = {
    "wp.sqrt({})": lambda x: 0.5 / np.sqrt(x),
    "wp.cbrt({})": lambda x: 1 / (3 * np.cbrt(x) ** 2),
    "wp.exp({})": np.exp,
    "wp.log({})": lambda x: 1 / x,
    "wp.log2({})": lambda x: 1 / (x * np.log(2)),
    "wp.log10({})": lambda x: 1 / (x * np.log(10)),
    "wp.erfinv({})": lambda x: np.sqrt(np.pi) / 2 * np.exp(quantile((1 + x) / 2) ** 2 / 2),
    "wp.erfcinv({})": lambda x: -np.sqrt(np.pi) / 2 * np.exp(quantile(x / 2) ** 2 / 2),
    "{} / three": lambda x: np.full_like(x, 1 / 3),
    "three / {}": lambda x: -3 / x**2,
    "1.0 / {}": lambda x: -1 / x**2,
    "three % {}": lambda x: -np.floor(3 / x),
    "wp.pow({}, three)": lambda x: 3 * x**2,
    "wp.pow(three, {})": lambda x: 3**x * np.log(3),
    "wp.pow(three, {} - y)": lambda x: np.full_like(x, np.log(3)),
}


def misfits(kind, folder):
    """A kernel that squares what is left of each function when its value at the same place is taken from it."""
    lines = ["import warp as wp", "", "", "@wp.kernel"]
    lines += [f"def misfits(xs: wp.array[wp.{kind}], ys: wp.array[wp.{kind}], out: wp.array2d[wp.{kind}]):"]
    lines += ["    i = wp.tid()", "    x, y = xs[i], ys[i]", f"    three = wp.{kind}(3.0)"]
    for j, function in enumerate(SLOPES):
        function = function.replace("1.0", f"wp.{kind}(1.0)")
        lines += [f"    r{j} = {function.format('x')} - {function.format('y')}", f"    out[i, {j}] = r{j} * r{j}"]
    return load("\n".join(lines) + "\n", folder, f"misfits_{kind}").misfits


@pytest.mark.parametrize("kind, rtol", [("float64", 1e-12), ("float32", 1e-4)])
def test_misfits_that_vanish_have_the_hessian_of_least_squares(kind, rtol, tmp_path):
    dtype, kernel = getattr(wp, kind), misfits(kind, tmp_path)
    x = wp.array([0.31, 0.55, 0.7, 0.9], dtype=dtype)
    out = wp.zeros((4, len(SLOPES)), dtype=dtype)
    for j, (function, slope) in enumerate(SLOPES.items()):
        weights = np.zeros(out.shape)
        weights[:, j] = 1.0
        seeds = [wp.array(weights, dtype=dtype)]
        product = wp.autograd.hvp(kernel, 4, [x, wp.clone(x)], [out], vectors=[wp.ones_like(x)], weights=seeds)[0]
        np.testing.assert_allclose(product.numpy(), 2 * slope(x.numpy()) ** 2, rtol=rtol, err_msg=function)


@wp.func
def misfit(x: wp.float64, y: wp.float64):
    r = wp.exp(x) - wp.exp(y)
    s = wp.log(x) - wp.log(y)
    return r * r + s * s


@wp.kernel
def gradient_of_misfit(x: wp.array[wp.float64], y: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    by_x, by_y = wp.grad(misfit)(x[i], y[i])
    out[i] = by_x - wp.float64(2.0) * by_y


def test_gradients_in_kernels_that_vanish_can_be_differentiated():
    x = doubles([0.4, 1.5], requires_grad=True)
    out = doubles([0.0, 0.0], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(gradient_of_misfit, 2, [x, wp.clone(x, requires_grad=False), out])
    tape.backward(grads={out: doubles([1.0, 1.0])})
    np.testing.assert_array_equal(out.numpy(), 0.0)
    at = x.numpy()
    np.testing.assert_allclose(x.grad.numpy(), 6 * (np.exp(2 * at) + 1 / at**2))  # by_y = -by_x there, in slope too


@wp.func
def cubed_misfit(x: wp.float64, y: wp.float64):
    r = wp.exp(x) - wp.exp(y)
    return r * r * r + wp.sqrt(x) * wp.pow(r, wp.float64(2.0))


@wp.func
def slope_of_cubed_misfit(x: wp.float64, y: wp.float64):
    by_x, _by_y = wp.grad(cubed_misfit)(x, y)
    return by_x


@wp.kernel
def slopes_of_cubed_misfit(x: wp.array[wp.float64], y: wp.array[wp.float64], out: wp.array2d[wp.float64]):
    i = wp.tid()
    out[i, 0] = slope_of_cubed_misfit(x[i], y[i])
    by_x, _by_y = wp.grad(slope_of_cubed_misfit)(x[i], y[i])
    out[i, 1] = by_x


def test_third_derivatives_by_gradients_in_kernels_where_all_before_are_zero():
    at = np.array([0.4, 1.5])
    e, root = np.exp(at), np.sqrt(at)
    # Of e³(x - y)³ + √x r² at x = y: r' = r'' = exp.
    second, third = 2 * root * e**2, 6 * e**3 + 6 * root * e**2 + 3 / root * e**2
    x, y, v = doubles(at, requires_grad=True), doubles(at), doubles([1.0, 1.0])
    out = wp.zeros((2, 2), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(slopes_of_cubed_misfit, 2, [x, y, out])
    np.testing.assert_allclose(out.numpy(), np.stack([0 * at, second], axis=1), atol=1e-12)
    for j, expected in enumerate((second, third)):
        x.grad.zero_()
        seed = np.zeros((2, 2))
        seed[:, j] = 1.0
        tape.backward(grads={out: doubles(seed)})
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-10)
    weights = [doubles([[1.0, 0.0], [1.0, 0.0]])]
    product = wp.autograd.hvp(slopes_of_cubed_misfit, 2, [x, y], [out], vectors=[v], weights=weights)[0]
    np.testing.assert_allclose(product.numpy(), third, rtol=1e-10)


@wp.kernel
def power(x: wp.array[wp.float64], p: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    out[i] = wp.pow(x[i], p[i])


def test_the_exponent_zero_may_move():
    x, p, v = doubles([0.5, 2.0]), doubles([0.0, 0.0]), doubles([1.0, 3.0])
    by_x, by_p = wp.autograd.hvp(power, 2, [x, p], [doubles([0.0, 0.0])], vectors=[None, v])
    np.testing.assert_allclose(by_x.numpy(), v.numpy() / x.numpy())
    np.testing.assert_allclose(by_p.numpy(), v.numpy() * np.log(x.numpy()) ** 2)


@wp.kernel
def beside_singular_points(x: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    a = x[i]
    root = wp.where(a > wp.float64(0.0), wp.sqrt(a) + wp.log(a) + wp.float64(1.0) / a, a * a)
    out[i] = root + wp.pow(a, wp.float64(2.0)) + wp.length(wp.vec2d(a, a)) * wp.float64(0.0)


def test_what_nothing_depends_on_has_no_part_in_second_derivatives():
    x, v = doubles([0.0, 4.0]), doubles([1.0, 1.0])
    product = wp.autograd.hvp(beside_singular_points, 2, [x], [doubles([0.0, 0.0])], vectors=[v])[0]
    np.testing.assert_allclose(product.numpy(), [4.0, -0.25 * 4.0**-1.5 - 4.0**-2 + 2 * 4.0**-3 + 2])


# ---- decompositions ----


@wp.kernel
def as_rigid_as_possible(f: wp.array[wp.mat33d], out: wp.array[wp.float64]):
    i = wp.tid()
    u, _sigma, v = wp.svd3(f[i])
    away = f[i] - u @ wp.transpose(v)
    out[i] = wp.ddot(away, away)


def test_the_elastic_energy_at_rest_has_the_stiffness_of_linear_elasticity():
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn *= np.linalg.det(turn)
    rest, v = np.stack([np.eye(3), turn]), rng.standard_normal((2, 3, 3))
    f, out = wp.array(rest, dtype=wp.mat33d), doubles([0.0, 0.0])
    product = wp.autograd.hvp(as_rigid_as_possible, 2, [f], [out], vectors=[wp.array(v, dtype=wp.mat33d)])[0].numpy()
    strain = rest.transpose(0, 2, 1) @ v
    np.testing.assert_allclose(product, rest @ (strain + strain.transpose(0, 2, 1)), atol=1e-10)


@wp.func
def stretched(f: wp.mat33d):
    u, sigma, v = wp.svd3(f)
    return sigma[0] * sigma[1] + u[0, 1] * v[2, 0]


@wp.kernel
def stress(f: wp.array[wp.mat33d], out: wp.array[wp.mat33d]):
    i = wp.tid()
    out[i] = wp.grad(stretched)(f[i])


@wp.kernel
def stretch(f: wp.array[wp.mat33d], out: wp.array[wp.float64]):
    i = wp.tid()
    out[i] = stretched(f[i])


def test_reverse_over_reverse_through_a_decomposition_is_forward_over_reverse():
    rng = np.random.default_rng(8)
    f, v = (wp.array(a, dtype=wp.mat33d) for a in rng.standard_normal((2, 5, 3, 3)))
    expected = wp.autograd.hvp(stretch, 5, [f], [doubles(np.zeros(5))], vectors=[v])[0].numpy()
    given, out = wp.clone(f, requires_grad=True), wp.zeros(5, dtype=wp.mat33d, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(stress, 5, [given, out])
    tape.backward(grads={out: v})
    np.testing.assert_allclose(given.grad.numpy(), expected, rtol=1e-8, atol=1e-8)
    moved = wp.zeros(5, dtype=wp.mat33d)
    wp.jvp(stress, 5, [f], [out], input_tangents=[v], output_tangents=[moved])
    np.testing.assert_allclose(moved.numpy(), expected, rtol=1e-8, atol=1e-8)
    with pytest.raises(wp.CompileError, match="the third derivative of this is not known"):
        wp.autograd.hvp(stress, 5, [f], [out], vectors=[v])


@wp.kernel
def squares_of_values(a: wp.array[wp.mat33d], out: wp.array2d[wp.float64]):
    i = wp.tid()
    _u, sigma, _v = wp.svd3(a[i])
    _q, d = wp.eig3(a[i] + wp.transpose(a[i]))
    _o, r = wp.qr3(a[i])
    out[i, 0] = wp.dot(sigma, sigma)
    out[i, 1] = wp.dot(d, d)
    out[i, 2] = wp.ddot(r, r)


def test_values_of_decompositions_have_the_hessians_of_what_they_add_up_to():
    rng = np.random.default_rng(4)
    a, v = rng.standard_normal((2, 6, 3, 3))
    expected = [2 * v, 4 * (v + v.transpose(0, 2, 1)), 2 * v]
    given, vector = wp.array(a, dtype=wp.mat33d), wp.array(v, dtype=wp.mat33d)
    for j in range(3):
        weights, out = np.zeros((6, 3)), wp.zeros((6, 3), dtype=wp.float64)
        weights[:, j] = 1.0
        seeds = [wp.array(weights, dtype=wp.float64)]
        product = wp.autograd.hvp(squares_of_values, 6, [given], [out], vectors=[vector], weights=seeds)[0]
        np.testing.assert_allclose(product.numpy(), expected[j], rtol=1e-7, atol=1e-7)

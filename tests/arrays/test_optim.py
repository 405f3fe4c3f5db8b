"""wp.optim: against the same formulas in NumPy, and what the established implementation gave (1.19.0)."""

import itertools

import numpy as np
import pytest
import warp as wp
import warp.optim
from warp.optim.optimizer import TOGETHER

pytestmark = pytest.mark.protected


def adam(p, gradients, lr, beta1, beta2, eps):
    m = v = np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        p = p - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return p


def sgd(p, gradients, lr, momentum, dampening, weight_decay, nesterov):
    b = None
    for g in gradients:
        g = g + weight_decay * p
        if momentum:
            b = g if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p = p - lr * g
    return p


def parameters(rng):
    """More than one launch takes, of every dtype and several shapes."""
    shapes = [(5, wp.float32), (7, wp.float16), ((3, 2), wp.float32), (4, wp.vec3), (0, wp.float32), (1, wp.float32)]
    shapes += [(2, wp.float32)] * TOGETHER
    values = [rng.uniform(-1, 1, (*np.atleast_1d(n), *([3] if t is wp.vec3 else []))) for n, t in shapes]
    return [wp.array(value, dtype=t) for value, (_, t) in zip(values, shapes)], values


def gradients_of(rng, params):
    values = [rng.uniform(-1, 1, one.numpy().shape) for one in params]
    return [wp.array(value, dtype=one.dtype) for value, one in zip(values, params)], values


def run(optimizer, params, steps, rng):
    """Some steps; the gradients as they were rounded, by parameter."""
    given = [[] for _ in params]
    for _ in range(steps):
        gradients, _ = gradients_of(rng, params)
        optimizer.step(gradients)
        for of, gradient in zip(given, gradients):
            of.append(gradient.numpy().astype(np.float64))
    return given


def assert_moved(params, starts, given, rule):
    for param, start, gradients in zip(params, starts, given):
        expected = rule(wp.array(start, dtype=param.dtype).numpy().astype(np.float64), gradients)
        tolerance = 4e-3 if param.dtype is wp.float16 else 2e-6
        np.testing.assert_allclose(param.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_adam_moves_all_parameters_as_its_formula_says():
    rng = np.random.default_rng(0)
    params, starts = parameters(rng)
    optimizer = wp.optim.Adam(params, lr=0.05, betas=(0.8, 0.95), eps=1e-3)
    given = run(optimizer, params, 5, rng)
    assert_moved(params, starts, given, lambda p, gradients: adam(p, gradients, 0.05, 0.8, 0.95, 1e-3))
    assert optimizer.t == 5


@pytest.mark.parametrize("options", list(itertools.product((0.0, 0.9), (0.0, 0.5), (0.0, 0.1), (False, True))))
def test_sgd_moves_all_parameters_as_its_formula_says(options):
    momentum, dampening, weight_decay, nesterov = options
    rng = np.random.default_rng(1)
    params, starts = parameters(rng)
    optimizer = wp.optim.SGD(params, 0.1, momentum, dampening, weight_decay, nesterov)
    given = run(optimizer, params, 3, rng)
    assert_moved(params, starts, given, lambda p, gradients: sgd(p, gradients, 0.1, *options))


WIDE = [wp.float64, wp.vec2d, wp.mat22d, wp.quatd, wp.transformd, wp.types.vector(5, wp.float64)]
NARROW = [
    wp.vec2,
    wp.vec4,
    wp.mat33,
    wp.quat,
    wp.transform,
    wp.vec3h,
    wp.quath,
    wp.bfloat16,
    wp.types.matrix((2, 3), wp.float16),
]


@pytest.mark.parametrize("kind", [wp.optim.Adam, wp.optim.SGD])
@pytest.mark.parametrize("dtype", [*WIDE, *NARROW], ids=wp.types.type_name)
def test_every_float_type_is_moved_by_its_components(kind, dtype):
    rng = np.random.default_rng(7)
    shape = (3, wp.types.type_components(dtype))
    start, slopes = rng.uniform(-1, 1, shape), rng.uniform(-1, 1, (4, *shape))
    rounded = np.float64 if dtype in WIDE else np.float32

    def as_arrays(values):
        matrix_shape = getattr(dtype, "_shape_", ())
        return wp.array(values.reshape(3, *matrix_shape), dtype=dtype)

    def numbers(one):
        return one.astype(wp.types._with_scalar(dtype, wp.float64)).numpy().reshape(shape)

    param = as_arrays(start)
    optimizer = kind([param], 0.05, (0.8, 0.95), 1e-3) if kind is wp.optim.Adam else kind([param], 0.05, 0.9, 0.5, 0.1)
    rule = (adam, (0.05, 0.8, 0.95, 1e-3)) if kind is wp.optim.Adam else (sgd, (0.05, 0.9, 0.5, 0.1, False))
    begin, given = numbers(param), [as_arrays(one) for one in slopes]
    for gradient in given:
        optimizer.step([gradient])
    expected = rule[0](begin, [numbers(one) for one in given], *rule[1])
    bits = {wp.float64: 1e-14, wp.float32: 2e-6, wp.float16: 4e-3, wp.bfloat16: 4e-2}[wp.types.type_scalar_type(dtype)]
    np.testing.assert_allclose(numbers(param), expected, rtol=bits, atol=bits)
    for name in optimizer.kept:
        (kept,) = getattr(optimizer, name)
        assert kept.dtype is wp.types._with_scalar(dtype, wp.dtype_from_numpy(rounded)), kept.dtype


def test_steps_as_the_established_implementation_makes_them():
    p = wp.array(np.linspace(-1, 1, 3), dtype=wp.float32)
    optimizer = wp.optim.Adam([p], lr=0.1, betas=(0.8, 0.9), eps=0.01)
    for t in range(4):
        optimizer.step([wp.array(np.array([0.3, -0.2, 0.5]) * (t + 1) * (-1) ** t, dtype=wp.float32)])
    np.testing.assert_allclose(p.numpy(), [-1.0653805, 0.06414153, 0.9335967], rtol=1e-6)
    p = wp.array(np.linspace(-1, 1, 3), dtype=wp.float32)
    optimizer = wp.optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1, nesterov=True)
    for t in range(3):
        optimizer.step([wp.array(np.array([0.3, -0.2, 0.5]) * (t + 1), dtype=wp.float32)])
    np.testing.assert_allclose(optimizer.b[0].numpy(), [0.7789825, -0.63470757, 1.7598476], rtol=1e-6)


def test_parameters_with_gaps_are_changed_in_place():
    base = wp.array(np.arange(8.0), dtype=wp.float32)
    vectors = wp.array(np.ones((6, 3)), dtype=wp.vec3)
    params = [base[::2], vectors[1::2]]
    gradient = wp.array(np.ones(8), dtype=wp.float32)
    wp.optim.SGD(params, lr=1.0).step([gradient[1::2], wp.ones(3, dtype=wp.vec3)])
    np.testing.assert_array_equal(base.numpy(), [-1, 1, 1, 3, 3, 5, 5, 7])
    np.testing.assert_array_equal(vectors.numpy(), np.repeat([[1.0], [0.0]] * 3, 3, axis=1))


def test_moments_are_float32_and_stay_with_parameters_that_are_set_again():
    params = [wp.zeros(3, dtype=wp.float16), wp.zeros(2, dtype=wp.vec3), wp.zeros(4)]
    optimizer = wp.optim.Adam()
    optimizer.set_params(params)
    assert [(m.dtype, m.shape) for m in optimizer.m] == [(wp.float32, (3,)), (wp.vec3, (2,)), (wp.float32, (4,))]
    optimizer.step([wp.ones(3, dtype=wp.float16), wp.ones(2, dtype=wp.vec3), wp.ones(4)])
    kept = list(optimizer.m)
    optimizer.set_params([*params[:2], wp.zeros(5)])
    assert optimizer.m[0] is kept[0] and optimizer.m[1] is kept[1] and optimizer.t == 1
    np.testing.assert_allclose(optimizer.m[0].numpy(), 0.1, rtol=1e-6)
    np.testing.assert_array_equal(optimizer.m[2].numpy(), np.zeros(5))
    optimizer.reset_internal_state()
    assert optimizer.t == 0 and not any(one.numpy().any() for one in (*optimizer.m, *optimizer.v))


def test_a_step_after_a_reset_is_a_first_step():
    p = wp.zeros(2)
    optimizer = wp.optim.SGD([p], lr=1.0, momentum=0.5)
    for _ in range(2):
        optimizer.step([wp.ones(2)])
    optimizer.reset_internal_state()
    optimizer.step([wp.ones(2)])
    np.testing.assert_array_equal(p.numpy(), [-3.5, -3.5])


@pytest.mark.parametrize("kind", [wp.optim.Adam, wp.optim.SGD])
def test_what_does_not_fit_is_an_error(kind):
    with pytest.raises(RuntimeError, match=r"no parameters yet. help: set_params"):
        kind().step([wp.zeros(1)])
    with pytest.raises(RuntimeError, match="parameter 1 is an array of vec3i, expected floats, or vectors, matrices"):
        kind([wp.zeros(1), wp.zeros(1, dtype=wp.vec3i)])
    with pytest.raises(TypeError, match="expected a list of arrays"):
        kind(wp.zeros(1))
    with pytest.raises(TypeError, match="parameter 0 is 3, expected an array"):
        kind([3])
    optimizer = kind([wp.zeros(2)])
    with pytest.raises(ValueError, match="expected a list of 1: one a parameter"):
        optimizer.step([])
    with pytest.raises(ValueError, match=r"gradient 0 has the shape \(3,\), its parameter \(2,\)"):
        optimizer.step([wp.zeros(3)])
    with pytest.raises(TypeError, match="gradient 0 is float64, expected an array of float32"):
        optimizer.step([wp.zeros(2, dtype=wp.float64)])
    with pytest.raises(TypeError, match="gradient 0 is None"):
        optimizer.step([None])


def test_a_loop_of_recording_and_steps_finds_the_least_squares():
    @wp.kernel
    def misfit(a: wp.array2d[float], x: wp.array[float], b: wp.array[float], loss: wp.array[float]):
        i = wp.tid()
        r = -b[i]
        for j in range(x.shape[0]):
            r += a[i, j] * x[j]
        wp.atomic_add(loss, 0, r * r)

    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(12, 3)), rng.normal(size=12)
    x = wp.zeros(3, requires_grad=True)
    arrays = wp.array(a, dtype=wp.float32), wp.array(b, dtype=wp.float32)
    optimizer, tape = wp.optim.Adam([x], lr=0.05), wp.Tape()
    for _ in range(400):
        tape.reset()
        loss = wp.zeros(1, requires_grad=True)
        with tape:
            wp.launch(misfit, dim=12, inputs=[arrays[0], x, arrays[1], loss])
        tape.backward(loss)
        optimizer.step([tape.gradients[x]])
    np.testing.assert_allclose(x.numpy(), np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-3, atol=1e-3)


def test_a_step_is_not_recorded_and_seen_by_a_tape_that_kept_contents():
    @wp.kernel
    def square(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = x[i] * x[i]

    x, y = wp.full(2, 3.0, dtype=float, requires_grad=True), wp.zeros(2, requires_grad=True)
    optimizer = wp.optim.SGD([x], lr=1.0)
    with wp.Tape() as tape:
        wp.launch(square, dim=2, inputs=[x, x])
        wp.launch(square, dim=2, inputs=[x, y])
        optimizer.step([wp.zeros(2)])
    assert len(tape.launches) == 2
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(grads={y: wp.ones(2)})

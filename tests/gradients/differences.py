"""Gradients against central differences: the one comparison that every test of this folder makes."""

import numpy as np
import warp as wp


def _is_smooth(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _arguments(values, dtypes, requires_grad):
    arguments = []
    for i, value in enumerate(values):
        if not isinstance(value, np.ndarray):
            arguments.append(value)
            continue
        dtype = dtypes.get(i) if dtypes else None
        arguments.append(wp.array(value, dtype=dtype, requires_grad=requires_grad and _is_smooth(value)))
    return arguments


def numeric(function, values, eps):
    """The gradient of function(values) by each float array of `values`; None for the others."""
    gradients = []
    for i, value in enumerate(values):
        if not _is_smooth(value):
            gradients.append(None)
            continue
        gradient = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            ends = []
            for step in (eps, -eps):
                moved = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
                moved[i][index] += step
                ends.append(function(moved))
            gradient[index] = (ends[0] - ends[1]) / (2.0 * eps)
        gradients.append(gradient)
    return gradients


def weights_of(shape, rng):
    """Random numbers; if there are a few more of them 0 and 1 too, which adjoints may treat in a way of their own."""
    weights = rng.standard_normal(shape)
    if weights.size >= 8:
        weights.flat[1::5], weights.flat[3::5] = 0.0, 1.0
    return weights


def _gradients(program, values, weights, dtypes):
    """(gradients of sum(weights * output) by the arguments, the arguments, the tape)."""
    arguments = _arguments(values, dtypes, True)
    tape = wp.Tape()
    with tape:
        output = program(*arguments)
    taped = output.numpy().copy()
    weights = weights(taped.shape)
    tape.backward(grads={output: wp.array(weights.astype(output.numpy().dtype), dtype=output.dtype)})
    found = [argument.grad.numpy() if _is_smooth(v) else None for argument, v in zip(arguments, values)]
    alone = program(*_arguments(values, dtypes, False)).numpy()
    np.testing.assert_allclose(taped, alone, rtol=1e-12, atol=1e-12, err_msg="value on a tape")
    return found, weights, tape


def check_program(program, values, *, dtypes=None, eps=1e-6, rtol=1e-6, atol=1e-7, twice=True, unused=()):
    """`program(*arguments)` launches what it likes on wp.arrays of `values` and returns an output array. Backward of a
    random weighting of the output is compared with central differences, for each array of float64; and, `twice`, its
    Hessian times a random direction with central differences of the gradient. So is its tangent by wp.jvp. On another
    device than the CPU the output is compared with the CPU's: differences do not see a number that is added to all.

    Two zeros prove nothing: the output has to depend on each array but those at the places `unused`; if that is
    None, as for random programs, on one of them."""
    rng = np.random.default_rng(12345)
    gradients, weights, tape = _gradients(program, values, lambda shape: weights_of(shape, rng), dtypes)
    _check_values(program, values, dtypes)

    def weighted(moved):
        return float(np.sum(program(*_arguments(moved, dtypes, False)).numpy() * weights))

    differences = numeric(weighted, values, eps)
    assert any(expected is not None and expected.any() for expected in differences), "all gradients are zero"
    for i, (found, expected) in enumerate(zip(gradients, differences)):
        if expected is None:
            continue
        assert unused is None or (i in unused) == (not expected.any()), f"the gradient of argument {i} is {expected}"
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol * scale, err_msg=f"argument {i}")
    _check_tangent_of(program, values, dtypes, eps, rtol, atol)
    if twice:
        check_hessian_of(program, values, weights, dtypes, 10 * eps, rtol, atol)
    return tape


def _check_values(program, values, dtypes):
    if wp.get_device().is_cpu:
        return
    found = program(*_arguments(values, dtypes, False)).numpy()
    with wp.ScopedDevice("cpu"):
        expected = program(*_arguments(values, dtypes, False)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg="values beside the CPU's")


def _check_tangent_of(program, values, dtypes, eps, rtol, atol):
    """wp.jvp of the program against central differences."""
    rng = np.random.default_rng(54321)
    directions = [rng.standard_normal(v.shape) if _is_smooth(v) else None for v in values]
    ends = []
    for step in (eps, -eps):
        moved = [v if d is None else v + step * d for v, d in zip(values, directions)]
        ends.append(program(*_arguments(moved, dtypes, False)).numpy())
    arguments = _arguments(values, dtypes, False)
    tangents = [None if d is None else wp.array(d, dtype=a.dtype) for d, a in zip(directions, arguments)]
    value, found = wp.jvp(program, inputs=arguments, input_tangents=tangents)
    alone = program(*_arguments(values, dtypes, False)).numpy()
    np.testing.assert_allclose(value.numpy(), alone, rtol=1e-12, atol=1e-12, err_msg="value beside the tangent")
    expected = (ends[0] - ends[1]) / (2.0 * eps)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=atol * scale, err_msg="tangent")


def check_hessian_of(program, values, weights, dtypes, eps, rtol, atol):
    rng = np.random.default_rng(54321)
    directions = [rng.standard_normal(v.shape) if _is_smooth(v) else None for v in values]

    def moved(step):
        at = [v if d is None else v + step * d for v, d in zip(values, directions)]
        return _gradients(program, at, lambda shape: weights, dtypes)[0]

    arguments = _arguments(values, dtypes, False)
    output = program(*_arguments(values, dtypes, False))
    found = wp.autograd.hvp(
        program,
        inputs=arguments,
        vectors=[None if d is None else wp.array(d, dtype=a.dtype) for d, a in zip(directions, arguments)],
        weights=[wp.array(weights.astype(output.numpy().dtype), dtype=output.dtype)],
    )
    for i, (product, up, down) in enumerate(zip(found, moved(eps), moved(-eps))):
        if up is None:
            continue
        expected = (up - down) / (2.0 * eps)
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(
            product.numpy(), expected, rtol=rtol, atol=atol * scale, err_msg=f"argument {i}, second derivative"
        )

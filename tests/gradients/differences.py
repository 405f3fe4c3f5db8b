"""Gradients against central differences: the one comparison that every test of this folder makes."""

import numpy as np
import warp as wp


def _arguments(values, dtypes, requires_grad):
    arguments = []
    for i, value in enumerate(values):
        if not isinstance(value, np.ndarray):
            arguments.append(value)
            continue
        is_smooth = value.dtype.kind == "f"
        dtype = dtypes.get(i) if dtypes else None
        arguments.append(wp.array(value, dtype=dtype, requires_grad=requires_grad and is_smooth))
    return arguments


def numeric(function, values, eps):
    """The gradient of function(values) by each float array of `values`; None for the others."""
    gradients = []
    for i, value in enumerate(values):
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
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


def check_program(program, values, *, dtypes=None, eps=1e-6, rtol=1e-6, atol=1e-7):
    """`program(*arguments)` launches what it likes on wp.arrays of `values` and returns an output array. Backward of a
    random weighting of the output is compared with central differences, for each array of float64."""
    rng = np.random.default_rng(12345)
    arguments = _arguments(values, dtypes, True)
    tape = wp.Tape()
    with tape:
        output = program(*arguments)
    weights = rng.standard_normal(output.numpy().shape)
    tape.backward(grads={output: wp.array(weights.astype(output.numpy().dtype), dtype=output.dtype)})

    def weighted(moved):
        return float(np.sum(program(*_arguments(moved, dtypes, False)).numpy() * weights))

    for i, expected in enumerate(numeric(weighted, values, eps)):
        if expected is None:
            continue
        found = arguments[i].grad.numpy()
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol * scale, err_msg=f"argument {i}")
    return tape

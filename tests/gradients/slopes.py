"""Gradients of builtins for many rows of arguments at once, against differences, for test_builtins.py.

A call runs with its arguments in many rows. Rows do not know of each other, so one launch gives the values at all
points of all difference quotients, and one adjoint launch the gradients of all rows.
"""

import numpy as np
import warp as wp
from sweep import function_of, groups, load

# Of the extrapolated difference quotients: three step sizes, of which each is half the one before.
STEPS = 3
PER_KERNEL = 10


def is_smooth(kind):
    return kind.is_float


def build(calls, folder, name):
    """The calls in kernels: a list of (kernel, numbers of the calls in it). Not optimised: values are tested elsewhere,
    and derivatives are made before."""
    built = []
    for group in groups(len(calls), PER_KERNEL):
        source = 'import warp as wp\n\n\n@wp.kernel(module_options={"optimization_level": 0, "lanes": 1})\n'
        source += function_of(calls, group)
        built.append((load(source, folder, f"slopes_{name}_{group[0]}").k, group))
    return built


def _padded(values, rows):
    return np.concatenate([values, np.repeat(values[:1], rows - len(values), axis=0)])


def _arrays(calls, group, inputs, rows):
    taken = []
    for c in group:
        ins = [wp.array(_padded(v, rows), dtype=t.dtype) for v, t in zip(inputs[c], calls[c].types)]
        taken.append((ins, [wp.zeros(rows, dtype=t.dtype) for t in calls[c].outputs]))
    return taken


def values(calls, built, inputs):
    """The outputs of each call, for inputs of any number of rows."""
    found = [None] * len(calls)
    for kernel, group in built:
        rows = max(len(inputs[c][0]) for c in group)
        arrays = _arrays(calls, group, inputs, rows)
        wp.launch(kernel, dim=rows, inputs=[a for ins, outs in arrays for a in ins + outs])
        for c, (_, outs) in zip(group, arrays):
            found[c] = [out.numpy()[: len(inputs[c][0])] for out in outs]
    return found


def _seeds(types, numbers, rows):
    return [wp.array(_padded(n, rows), dtype=t.dtype) if is_smooth(t) else None for n, t in zip(numbers, types)]


def gradients(calls, built, inputs, weights):
    """For each call the gradients of sum(weights * outputs) by each argument; None for arguments without one."""
    found = [None] * len(calls)
    for kernel, group in built:
        rows = max(len(inputs[c][0]) for c in group)
        arguments, adjoints, results = [], [], {}
        for c, (ins, outs) in zip(group, _arrays(calls, group, inputs, rows)):
            results[c] = [wp.zeros(rows, dtype=t.dtype) if is_smooth(t) else None for t in calls[c].types]
            arguments += ins + outs
            adjoints += results[c] + _seeds(calls[c].outputs, weights[c], rows)
        wp.launch(kernel, dim=rows, inputs=arguments, adj_inputs=adjoints, adjoint=True)
        for c in group:
            found[c] = [None if r is None else r.numpy()[: len(inputs[c][0])] for r in results[c]]
    return found


def tangents(calls, built, inputs, directions):
    """For each call the tangents of its outputs, by forward mode, as its arguments move in these directions; None
    for outputs without one."""
    found = [None] * len(calls)
    for kernel, group in built:
        rows = max(len(inputs[c][0]) for c in group)
        arguments, moving, results = [], [], {}
        for c, (ins, outs) in zip(group, _arrays(calls, group, inputs, rows)):
            arguments += ins + outs
            moving += _seeds(calls[c].types, directions[c], rows)
            results[c] = [wp.zeros(rows, dtype=t.dtype) if is_smooth(t) else None for t in calls[c].outputs]
            moving += results[c]
        wp.jvp(kernel, dim=rows, inputs=arguments, input_tangents=moving)
        for c in group:
            found[c] = [None if r is None else r.numpy()[: len(inputs[c][0])] for r in results[c]]
    return found


def products(calls, built, inputs, weights, directions):
    """For each call the Hessian of sum(weights * outputs) times the directions in which its arguments move; None for
    arguments without a gradient."""
    found = [None] * len(calls)
    for kernel, group in built:
        rows = max(len(inputs[c][0]) for c in group)
        taken = _arrays(calls, group, inputs, rows)
        vectors = [_seeds(calls[c].types, directions[c], rows) for c in group]
        seeds = [_seeds(calls[c].outputs, weights[c], rows) for c in group]

        def launched(*ins, calls=[calls[c] for c in group], taken=taken, kernel=kernel, rows=rows):
            ins, arguments, outputs = iter(ins), [], []
            for call, (given, _) in zip(calls, taken):
                made = [wp.zeros(rows, dtype=t.dtype, requires_grad=is_smooth(t)) for t in call.outputs]
                arguments += [next(ins) for _ in given] + made
                outputs += made
            wp.launch(kernel, dim=rows, inputs=arguments)
            return outputs

        flat = wp.autograd.hvp(
            launched,
            inputs=[one for ins, _ in taken for one in ins],
            vectors=[v for row in vectors for v in row],
            weights=[w for row in seeds for w in row],
        )
        results = iter(flat)
        for c in group:
            row = [next(results) for _ in inputs[c]]
            found[c] = [None if r is None else r.numpy()[: len(inputs[c][0])] for r in row]
    return found


def second_differences(calls, built, inputs, weights, directions, step):
    """For each call (products as of products(), errors, gradients) from difference quotients of gradients along the
    directions; None for arguments without one. An error is infinite if the quotients prove nothing."""
    ends = [side * step / 2**k for k in range(STEPS) for side in (1.0, -1.0)] + [0.0]
    at = []
    for c, values in zip(calls, inputs):
        row = zip(values, directions[len(at)], c.types)
        at.append([np.concatenate([v + e * d if is_smooth(t) else v for e in ends]) for v, d, t in row])
    repeated = [[np.concatenate([w] * len(ends)) for w in row] for row in weights]
    found = []
    for row in gradients(calls, built, at, repeated):
        found.append([])
        for gradient in row:
            if gradient is None:
                found[-1].append(None)
                continue
            here = gradient.reshape(len(ends), -1, *gradient.shape[1:])
            with np.errstate(invalid="ignore"):
                slope, error = _extrapolated(here[:-1].reshape(STEPS, 2, *here.shape[1:]), here[-1], step)
            found[-1].append((slope, error, here[-1]))
    return found


def moved(inputs, types, step):
    """All arguments of all difference quotients, one after the other: by argument, component, step size, side; and the
    points themselves last."""
    pieces = [[] for _ in inputs]
    for a, kind in enumerate(types):
        if not is_smooth(kind):
            continue
        for at in np.ndindex(kind.shape):
            for k in range(STEPS):
                for side in (1.0, -1.0):
                    for b, values in enumerate(inputs):
                        piece = values.copy()
                        if a == b:
                            piece[(slice(None), *at)] += side * step / 2**k
                        pieces[b].append(piece)
    for b, values in enumerate(inputs):
        pieces[b].append(values)
    return [np.concatenate(p) for p in pieces]


def _extrapolated(ends, centre, step):
    """(slopes, errors) from what there is at both sides at all step sizes, and in the middle."""
    h = (step / 2.0 ** np.arange(STEPS)).reshape(-1, *[1] * centre.ndim)
    quotients = (ends[:, 0] - ends[:, 1]) / (2 * h)
    # At a kink the two sides differ as much for all steps; elsewhere half as much each time.
    bends = (ends[:, 0] + ends[:, 1] - 2 * centre) / h
    second = (4 * quotients[1:] - quotients[:-1]) / 3
    third = (16 * second[1:] - second[:-1]) / 15
    kinked = np.abs(bends[2]) > 0.7 * np.abs(bends[1])
    kinked &= np.abs(bends[2]) > 1e-7 * np.maximum(np.abs(third[0]), 1)
    error = np.abs(third[0] - second[1])
    return third[0], np.where(kinked | ~np.isfinite(third[0]), np.inf, error)


def differences(inputs, types, weights, step, outputs):
    """(gradients, errors) of sum(weights * outputs) by each argument from difference quotients; `outputs` are those of
    moved(). An error is infinite if the quotients prove nothing: at kinks and steps."""
    with np.errstate(invalid="ignore"):
        return _differences(inputs, types, weights, step, outputs)


def _differences(inputs, types, weights, step, outputs):
    rows = len(inputs[0])
    here = 0
    for w, out in zip(weights, outputs):
        terms = (out.astype(np.float64).reshape(-1, *w.shape) * w).reshape(len(out) // rows, rows, -1)
        here = here + terms.sum(axis=-1)
    at = 0
    centre = here[-1]
    results = []
    for kind in types:
        if not is_smooth(kind):
            results.append(None)
            continue
        slopes, errors = np.zeros((rows, *kind.shape)), np.zeros((rows, *kind.shape))
        for index in np.ndindex(kind.shape):
            found = _extrapolated(here[at : at + 2 * STEPS].reshape(STEPS, 2, rows), centre, step)
            at += 2 * STEPS
            slopes[(slice(None), *index)], errors[(slice(None), *index)] = found
        results.append((slopes, errors))
    return results

"""The gradient of every builtin, with every scalar type, in reverse and in forward mode: in float64 against central
differences to 1e-6, at random and at awkward points; in float32 and float16 against the gradient in float64.

Forward mode moves all arguments at once, by different amounts, so that one number for each row compares all entries of
the Jacobian; and if differences prove nothing, at kinks, it must agree with reverse mode."""

from pathlib import Path

import numpy as np
import pytest
import slopes
import warp as wp
from oracle import ORACLE, find
from points import ELSEWHERE, POINTS, ordinary
from sweep import invocations, load, read_signature
from warp import _weft

ROWS = 48
STEP = 2e-3
# Overloads of one scalar type, which have no float64 form to compare with: by other means, below.
SINGLE = "noise pnoise curlnoise randf".split()


def has_slope(call):
    return any(map(slopes.is_smooth, call.types)) and any(map(slopes.is_smooth, call.outputs))


def swept(name):
    return [call for call in invocations(name) if has_slope(call) and find(ELSEWHERE, name, call.signature) is None]


def differentiable(name):
    return {signature: flag for signature, _, _, flag in _weft.builtin_overloads(name)}


def test_every_differentiable_builtin_is_compared():
    missing = []
    for name in _weft.builtin_names():
        calls = {call.signature for call in swept(name)}
        others = {call.signature for call in invocations(name)} - calls
        for signature, _, has_expansion, is_differentiable in _weft.builtin_overloads(name):
            takes_a_value = any(not p.pattern.startswith("static") for p in read_signature(signature)[0])
            if not has_expansion or not is_differentiable or signature in calls or not takes_a_value:
                continue
            if signature not in others and find(ELSEWHERE, name, signature) is None:
                missing.append(name + signature)
    assert not missing


def test_tests_of_their_own_exist():
    tests = Path(__file__).parent.parent
    text = "".join(path.read_text() for room in ("gradients", "geometry") for path in (tests / room).glob("test_*.py"))
    assert not [test for test in ELSEWHERE.values() if f"def {test}(" not in text]


def points(call, rows=ROWS):
    rng = np.random.default_rng(len(call.signature))
    made = find(POINTS, call.name, call.signature) or ordinary
    return made(rng, call.types, rows)[: len(call.types)]


def weighting(call, rows=ROWS):
    rng = np.random.default_rng(5)
    return [rng.uniform(0.3, 1, (rows, *t.shape)) * rng.choice([-1, 1], (rows, *t.shape)) for t in call.outputs]


def size(gradient):
    """Of each row, shaped to be compared with entries."""
    norm = np.sqrt(np.sum(gradient.reshape(len(gradient), -1) ** 2, axis=1))
    return norm.reshape(-1, *[1] * (gradient.ndim - 1))


def quotients_of(call, inputs, weights, outputs):
    smooth = [slopes.is_smooth(t) for t in call.outputs]
    kept = [(w, out) for w, out, is_one in zip(weights, outputs, smooth) if is_one]
    return slopes.differences(inputs, call.types, [w for w, _ in kept], STEP, [out for _, out in kept])


def told(slope, error):
    """(scale of the entries, where difference quotients tell what they are)."""
    scale = np.maximum(np.maximum(size(np.where(np.isfinite(slope), slope, 0)), np.abs(slope)), 0.01)
    return scale, error < 3e-8 * scale


def against_differences(call, inputs, found, quotients, flag):
    """Messages about the rows whose gradient is not that of the difference quotients."""
    messages, trusted, entries = [], 0, 0
    for a, (pair, gradient) in enumerate(zip(quotients, found)):
        if pair is None:
            continue
        slope, error = pair
        scale, usable = told(slope, error)
        trusted, entries = trusted + usable.sum(), entries + usable.size
        if not flag and gradient.any():
            messages.append(f"{call}: marked as not differentiable, but has a gradient")
        with np.errstate(invalid="ignore"):
            wrong = usable & ~(np.abs(gradient - slope) <= 1e-6 * scale)
        bad = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))
        if len(bad):
            shown = "\n".join(
                f"    at {[v[row].tolist() for v in inputs]} argument {a} has {gradient[row].tolist()}, "
                f"differences {slope[row].tolist()}"
                for row in bad[:3]
            )
            messages.append(f"{call}: {len(bad)} of {len(wrong)} rows\n{shown}")
    if trusted < 0.5 * entries:
        messages.append(f"{call}: differences tell only {trusted} of {entries} entries")
    return messages


def directed(call, rows=ROWS):
    rng = np.random.default_rng(6)
    return [rng.uniform(0.3, 1, (rows, *t.shape)) * rng.choice([-1, 1], (rows, *t.shape)) for t in call.types]


def along(call, directions, quotients):
    """Those directions with zeros if the difference quotients prove nothing."""
    pairs = zip(directions, quotients)
    return [d if pair is None else np.where(told(*pair)[1], d, 0.0) for d, pair in pairs]


def summed(factors, terms):
    """(sums by row of factors * terms, of their magnitudes); None among the terms is nothing."""
    kept = [(w * t).reshape(len(t), -1) for w, t in zip(factors, terms) if t is not None]
    return sum(k.sum(axis=1) for k in kept), sum(np.abs(k).sum(axis=1) for k in kept)


def against_sums(call, inputs, weights, tangents, directions, gradients, tolerance, what, least=0.01):
    """Messages about rows where the tangents of the outputs, weighted, are not the gradients along the directions."""
    with np.errstate(invalid="ignore", over="ignore"):
        found, _ = summed(weights, tangents)
        # If the numbers do not move, slopes do not count, even infinite ones.
        still = [None if g is None else np.where(d == 0, 0.0, g) for d, g in zip(directions, gradients)]
        expected, scale = summed(directions, still)
        wrong = np.isfinite(expected) & ~(np.abs(found - expected) <= tolerance * np.maximum(scale, least))
    bad = np.flatnonzero(wrong)
    return [
        f"{call}, forward mode: {len(bad)} of {len(wrong)} rows\n    at {[v[row].tolist() for v in inputs]} it has "
        f"{found[row]}, {what} {expected[row]}"
        for row in bad[:1]
    ]


def against_wide(call, narrow, wide, moved):
    """Messages about gradients in a narrow type that are further from those in float64 than rounding of arguments and
    of the steps on the way explains; `moved` are the wide ones at neighbouring arguments."""
    messages = []
    for a, (found, expected) in enumerate(zip(narrow, wide)):
        if found is None:
            continue
        limits = np.finfo(found.dtype)
        spread = np.fmax.reduce([np.abs(m[a] - expected) for m in moved] + [np.zeros_like(expected)])
        largest = np.maximum(size(np.where(np.isfinite(expected), expected, 0)), 1)
        allowed = limits.eps * 64 * largest + 16 * spread + limits.smallest_normal
        representable = np.abs(expected) < limits.max / 4
        with np.errstate(invalid="ignore"):
            wrong = representable & ~(np.abs(found.astype(np.float64) - expected) <= allowed)
        bad = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))
        if len(bad):
            messages.append(
                f"{call}: {len(bad)} of {len(wrong)} rows; row {bad[0]} has {found[bad[0]].tolist()}, "
                f"in float64 {expected[bad[0]].tolist()}"
            )
    return messages


def rounded(inputs, types):
    return [v.astype(t.numpy) if slopes.is_smooth(t) else v for v, t in zip(inputs, types)]


def widened(inputs, types):
    return [v.astype(np.float64) if slopes.is_smooth(t) else v for v, t in zip(inputs, types)]


@pytest.mark.parametrize("name", [n for n in _weft.builtin_names() if swept(n) and n not in SINGLE])
def test_gradient_of_each_builtin_equals_differences(name, tmp_path):
    calls = swept(name)
    flags = differentiable(name)
    wide = [c for c in calls if c.scalar == "float64"]
    kernels = slopes.build(wide, tmp_path, f"{name}_wide")
    inputs, weights = [points(c) for c in wide], [weighting(c) for c in wide]
    ends = slopes.values(wide, kernels, [slopes.moved(v, c.types, STEP) for v, c in zip(inputs, wide)])
    messages = []
    quotients = [quotients_of(*row) for row in zip(wide, inputs, weights, ends)]
    gradients = slopes.gradients(wide, kernels, inputs, weights)
    for call, *compared in zip(wide, inputs, gradients, quotients):
        messages += against_differences(call, *compared, flags[call.signature])
    directions = [directed(c) for c in wide]
    sure = [along(*row) for row in zip(wide, directions, quotients)]
    slopes_of = [[None if pair is None else pair[0] for pair in row] for row in quotients]
    tangents = slopes.tangents(wide, kernels, inputs, sure)
    for *compared, expected in zip(wide, inputs, weights, tangents, sure, slopes_of):
        messages += against_sums(*compared, expected, 1e-6, "differences")
    tangents = slopes.tangents(wide, kernels, inputs, directions)
    for *compared, expected in zip(wide, inputs, weights, tangents, directions, gradients):
        messages += against_sums(*compared, expected, 1e-9, "reverse mode")
    for scalar in ("float32", "float16"):
        narrow = [c for c in calls if c.scalar == scalar]
        if not narrow:
            continue
        arguments = [rounded(v, c.types) for v, c in zip(inputs, narrow)]
        seeds = [rounded(w, c.outputs) for w, c in zip(weights, narrow)]
        moving = [rounded(d, c.types) for d, c in zip(directions, narrow)]
        built = slopes.build(narrow, tmp_path, f"{name}_{scalar}")
        found = slopes.gradients(narrow, built, arguments, seeds)
        tangents = slopes.tangents(narrow, built, arguments, moving)

        def in_float64(at):
            wide_seeds = [widened(w, c.outputs) for w, c in zip(seeds, narrow)]
            wide_moving = [widened(d, c.types) for d, c in zip(moving, narrow)]
            return slopes.gradients(wide, kernels, at, wide_seeds), slopes.tangents(wide, kernels, at, wide_moving)

        exact = [widened(v, c.types) for v, c in zip(arguments, narrow)]
        expected, expected_tangents = in_float64(exact)
        moved = []
        for k in range(4):
            rng = np.random.default_rng(k)
            eps = np.finfo(scalar).eps
            near = [
                [
                    v if v.dtype.kind in "iub" else v + eps * rng.choice([-1, 1], v.shape) * np.maximum(np.abs(v), 0.5)
                    for v in row
                ]
                for row in exact
            ]
            moved.append(in_float64(near))
        for i, call in enumerate(narrow):
            messages += against_wide(call, found[i], expected[i], [g[i] for g, _ in moved])
            messages += against_wide(
                f"{call}, forward mode", tangents[i], expected_tangents[i], [t[i] for _, t in moved]
            )
    assert not messages, "\n".join(messages)


@pytest.mark.parametrize("name", SINGLE)
def test_gradients_of_what_has_float32_alone(name, tmp_path):
    """Against differences of the oracle, which computes in float64."""
    calls = swept(name)
    inputs, weights = [points(c) for c in calls], [weighting(c) for c in calls]
    inputs = [
        [np.float32(v).astype(np.float64) if t.is_float else v for v, t in zip(row, c.types)]
        for row, c in zip(inputs, calls)
    ]
    narrow = [rounded(v, c.types) for v, c in zip(inputs, calls)]
    seeds = [rounded(w, c.outputs) for w, c in zip(weights, calls)]
    kernels = slopes.build(calls, tmp_path, name)
    found = slopes.gradients(calls, kernels, narrow, seeds)
    sure = []
    for call, values, factors, gradients in zip(calls, inputs, weights, found):
        ends = find(ORACLE, name, call.signature).reference(*slopes.moved(values, call.types, STEP))
        ends = ends if isinstance(ends, tuple) else (ends,)
        kept = [(w, e) for w, e, t in zip(factors, ends, call.outputs) if t.is_float]
        quotients = slopes.differences(values, call.types, [w for w, _ in kept], STEP, [e for _, e in kept])
        trusted = 0
        moving = directed(call)
        for a, (pair, gradient) in enumerate(zip(quotients, gradients)):
            if pair is None:
                continue
            slope, error = pair
            scale = np.maximum(size(np.where(np.isfinite(slope), slope, 0)), 1)
            usable = error < 1e-4 * scale
            trusted += usable.mean()
            wrong = usable & ~(np.abs(gradient - slope) <= 2e-3 * scale)
            assert not wrong.any(), f"{call}: {gradient[wrong][:3]}, differences {slope[wrong][:3]}"
            moving[a] = np.where(usable, moving[a], 0.0)
        assert trusted > 0.5
        sure.append((moving, [None if pair is None else pair[0] for pair in quotients]))
    directions = [rounded(moving, c.types) for (moving, _), c in zip(sure, calls)]
    tangents = slopes.tangents(calls, kernels, narrow, directions)
    messages = []
    for call, values, factors, moved, (moving, expected) in zip(calls, inputs, weights, tangents, sure):
        messages += against_sums(call, values, factors, moved, moving, expected, 2e-3, "differences", 1.0)
    assert not messages, "\n".join(messages)


def test_choices_pass_gradients_to_what_was_chosen():
    @wp.kernel
    def choices(
        flag: wp.array[wp.bool],
        number: wp.array[wp.uint8],
        none: wp.array[float],
        a: wp.array[wp.mat22d],
        b: wp.array[wp.mat22d],
        out: wp.array2d[wp.mat22d],
    ):
        i = wp.tid()
        out[i, 0] = wp.where(flag[i], a[i], b[i])
        out[i, 1] = wp.select(flag[i], a[i], b[i])
        out[i, 2] = wp.where(number[i], a[i], b[i])
        out[i, 3] = wp.select(number[i], a[i], b[i])
        out[i, 4] = wp.where(none, a[i], b[i])
        out[i, 5] = wp.select(none, a[i], b[i])

    rng = np.random.default_rng(1)
    n = 11
    flag, number = rng.integers(0, 2, n).astype(bool), (rng.integers(0, 2, n) * 7).astype(np.uint8)
    weights = rng.normal(size=(n, 6, 2, 2))
    a, b = (wp.zeros(n, dtype=wp.mat22d) for _ in range(2))
    adj_a, adj_b = wp.zeros_like(a), wp.zeros_like(b)
    arguments = [wp.array(flag, dtype=wp.bool), wp.array(number), None, a, b, wp.zeros((n, 6), dtype=wp.mat22d)]
    wp.launch(
        choices,
        dim=n,
        inputs=arguments,
        adj_inputs=[None, None, None, adj_a, adj_b, wp.array(weights, dtype=wp.mat22d)],
        adjoint=True,
    )
    to_a = np.stack([flag, ~flag, number > 0, number == 0, np.zeros(n, bool), np.ones(n, bool)], axis=1)
    mask = to_a[:, :, None, None]
    np.testing.assert_allclose(adj_a.numpy(), np.where(mask, weights, 0).sum(axis=1))
    np.testing.assert_allclose(adj_b.numpy(), np.where(mask, 0, weights).sum(axis=1))
    moved, tangents = rng.normal(size=(2, n, 2, 2)), wp.zeros((n, 6), dtype=wp.mat22d)
    moving = [None, None, None, *(wp.array(m, dtype=wp.mat22d) for m in moved), tangents]
    wp.jvp(choices, dim=n, inputs=arguments, input_tangents=moving)
    np.testing.assert_array_equal(tangents.numpy(), np.where(mask, moved[0][:, None], moved[1][:, None]))


def test_a_copy_has_the_gradient_of_its_value():
    @wp.kernel
    def copied(a: wp.array[wp.mat22d], out: wp.array[wp.mat22d]):
        i = wp.tid()
        b = wp.copy(a[i])
        b[0, 1] = wp.float64(7.0)  # of the copy: that component of `a` goes on by the other summand only
        out[i] = b + wp.float64(2.0) * a[i]

    weights = np.random.default_rng(3).normal(size=(5, 2, 2))
    a, adj_a = wp.zeros(5, dtype=wp.mat22d), wp.zeros(5, dtype=wp.mat22d)
    arguments = [a, wp.zeros(5, dtype=wp.mat22d)]
    adjoints = [adj_a, wp.array(weights, dtype=wp.mat22d)]
    wp.launch(copied, dim=5, inputs=arguments, adj_inputs=adjoints, adjoint=True)
    factors = np.array([[3.0, 2.0], [3.0, 3.0]])
    np.testing.assert_allclose(adj_a.numpy(), factors * weights)
    tangents = wp.zeros(5, dtype=wp.mat22d)
    wp.jvp(copied, dim=5, inputs=arguments, input_tangents=[wp.array(weights, dtype=wp.mat22d), tangents])
    np.testing.assert_allclose(tangents.numpy(), factors * weights)


def test_conversions_pass_gradients():
    @wp.kernel
    def converted(q: wp.array[wp.quatd], x: wp.array[wp.float64], p: wp.array[wp.quatf], y: wp.array[wp.float16]):
        i = wp.tid()
        p[i] = wp.quaternion(q[i], dtype=wp.float32) * 2.0
        y[i] = wp.float16(wp.float32(x[i]) * 3.0)

    adjoints = [wp.zeros(2, dtype=wp.quatd), wp.zeros(2, dtype=wp.float64)]
    seeds = [wp.array(np.arange(8.0).reshape(2, 4), dtype=wp.quatf), wp.array([1.0, 0.5], dtype=wp.float16)]
    arguments = [wp.zeros(2, dtype=t) for t in (wp.quatd, wp.float64, wp.quatf, wp.float16)]
    wp.launch(converted, dim=2, inputs=arguments, adj_inputs=[*adjoints, *seeds], adjoint=True)
    np.testing.assert_array_equal(adjoints[0].numpy(), 2.0 * np.arange(8.0).reshape(2, 4))
    np.testing.assert_array_equal(adjoints[1].numpy(), [3.0, 1.5])
    moving = [wp.array(np.arange(8.0).reshape(2, 4), dtype=wp.quatd), wp.array([1.0, 0.5], dtype=wp.float64)]
    tangents = [wp.zeros(2, dtype=wp.quatf), wp.zeros(2, dtype=wp.float16)]
    wp.jvp(converted, dim=2, inputs=arguments, input_tangents=[*moving, *tangents])
    np.testing.assert_array_equal(tangents[0].numpy(), 2.0 * np.arange(8.0).reshape(2, 4))
    np.testing.assert_array_equal(tangents[1].numpy(), [3.0, 1.5])


def test_atomic_sums_of_every_type(tmp_path):
    kinds = "float16 float32 float64 vec3d mat22f quatd transformd".split()
    source = "import warp as wp\n"
    for kind in kinds:
        for ndim in (1, 2, 3, 4):
            at = ", ".join("0101"[:ndim])
            source += (
                f"\n\n@wp.kernel\ndef sums_{kind}_{ndim}(x: wp.array[wp.{kind}], total: wp.array{ndim}d[wp.{kind}]):\n"
                f"    i = wp.tid()\n    wp.atomic_add(total, {at}, x[i] + x[i])\n    wp.atomic_sub(total, {at}, x[i])\n"
            )
    module = load(source.replace("array1d", "array"), tmp_path, "sums")
    for kind in kinds:
        for ndim in (1, 2, 3, 4):
            dtype = getattr(wp, kind)
            x, total = wp.zeros(5, dtype=dtype), wp.zeros((2,) * ndim, dtype=dtype)
            shape = total.numpy().shape
            values = np.arange(np.prod(shape)).reshape(shape).astype(total.numpy().dtype)
            adjoint, seed = wp.zeros(5, dtype=dtype), wp.array(values, dtype=dtype)
            kernel = getattr(module, f"sums_{kind}_{ndim}")
            wp.launch(kernel, dim=5, inputs=[x, total], adj_inputs=[adjoint, seed], adjoint=True)
            expected = values[(0, 1, 0, 1)[:ndim]]
            np.testing.assert_array_equal(adjoint.numpy(), np.broadcast_to(expected, adjoint.numpy().shape))
            moving = wp.array(np.ones_like(x.numpy()), dtype=dtype)
            moved = wp.zeros((2,) * ndim, dtype=dtype)
            wp.jvp(kernel, dim=5, inputs=[x, total], input_tangents=[moving, moved])
            sums = np.zeros_like(values)
            sums[(0, 1, 0, 1)[:ndim]] = 5
            np.testing.assert_array_equal(moved.numpy(), sums)


@pytest.mark.parametrize("name", ["min", "max"])
def test_atomic_extrema_of_every_type(name, tmp_path):
    kinds = "float16 float32 float64 vec3d mat22f".split()
    source = "import warp as wp\n"
    for kind in kinds:
        source += (
            f"\n\n@wp.kernel\ndef extrema_{kind}(x: wp.array[wp.{kind}], best: wp.array2d[wp.{kind}]):\n"
            f"    i = wp.tid()\n    wp.atomic_{name}(best, 1, 0, x[i] + x[i])\n"
        )
    module = load(source, tmp_path, f"extrema_{name}")
    rng = np.random.default_rng(2)
    for kind in kinds:
        dtype = getattr(wp, kind)
        x = wp.array(rng.permutation(8 * wp.zeros(1, dtype=dtype).numpy().size).reshape(8, -1).squeeze(), dtype=dtype)
        x = wp.array(x.numpy(), dtype=dtype, requires_grad=True)
        best = wp.zeros((2, 1), dtype=dtype, requires_grad=True)
        best.fill_(-1.0 if name == "max" else 100.0)
        with wp.Tape() as tape:
            wp.launch(getattr(module, f"extrema_{kind}"), dim=8, inputs=[x, best])
        tape.backward(grads={best: wp.ones((2, 1), dtype=dtype)})
        expected = np.zeros_like(x.numpy())
        at = getattr(np, f"arg{name}")(x.numpy(), axis=0)
        np.put_along_axis(expected, np.expand_dims(at, 0), 2.0, axis=0)
        np.testing.assert_array_equal(x.grad.numpy(), expected)
        with pytest.raises(wp.CompileError, match="has no tangent: it depends on which thread gave the value"):
            wp.jvp(getattr(module, f"extrema_{kind}"), dim=8, inputs=[x, best], input_tangents=[x, best])

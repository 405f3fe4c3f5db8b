"""The table "Conventions" of docs/gradients.md: gradients at kinks, ties and singular points."""

import math

import numpy as np
import pytest
import warp as wp
from sweep import load

INF, NAN = math.inf, math.nan
ZERO3 = (0.0, 0.0, 0.0)

# (expression of x and y, x, y, gradient by x, by y); None for y: it is not used.
SCALARS = [
    ("wp.abs(x)", 0.0, None, 0.0, None),
    ("wp.sqrt(x)", 0.0, None, INF, None),
    ("wp.sqrt(x) * y", 0.0, 0.0, 0.0, 0.0),
    ("wp.cbrt(x)", 0.0, None, INF, None),
    ("wp.log(x)", 0.0, None, INF, None),
    ("wp.asin(x)", 1.0, None, 0.0, None),
    ("wp.asin(x)", -1.0, None, 0.0, None),
    ("wp.asin(x)", 1.5, None, 0.0, None),
    ("wp.acos(x)", 1.0, None, 0.0, None),
    ("wp.acos(x)", -1.0, None, 0.0, None),
    ("wp.acos(x)", -3.0, None, 0.0, None),
    ("wp.atan2(x, y)", 0.0, 0.0, 0.0, 0.0),
    ("wp.atan2(x, y)", 0.0, -2.0, -0.5, 0.0),
    ("wp.atan2(x, y)", 1e-200, 1e-200, 5e199, -5e199),
    ("wp.atan2(x, y)", 1e200, 1e200, 5e-201, -5e-201),
    ("wp.pow(x, y)", 0.0, 2.0, 0.0, 0.0),
    ("wp.pow(x, y)", 0.0, 1.0, 1.0, 0.0),
    ("wp.pow(x, y)", 0.0, 0.0, 0.0, 0.0),
    ("wp.pow(x, y)", 0.0, 0.5, INF, 0.0),
    ("wp.pow(x, y)", -2.0, 3.0, 12.0, NAN),
    ("wp.min(x, y)", 1.0, 1.0, 1.0, 0.0),
    ("wp.max(x, y)", 1.0, 1.0, 1.0, 0.0),
    ("wp.max(x, y)", 1.0, NAN, 1.0, 0.0),
    ("wp.min(x, y)", NAN, 1.0, 0.0, 1.0),
    ("wp.clamp(x, y, y + wp.float64(1.0))", 1.0, 1.0, 1.0, 0.0),
    ("wp.clamp(x, y - wp.float64(1.0), y)", 1.0, 1.0, 1.0, 0.0),
    ("wp.clamp(x, y, y + wp.float64(1.0))", 0.5, 1.0, 0.0, 1.0),
    ("wp.floor(x) + wp.ceil(x) + wp.trunc(x) + wp.round(x) + wp.rint(x) + wp.sign(x)", 2.5, None, 0.0, None),
    ("wp.step(x) + x // y + wp.float64(int(x))", 2.5, 2.0, 0.0, 0.0),
    ("wp.frac(x)", 2.0, None, 1.0, None),
    ("x % y", 6.0, 2.0, 1.0, -3.0),
    ("wp.copysign(x, y)", 2.0, -1.0, -1.0, 0.0),
    ("wp.where(x > y, wp.sqrt(x), x)", 0.0, 0.0, 1.0, 0.0),
    ("wp.where(x > y, wp.log(x), x)", 0.0, 0.0, 1.0, 0.0),
    ("wp.where(x > y, y / x, x)", 0.0, 0.0, 1.0, 0.0),
    ("wp.where(x > y, wp.float64(1.0) / wp.sqrt(x), x)", 0.0, 0.0, 1.0, 0.0),
    ("wp.where(x > y, wp.pow(x, wp.float64(0.5)), x)", 0.0, 0.0, 1.0, 0.0),
    ("wp.where(x > y, wp.exp(wp.float64(1.0) / x), x)", 0.0, 0.0, 1.0, 0.0),
    ("wp.where(x > y, wp.normalize(wp.vec2d(x, x))[0], x)", 0.0, 0.0, 1.0, 0.0),
    ("(x * wp.log(x) if x > y else x)", 0.0, 0.0, 1.0, 0.0),
    ("wp.length(wp.vec2d(x, y))", 0.0, 0.0, 0.0, 0.0),
    ("x / wp.length(wp.vec2d(x, y) + wp.vec2d(wp.float64(1.0), y))", 0.0, 0.0, 1.0, 0.0),
    ("wp.norm_l2(wp.vec2d(x, y))", 0.0, 0.0, 0.0, 0.0),
    ("wp.norm_l1(wp.vec2d(x, y))", 0.0, 0.0, 0.0, 0.0),
    ("wp.norm_huber(wp.vec2d(x, y))", 0.0, 0.0, 0.0, 0.0),
    ("wp.length(wp.normalize(wp.vec2d(x, y)))", 0.0, 0.0, 0.0, 0.0),
    ("wp.max(wp.vec3d(x, y, x))", 1.0, 1.0, 1.0, 0.0),
    ("wp.min(wp.vec3d(y, x, x))", 1.0, 1.0, 0.0, 1.0),
    ("wp.determinant(wp.inverse(wp.mat22d(x, x, x, x)))", 1.0, None, 0.0, None),
    ("wp.inverse(wp.mat22d(x, y, x, y))[0, 0]", 1.0, 1.0, 0.0, 0.0),
]


def test_scalar_gradients_at_kinks_follow_the_table(tmp_path):
    body, expected = [], []
    for k, (expression, x, y, by_x, by_y) in enumerate(SCALARS):
        body.append(f"    if i == {k}:\n        out[i] = {expression}\n")
        expected.append((by_x, 0.0 if by_y is None else by_y))
    header = "import warp as wp\n\n\n@wp.kernel\ndef k(a: wp.array[wp.float64], b: wp.array[wp.float64], "
    source = header + "out: wp.array[wp.float64]):\n    i = wp.tid()\n    x = a[i]\n    y = b[i]\n" + "".join(body)
    kernel = load(source, tmp_path, "conventions").k
    n = len(SCALARS)
    arguments = [wp.array([row[1] for row in SCALARS], dtype=wp.float64)]
    arguments += [wp.array([row[2] or 0.0 for row in SCALARS], dtype=wp.float64), wp.zeros(n, dtype=wp.float64)]
    adjoints = [wp.zeros(n, dtype=wp.float64), wp.zeros(n, dtype=wp.float64), wp.ones(n, dtype=wp.float64)]
    wp.launch(kernel, dim=n, inputs=arguments, adj_inputs=adjoints, adjoint=True)
    messages = []
    for k, (expression, x, y, *_) in enumerate(SCALARS):
        found = [adjoints[0].numpy()[k], adjoints[1].numpy()[k]]
        if not np.allclose(found, expected[k], rtol=1e-12, atol=0, equal_nan=True):
            messages.append(f"{expression} at {x}, {y}: {found}, expected {expected[k]}")
    assert not messages, "\n".join(messages)


# Functions of a quaternion or two vectors at points where only "finite" is asked for.
FINITE = [
    ("wp.quatd", "wp.quat_to_axis_angle(a[i])[1]", [(0, 0, 0, 1), (0, 0, 0, -1), (0, 0, 0, 0)]),
    ("wp.quatd", "wp.quat_to_axis_angle(a[i])[0]", [(0, 0, 0, 1), (1, 0, 0, 0)]),
    (
        "wp.quatd",
        "wp.quat_twist_angle(wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0)), a[i])",
        [(0, 0, 0, 1), (0, 1, 0, 0)],
    ),
    ("wp.quatd", "wp.quat_to_rpy(a[i])", [(0, math.sqrt(0.5), 0, math.sqrt(0.5)), (0, 0, 0, 1)]),
    ("wp.quatd", "wp.quat_to_euler(a[i], 0, 1, 2)", [(0, math.sqrt(0.5), 0, math.sqrt(0.5)), (0, 0, 0, 1)]),
    ("wp.quatd", "wp.quat_to_euler(a[i], 2, 0, 2)", [(0, 0, 0, 1), (1, 0, 0, 0), (0, 0, 0.6, 0.8)]),
    ("wp.quatd", "wp.quat_slerp(a[i], a[i], wp.float64(0.3))", [(0, 0, 0, 1), (0.5, 0.5, 0.5, 0.5)]),
    ("wp.quatd", "wp.quat_slerp(a[i], -a[i], wp.float64(0.3))", [(0, 0, 0, 1), (0.5, 0.5, 0.5, 0.5)]),
    ("wp.vec3d", "wp.quat_between_vectors(a[i], -a[i])", [(1, 0, 0), (0, 2, 0), (1, 2, 3), ZERO3]),
    ("wp.vec3d", "wp.quat_between_vectors(a[i], a[i])", [(1, 0, 0), (0, 2, 0), (1, 2, 3), ZERO3]),
    ("wp.vec3d", "wp.smooth_normalize(a[i])", [ZERO3]),
    ("wp.vec3d", "wp.svd3(wp.diag(a[i]))[0]", [ZERO3, (1, 1, 1), (1, -1, 1), (2, 1, 1), (1, 0, 0), (1, 1, -1)]),
    ("wp.vec3d", "wp.svd3(wp.diag(a[i]))[2]", [ZERO3, (1, 1, 1), (1, -1, 1), (2, 1, 1), (1, 0, 0), (1, 1, -1)]),
    ("wp.vec3d", "wp.eig3(wp.diag(a[i]))[0]", [ZERO3, (1, 1, 1), (1, -1, 1), (2, 1, 1), (1, 0, 0)]),
    ("wp.vec3d", "wp.qr3(wp.outer(a[i], a[i]))[1]", [ZERO3, (1, 0, 0), (1, 2, 3)]),
    ("wp.vec3d", "wp.transform_decompose(wp.mat44d())[2]", [ZERO3]),
]


@pytest.mark.parametrize(("kind", "expression", "points"), FINITE, ids=[row[1] for row in FINITE])
def test_finite_where_the_value_is(tmp_path, kind, expression, points):
    source = f"""import warp as wp


@wp.func
def total(v: wp.float64):
    return v * wp.float64(0.7)


@wp.func
def total(v: wp.vec3d):
    return v[0] - wp.float64(0.3) * v[1] + wp.float64(0.5) * v[2]


@wp.func
def total(v: wp.quatd):
    return v[0] - wp.float64(0.3) * v[1] + wp.float64(0.5) * v[2] + v[3]


@wp.func
def total(v: wp.mat33d):
    return total(v[0]) - wp.float64(0.4) * total(v[1]) + v[2, 1] + v[2, 2]


@wp.kernel
def k(a: wp.array[{kind}], out: wp.array[wp.float64]):
    i = wp.tid()
    out[i] = total({expression})
"""
    kernel = load(source, tmp_path, "finite").k
    dtype = getattr(wp, kind[3:])
    a, out = wp.array(np.array(points, dtype=np.float64), dtype=dtype), wp.zeros(len(points), dtype=wp.float64)
    adjoint = wp.zeros(len(points), dtype=dtype)
    wp.launch(kernel, dim=len(points), inputs=[a, out])
    assert np.isfinite(out.numpy()).all()
    wp.launch(
        kernel,
        dim=len(points),
        inputs=[a, out],
        adj_inputs=[adjoint, wp.ones(len(points), dtype=wp.float64)],
        adjoint=True,
    )
    assert np.isfinite(adjoint.numpy()).all(), adjoint.numpy()


SCALE = 2.0


@wp.kernel
def scale_by_global(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * SCALE


def test_the_gradient_is_that_of_the_program_that_ran(monkeypatch):
    x = wp.array([1.5], dtype=float, requires_grad=True)
    y = wp.zeros(1, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(scale_by_global, dim=1, inputs=[x], outputs=[y])
    monkeypatch.setitem(globals(), "SCALE", 3.0)  # the later meaning of the name plays no part
    tape.backward(y)
    assert y.numpy()[0] == 3.0 and x.grad.numpy()[0] == 2.0
    dy = wp.zeros(1)
    wp.jvp(scale_by_global, dim=1, inputs=[x], outputs=[y], input_tangents=[wp.ones(1)], output_tangents=[dy])
    assert y.numpy()[0] == 3.0 and dy.numpy()[0] == 2.0

"""Matrices and vectors of hundreds of components that are parameters, alone and in structs: kernels read them in
place, and never number by number.
"""

import numpy as np
import pytest
import warp as wp

THREADS = 5
ROWS, COLS = 15, 18
F = wp.float64
mat = wp.types.matrix(shape=(ROWS, COLS), dtype=F)
wide = wp.types.vector(length=COLS, dtype=F)
tall = wp.types.vector(length=ROWS, dtype=F)
vec300 = wp.types.vector(length=300, dtype=F)


@wp.struct
class Inner:
    v: vec300
    offset: F


@wp.struct
class Held:
    scale: F
    m: mat
    inner: Inner
    small: wp.vec3d
    numbers: wp.array(dtype=F)


def kernel_of(**options):
    @wp.kernel(module="unique", module_options=options)
    def k(m: mat, v: vec300, held: Held, x: wp.array(dtype=wide), out: wp.array(dtype=tall)):
        i = wp.tid()
        y = m * x[i] * held.scale + held.m * (x[i] * v[i]) + wp.transpose(wp.transpose(m)) * x[i]
        y[i] += held.m[i, 17 - i] * held.inner.v[i * 7] * held.small[1] + held.inner.offset * x[i][2]
        if i % 2 == 0:
            y += tall(held.numbers[i] * v[299])
        out[i] = y

    return k


def expected(given, x):
    y = np.zeros((THREADS, ROWS))
    for i in range(THREADS):
        y[i] = given["m"] @ x[i] * (given["scale"] + 1) + given["held_m"] @ x[i] * given["v"][i]
        y[i, i] += given["held_m"][i, 17 - i] * given["inner"][i * 7] * given["small"][1] + given["offset"] * x[i, 2]
        y[i] += given["numbers"][i] * given["v"][299] * (i % 2 == 0)
    return y


def values(seed):
    rng = np.random.default_rng(seed)
    shapes = {"m": (ROWS, COLS), "v": 300, "scale": (), "held_m": (ROWS, COLS), "inner": 300, "offset": (), "small": 3}
    given = {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
    return {**given, "numbers": rng.uniform(-1, 1, THREADS)}, rng.uniform(-1, 1, (THREADS, COLS))


def held_of(given, requires_grad=False):
    held = Held()
    held.scale, held.m, held.small = F(given["scale"]), mat(given["held_m"]), wp.vec3d(given["small"])
    held.inner.v, held.inner.offset = vec300(given["inner"]), F(given["offset"])
    held.numbers = wp.array(given["numbers"], dtype=F, requires_grad=requires_grad)
    return held


@pytest.mark.parametrize("options", [{"lanes": 1}, {"lanes": 8}, {"mode": "debug"}], ids=str)
def test_large_parameters_have_the_numbers_that_were_passed(options):
    given, x = values(1)
    out = wp.zeros(THREADS, dtype=tall)
    inputs = [mat(given["m"]), vec300(given["v"]), held_of(given), wp.array(x, dtype=wide), out]
    wp.launch(kernel_of(**options), THREADS, inputs=inputs)
    np.testing.assert_allclose(out.numpy(), expected(given, x), rtol=1e-12, atol=1e-12)


def slope(function, at, direction):
    h = 1e-3
    return (8 * (function(at + h * direction) - function(at - h * direction))
            - (function(at + 2 * h * direction) - function(at - 2 * h * direction))) / (12 * h)  # fmt: skip


def test_gradients_of_arrays_beside_large_parameters_are_those_of_differences():
    given, x = values(2)
    held, arrays = held_of(given, requires_grad=True), wp.array(x, dtype=wide, requires_grad=True)
    out = wp.zeros(THREADS, dtype=tall, requires_grad=True)
    seeds = np.random.default_rng(3).uniform(-1, 1, (THREADS, ROWS))
    tape = wp.Tape()
    with tape:
        wp.launch(kernel_of(), THREADS, inputs=[mat(given["m"]), vec300(given["v"]), held, arrays, out])
    tape.backward(grads={out: wp.array(seeds, dtype=tall)})
    rng = np.random.default_rng(4)
    for _ in range(5):
        d = rng.uniform(-1, 1, x.shape)
        assert np.sum(d * arrays.grad.numpy()) == pytest.approx(
            slope(lambda at: np.sum(seeds * expected(given, at)), x, d), rel=1e-8
        )
    d = rng.uniform(-1, 1, THREADS)
    assert np.sum(d * held.numbers.grad.numpy()) == pytest.approx(
        slope(lambda at: np.sum(seeds * expected({**given, "numbers": at}, x)), given["numbers"], d), rel=1e-8
    )


def test_gradients_of_large_parameters_are_those_of_differences():
    given, x = values(5)
    seeds = np.random.default_rng(6).uniform(-1, 1, (THREADS, ROWS))
    held, adjoint = held_of(given), held_of({name: 0 * value for name, value in given.items()})
    m, v = mat(given["m"]), vec300(given["v"])
    adj_m, adj_v = mat(0.0), vec300(0.0)
    out, adj_out = wp.zeros(THREADS, dtype=tall), wp.array(seeds, dtype=tall)
    inputs, gradients = [m, v, held, wp.array(x, dtype=wide)], [adj_m, adj_v, adjoint, None]
    wp.launch(kernel_of(), THREADS, inputs=inputs, outputs=[out], adj_inputs=gradients, adj_outputs=[adj_out],
              adjoint=True)  # fmt: skip
    found = {
        "scale": adjoint.scale, "held_m": adjoint.m, "inner": adjoint.inner.v, "offset": adjoint.inner.offset,
        "small": adjoint.small,
    }  # fmt: skip
    rng = np.random.default_rng(7)
    for name, gradient in found.items():
        d = np.asarray(rng.uniform(-1, 1, np.shape(given[name])))
        expect = slope(lambda at, name=name: np.sum(seeds * expected({**given, name: at}, x)), given[name], d)
        assert np.sum(d.ravel() * np.ravel(np.array(gradient, dtype=float))) == pytest.approx(expect, rel=1e-8), name


def test_forward_mode_goes_past_large_parameters():
    given, x = values(8)
    d = np.random.default_rng(9).uniform(-1, 1, x.shape)
    out, tangent = wp.zeros(THREADS, dtype=tall), wp.zeros(THREADS, dtype=tall)
    inputs = [mat(given["m"]), vec300(given["v"]), held_of(given), wp.array(x, dtype=wide)]
    given_tangents = [None, None, None, wp.array(d, dtype=wide)]
    wp.jvp(kernel_of(), THREADS, inputs=inputs, outputs=[out], input_tangents=given_tangents, output_tangents=[tangent])
    np.testing.assert_allclose(tangent.numpy(), slope(lambda at: expected(given, at), x, d), rtol=1e-9, atol=1e-9)

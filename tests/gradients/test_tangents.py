"""wp.jvp against central differences and closed forms."""

import numpy as np
import pytest
import warp as wp
from test_kernels import (
    Body,
    bodies,
    components,
    early_returns,
    indexed_sum,
    local_array,
    power_with_break,
    prefix_products,
    squares_until,
)

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(11)


def doubles(values, dtype=wp.float64):
    return wp.array(np.asarray(values, dtype=np.float64), dtype=dtype)


def difference(run, values, directions, eps=1e-6):
    ends = [run([v + sign * eps * d for v, d in zip(values, directions, strict=True)]) for sign in (1.0, -1.0)]
    return (ends[0] - ends[1]) / (2.0 * eps)


KERNELS = {
    "for with break": (power_with_break, [RNG.uniform(1.1, 2.0, 23)], [9], wp.float64, 23),
    "while and nested for": (
        squares_until,
        [RNG.uniform(1.1, 3.0, 19)],
        [(np.arange(19) % 5).astype(np.int32)],
        wp.float64,
        19,
    ),
    "vectors": (components, [RNG.uniform(0.5, 1.5, (20, 3))], [], wp.vec3d, 20),
    "early returns": (early_returns, [RNG.uniform(0.0, 1.5, 31)], [], wp.float64, 31),
    "atomics": (indexed_sum, [RNG.standard_normal(50)], [RNG.integers(0, 4, 50).astype(np.int32)], wp.float64, 50),
    "recurrence through an array": (prefix_products, [RNG.uniform(0.5, 1.5, 12)], [], wp.float64, 1),
    "local array": (local_array, [RNG.uniform(0.5, 1.0, 21)], [], wp.float64, 21),
}


def arguments(values, others, dtype):
    return [doubles(v, dtype) for v in values] + [wp.array(o) if isinstance(o, np.ndarray) else o for o in others]


@pytest.mark.parametrize("name", KERNELS)
def test_tangents_are_the_derivative_along_a_direction(name):
    kernel, values, others, dtype, dim = KERNELS[name]
    size = max(dim, 12)

    def run(moved):
        y = wp.zeros(size, dtype=wp.float64)
        wp.launch(kernel, dim=dim, inputs=[*arguments(moved, others, dtype), y])
        return y.numpy()

    directions = [RNG.standard_normal(v.shape) for v in values]
    given = arguments(values, others, dtype)
    y, dy = wp.zeros(size, dtype=wp.float64), wp.zeros(size, dtype=wp.float64)
    wp.jvp(
        kernel,
        dim=dim,
        inputs=given,
        outputs=[y],
        input_tangents=[doubles(d, dtype) for d in directions],
        output_tangents=[dy],
    )
    np.testing.assert_allclose(y.numpy(), run(values), rtol=1e-14)
    np.testing.assert_allclose(dy.numpy(), difference(run, values, directions), rtol=1e-6, atol=1e-7)


def test_tangents_of_numbers_structs_and_arrays_of_structs():
    @wp.kernel
    def scale(factor: wp.float64, x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = factor * factor * x[i]

    x, y, dy = doubles([1.0, 2.0]), doubles([0.0, 0.0]), doubles([0.0, 0.0])
    wp.jvp(scale, dim=2, inputs=[3.0, x], outputs=[y], input_tangents=[0.5], output_tangents=[dy])
    np.testing.assert_allclose(y.numpy(), 3.0**2 * x.numpy())
    np.testing.assert_allclose(dy.numpy(), 2 * 3.0 * 0.5 * x.numpy())

    kept, moved = wp.zeros(4, dtype=Body), wp.zeros(4, dtype=Body)
    position, mass = RNG.standard_normal((4, 3)), RNG.uniform(1, 2, 4)
    by = RNG.standard_normal(4)
    y = wp.zeros(4, dtype=wp.float64)
    inputs = [doubles(position, wp.vec3d), doubles(mass)]
    wp.jvp(bodies, dim=4, inputs=inputs, outputs=[kept, y], input_tangents=[None, doubles(by)], output_tangents=[moved])
    # position = (x0, m x0, x2) m; mass = m + |position before|²
    np.testing.assert_allclose(moved.numpy()["position"][:, 1], 2 * mass * position[:, 0] * by)
    np.testing.assert_allclose(moved.numpy()["mass"], by * (1 + 2 * mass * position[:, 0] ** 2))
    scaled = position * [1, 0, 1] + (mass * position[:, 0])[:, None] * [0, 1, 0]
    np.testing.assert_allclose(kept.numpy()["position"], scaled * mass[:, None])
    np.testing.assert_allclose(kept.numpy()["mass"], mass + np.sum(scaled**2, axis=1))


def test_a_tangent_must_be_like_its_argument():
    x, y = doubles([1.0, 2.0]), doubles([0.0, 0.0])
    with pytest.raises(
        TypeError, match=r"entry 0 of input_tangents is float64 \(3,\), expected an array of float64 \(2,\)"
    ):
        wp.jvp(local_array, dim=2, inputs=[x], outputs=[y], input_tangents=[doubles([1, 2, 3])])
    with pytest.raises(ValueError, match="2 output_tangents for 1 arguments"):
        wp.jvp(local_array, dim=2, inputs=[x], outputs=[y], output_tangents=[y, y])


@wp.struct
class Pair:
    a: wp.array[wp.float64]
    b: wp.array[wp.float64]


@wp.kernel
def one_of_two(x: wp.array[wp.float64], z: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    chosen = x
    pair = Pair()
    pair.a = x
    pair.b = z
    if i % 2 == 1:
        chosen = z
        pair.b = x
    y[i] = chosen[i] * chosen[i] + pair.a[i] * pair.b[i]


@pytest.mark.parametrize("moves", [(True, True), (True, False), (False, True), (False, False)])
def test_tangents_of_arrays_that_are_chosen_at_run_time(moves):
    x, z, dx, dz = (RNG.standard_normal(4) for _ in range(4))
    y, dy = wp.zeros(4, dtype=wp.float64), wp.zeros(4, dtype=wp.float64)
    tangents = [doubles(t) if is_moved else None for t, is_moved in zip((dx, dz), moves, strict=True)]
    wp.jvp(one_of_two, 4, [doubles(x), doubles(z)], [y], input_tangents=tangents, output_tangents=[dy])
    dx, dz = dx * moves[0], dz * moves[1]
    odd = np.arange(4) % 2 == 1
    expected = np.where(odd, 2 * z * dz + 2 * x * dx, 2 * x * dx + dx * z + x * dz)
    np.testing.assert_allclose(dy.numpy(), expected, rtol=1e-14)
    np.testing.assert_allclose(y.numpy(), np.where(odd, z * z + x * x, x * x + x * z), rtol=1e-14)


# ---- functions ----


def rotated(x, scale):
    """Products, sums, slices, copies, an array that is overwritten, and integers."""
    y = wp.zeros((3, 3), dtype=wp.float64, requires_grad=True)
    wp.matmul(x, x.T, y, y, alpha=scale)
    total = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    wp.utils.array_sum(y[0] * y[1], out=total)
    order, keys = wp.array([0, 1, 2]), wp.clone(y[2].contiguous())
    wp.utils.radix_sort_pairs(keys, order, 3)
    x.fill_(7.0)
    return keys, total, order


def test_tangents_of_a_function():
    x, v = RNG.standard_normal((2, 3, 3))
    given = doubles(x)
    (keys, total, order), (moved_keys, moved_total, moved_order) = wp.jvp(
        rotated, inputs=[given, 2.0], input_tangents=[doubles(v)]
    )
    y, dy = 2 * x @ x.T, 2 * (v @ x.T + x @ v.T)
    at = np.argsort(y[2])
    np.testing.assert_array_equal(order.numpy(), at)
    np.testing.assert_allclose(keys.numpy(), y[2][at], rtol=1e-12)
    np.testing.assert_allclose(moved_keys.numpy(), dy[2][at], rtol=1e-12)
    np.testing.assert_allclose(total.numpy()[0], y[0] @ y[1], rtol=1e-12)
    np.testing.assert_allclose(moved_total.numpy()[0], dy[0] @ y[1] + y[0] @ dy[1], rtol=1e-12)
    assert moved_order is None and given.grad is None
    np.testing.assert_array_equal(given.numpy(), x)


def test_forward_mode_of_a_rollout_keeps_nothing_of_it():
    def steps(x):
        for _ in range(50):
            wp.matmul(x, x, x, x, alpha=0.01, beta=0.99)
        tape = wp._weft.active_tape()
        assert not tape.launches and tape.memory.copies == 0
        return x

    x, v = 0.3 * RNG.standard_normal((2, 4, 4))
    found = wp.jvp(steps, inputs=[doubles(x)], input_tangents=[doubles(v)])[1].numpy()

    def run(values):
        state = values[0]
        for _ in range(50):
            state = 0.01 * state @ state + 0.99 * state
        return state

    np.testing.assert_allclose(found, difference(run, [x], [v]), rtol=1e-6, atol=1e-9)


def test_wrong_functions_and_arguments_of_jvp():
    x = doubles([1.0, 2.0])
    with pytest.raises(ValueError, match="output 0 has no gradient. help: make it with requires_grad=True in the func"):
        wp.jvp(lambda a: wp.zeros(1), inputs=[x], input_tangents=[x])
    with pytest.raises(TypeError, match="returned None, expected a wp.array or a list of them"):
        wp.jvp(lambda a: None, inputs=[x], input_tangents=[x])
    with pytest.raises(TypeError, match="entry 1 of input_tangents is 1.0 for an input that is no array"):
        wp.jvp(lambda a, k: a, inputs=[x, 2.0], input_tangents=[x, 1.0])
    with pytest.raises(TypeError, match="dim, outputs, output_tangents and device are those of a kernel, and this is"):
        wp.jvp(lambda a: a, dim=2, inputs=[x])
    with pytest.raises(RuntimeError, match=r"records <function .* by Tape.record_func\(\), and Weft knows"):
        wp.jvp(lambda a: wp._weft.active_tape().record_func(print, [a]), inputs=[x])


def test_forward_mode_is_refused_where_a_tape_records():
    x, y = doubles([1.0, 2.0], wp.float64), doubles([0.0, 0.0])
    with wp.Tape() as tape, pytest.raises(RuntimeError, match="a tape is recording, and what forward mode does is not"):
        wp.jvp(local_array, 2, [x], [y], input_tangents=[x], output_tangents=[wp.zeros_like(y)])
    assert not tape.launches

    def inside(a):
        wp.jvp(local_array, 2, [a], [y], input_tangents=[x], output_tangents=[wp.zeros_like(y)])

    for derivative in (wp.autograd.hvp, wp.jvp):
        with pytest.raises(RuntimeError, match="a tape is recording"):
            derivative(inside, inputs=[x])

"""Gradients through tiles: backward and forward mode against differences, and closed forms of what is float32 only."""

import numpy as np
import pytest
import warp as wp
from differences import check_program
from tile_programs import PROGRAMS

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(19)


def launcher(kernel, out, dim, lanes):
    def run(*arguments):
        output = wp.zeros(out, dtype=wp.float64, requires_grad=True)
        wp.launch_tiled(kernel, dim=[dim], inputs=[*arguments, output], block_dim=lanes)
        return output

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_and_tangents_are_those_of_differences(name, lanes):
    if not wp.get_device().is_cpu and "values" in name:
        pytest.skip("is about the CPU: wp.jvp has no tiled launches, and values of lanes need them on GPUs")
    kernel, values, types, out, dim = PROGRAMS[name]
    check_program(launcher(kernel, out, dim, lanes), values, dtypes=types, twice=False)


@pytest.mark.parametrize(
    "name", ["operators", "maps", "products of matrices", "elements", "views", "functions with tiles"]
)
def test_second_derivatives_are_those_of_differences(name, lanes):
    kernel, values, types, out, dim = PROGRAMS[name]
    check_program(launcher(kernel, out, dim, lanes), values, dtypes=types)


def gradient_of(kernel, arrays, out, seed, lanes, dim=1):
    """The gradients of sum(seed * out) by the float arrays."""
    given = [wp.array(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    output = wp.zeros(out, dtype=wp.dtype_from_numpy(seed.dtype), requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(kernel, dim=[dim], inputs=[*given, output], block_dim=lanes)
    tape.backward(grads={output: wp.array(seed)})
    return [g.grad.numpy() for g in given if g.requires_grad]


@wp.kernel
def scans(a: wp.array[float], out: wp.array2d[float]):
    t = wp.tile_load(a, shape=20)
    wp.tile_store(out[0], wp.tile_scan_inclusive(t))
    wp.tile_store(out[1], wp.tile_scan_exclusive(t))
    wp.tile_store(out[2], wp.tile_scan_max_inclusive(t))
    wp.tile_store(out[3], wp.tile_scan_min_inclusive(t))


def test_scans_pass_gradients_to_what_they_add_or_choose(lanes):
    a = RNG.permutation(20).astype(np.float32)
    seed = RNG.integers(-5, 5, (4, 20)).astype(np.float32)
    (found,) = gradient_of(scans, [a], (4, 20), seed, lanes)
    expected = np.cumsum(seed[0][::-1])[::-1] + np.cumsum(seed[1][::-1])[::-1] - seed[1]
    for row, accumulate in ((2, np.maximum.accumulate), (3, np.minimum.accumulate)):
        for k, chosen in enumerate(accumulate(a)):
            expected[np.flatnonzero(a == chosen)[0]] += seed[row, k]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@wp.kernel
def sorts(keys: wp.array[float], values: wp.array[float], out: wp.array2d[float]):
    k = wp.tile_load(keys, shape=37)
    v = wp.tile_load(values, shape=37)
    wp.tile_sort(k, v)
    wp.tile_store(out[0], k)
    wp.tile_store(out[1], v * v)


def test_sorts_carry_gradients_back_to_where_their_pairs_came_from(lanes):
    keys, values = RNG.permutation(37).astype(np.float32), RNG.integers(-9, 9, 37).astype(np.float32)
    seed = RNG.integers(-5, 5, (2, 37)).astype(np.float32)
    by_keys, by_values = gradient_of(sorts, [keys, values], (2, 37), seed, lanes)
    place = np.argsort(np.argsort(keys))
    np.testing.assert_array_equal(by_keys, seed[0][place])
    np.testing.assert_array_equal(by_values, 2 * values * seed[1][place])


@wp.kernel
def factor(a: wp.array2d[wp.float64], out: wp.array2d[wp.float64]):
    wp.tile_store(out, wp.tile_cholesky(wp.tile_load(a, shape=(4, 4))))


def test_the_gradient_of_a_factor_is_in_the_triangle_that_was_read(lanes):
    m = RNG.standard_normal((4, 4))
    a, seed = m @ m.T + 4 * np.eye(4), RNG.standard_normal((4, 4))
    (found,) = gradient_of(factor, [a], (4, 4), seed, lanes)
    assert not np.triu(found, 1).any()
    eps = 1e-6
    for i, j in zip(*np.tril_indices(4)):
        ends = []
        for step in (eps, -eps):
            moved = a.copy()
            moved[i, j] += step
            moved[j, i] = moved[i, j]
            ends.append(np.sum(seed * np.linalg.cholesky(moved)))
        assert abs(found[i, j] - (ends[0] - ends[1]) / (2 * eps)) < 1e-6


@wp.kernel
def equal_maxima(a: wp.array[float], b: wp.array[float], out: wp.array2d[float]):
    t, u = wp.tile_load(a, shape=4), wp.tile_load(b, shape=4)
    wp.tile_store(out[0], wp.tile_map(wp.max, t, u))
    wp.tile_store(out[1], wp.tile_map(wp.min, t, u))


def test_maxima_of_equal_operands_pass_to_the_first(lanes):
    a = np.array([1.0, 2.0, 3.0, 3.0], np.float32)
    b = np.array([2.0, 1.0, 3.0, 3.0], np.float32)
    seed = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]], np.float32)
    by_a, by_b = gradient_of(equal_maxima, [a, b], (2, 4), seed, lanes)
    assert by_a.tolist() == [10.0, 2.0, 33.0, 44.0]  # as of wp.max outside of tiles
    assert by_b.tolist() == [1.0, 20.0, 0.0, 0.0]


@wp.kernel
def store_twice(a: wp.array[float], out: wp.array[float]):
    t = wp.tile_load(a, shape=6)
    wp.tile_store(out, t)


def test_a_store_clears_the_gradient_of_what_it_overwrites(lanes):
    a = wp.array(np.ones(6, np.float32), requires_grad=True)
    out = wp.array(np.zeros(4, np.float32), requires_grad=True)
    with wp.Tape() as tape:
        wp.launch_tiled(store_twice, dim=[1], inputs=[a, out], block_dim=lanes)
        wp.launch_tiled(store_twice, dim=[1], inputs=[a, out], block_dim=lanes)
    tape.backward(grads={out: wp.array(np.arange(1.0, 5.0, dtype=np.float32))})
    assert a.grad.numpy().tolist() == [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]


@wp.kernel
def halves(a: wp.array[wp.float16], out: wp.array[float]):
    t = wp.tile_astype(wp.tile_load(a, shape=5), float)
    wp.tile_store(out, t * t)


def test_conversions_between_floats_pass_gradients(lanes):
    a = np.array([1.0, -2.0, 0.5, 3.0, 4.0], np.float16)
    (found,) = gradient_of(halves, [a], (5,), np.ones(5, np.float32), lanes)
    np.testing.assert_array_equal(found, 2 * a)


@wp.kernel
def old_values(a: wp.array[float], sums: wp.array[float], out: wp.array[float]):
    t = wp.tile_load(a, shape=3)
    before = wp.tile_atomic_add(sums, t)
    wp.tile_store(out, before * before)


def test_old_values_of_atomic_sums_have_a_gradient_or_are_refused(lanes):
    a, sums = np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0, 5.0, 6.0], np.float32)
    given = [wp.array(a, requires_grad=True), wp.array(sums, requires_grad=True), wp.zeros(3, requires_grad=True)]
    try:
        with wp.Tape() as tape:
            wp.launch_tiled(old_values, dim=[1], inputs=given, block_dim=lanes)
    except (RuntimeError, ValueError, TypeError) as refusal:
        assert "tile_atomic_add" in str(refusal)
        return
    tape.backward(grads={given[2]: wp.array(np.ones(3, np.float32))})
    np.testing.assert_array_equal(given[0].grad.numpy(), np.zeros(3))
    np.testing.assert_array_equal(given[1].grad.numpy(), 2 * sums)


def test_a_layer_of_a_network(lanes):
    @wp.kernel
    def layer(w: wp.array2d[wp.float64], x: wp.array2d[wp.float64], out: wp.array2d[wp.float64]):
        j = wp.tid()
        t = wp.tile_load(w, shape=(8, 6))
        u = wp.tile_load(x, shape=(6, 4), offset=(0, 4 * j))
        wp.tile_store(out, wp.tile_map(wp.tanh, wp.tile_matmul(t, u)), offset=(0, 4 * j))

    w, x, seed = RNG.standard_normal((8, 6)), RNG.standard_normal((6, 12)), RNG.standard_normal((8, 12))
    by_w, by_x = gradient_of(layer, [w, x], (8, 12), seed, lanes, dim=3)
    inner = seed * (1 - np.tanh(w @ x) ** 2)
    np.testing.assert_allclose(by_w, inner @ x.T, rtol=1e-10)
    np.testing.assert_allclose(by_x, w.T @ inner, rtol=1e-10)


def test_a_scalar_factor_is_summed_once_a_block(lanes):
    @wp.kernel
    def scale(c: wp.array[float], a: wp.array2d[float], out: wp.array2d[float]):
        i = wp.tid()
        x = c[0]
        wp.tile_store(out[i], wp.tile_load(a[i], shape=7) * x)

    c, a = np.array([2.0], np.float32), RNG.integers(-9, 9, (3, 7)).astype(np.float32)
    seed = RNG.integers(-9, 9, (3, 7)).astype(np.float32)
    by_c, by_a = gradient_of(scale, [c, a], (3, 7), seed, lanes, dim=3)
    np.testing.assert_array_equal(by_c, [(a * seed).sum()])
    np.testing.assert_array_equal(by_a, 2 * seed)

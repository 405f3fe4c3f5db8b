"""Gradients that neighbouring threads share: added plainly in the middle of a chunk of threads, by atomics at its ends.
Large enough for several chunks on several threads, against NumPy's scattered additions."""

import numpy as np
import pytest
import warp as wp
from tapes import gradients


def scattered(shape, terms, d):
    """The sum of what `terms` (indices, factor) hand back."""
    gradient = np.zeros(shape + d.shape[terms[0][0][0].ndim :])
    for indices, factor in terms:
        np.add.at(gradient, tuple(indices), factor * d)
    return gradient


@wp.kernel
def line(u: wp.array[wp.float64], v: wp.array[wp.float64]):
    i = wp.tid()
    if i > 1 and i < u.shape[0] - 2:
        v[i] = u[i - 2] + wp.float64(3.0) * u[i + 1] * u[i + 1] - u[i]


@pytest.mark.parametrize("n", [5, 64, 1001, 200_003])
def test_gradient_of_a_line_stencil_equals_numpy(n):
    rng = np.random.default_rng(n)
    u, seed = rng.normal(size=n), rng.normal(size=n)
    (found,) = gradients(
        line, n, [wp.array(u, requires_grad=True)], [wp.zeros(n, dtype=wp.float64, requires_grad=True)], [seed]
    )
    i = np.arange(2, n - 2)
    d = seed[i]
    expected = scattered((n,), [([i - 2], 1.0), ([i + 1], 6.0 * u[i + 1]), ([i], -1.0)], d)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@wp.kernel
def laplacian(u: wp.array2d[wp.float32], v: wp.array2d[wp.float32]):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
        v[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


@pytest.mark.parametrize("shape", [(3, 3), (40, 7), (700, 333), (64, 5000), (5000, 64)])
def test_a_laplacian(shape):
    rng = np.random.default_rng(shape[0])
    u = rng.normal(size=shape).astype(np.float32)
    seed = rng.normal(size=shape).astype(np.float32)
    (found,) = gradients(
        laplacian, shape, [wp.array(u, requires_grad=True)], [wp.zeros(shape, dtype=float, requires_grad=True)], [seed]
    )
    d = np.zeros(shape)
    d[1:-1, 1:-1] = seed[1:-1, 1:-1]
    expected = -4.0 * d
    for axis in (0, 1):
        for step in (-1, 1):
            expected += np.roll(d, step, axis)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@wp.kernel
def clamped(u: wp.array2d[wp.vec3d], w: wp.array2d[wp.float64], v: wp.array2d[wp.vec3d]):
    i, j = wp.tid()
    above, below = wp.max(i - 1, 0), wp.min(i + 1, u.shape[0] - 1)
    left, right = wp.clamp(j - 1, 0, u.shape[1] - 1), wp.where(j + 1 < u.shape[1], j + 1, j)
    v[i, j] = w[i, j] * (u[above, j] + wp.float64(2.0) * u[below, j]) + w[below, right] * (u[i, left] - u[i, right])


@pytest.mark.parametrize("dim", [(600, 211), (411, 200)])
def test_clamped_neighbours_of_vectors(dim):
    shape = (600, 211)
    rng = np.random.default_rng(7)
    u, w = rng.normal(size=(*shape, 3)), rng.normal(size=shape)
    seed = rng.normal(size=(*w.shape, 3))
    u_grad, w_grad = gradients(
        clamped,
        dim,
        [wp.array(u, dtype=wp.vec3d, requires_grad=True), wp.array(w, requires_grad=True)],
        [wp.zeros(w.shape, dtype=wp.vec3d, requires_grad=True)],
        [seed],
    )
    i, j = np.meshgrid(np.arange(dim[0]), np.arange(dim[1]), indexing="ij")
    above, below = np.maximum(i - 1, 0), np.minimum(i + 1, shape[0] - 1)
    left, right = np.maximum(j - 1, 0), np.minimum(j + 1, shape[1] - 1)
    d = seed[: dim[0], : dim[1]]
    near, far = w[i, j][..., None], w[below, right][..., None]
    expected = scattered(
        u.shape[:2], [([above, j], near), ([below, j], 2 * near), ([i, left], far), ([i, right], -far)], d
    )
    np.testing.assert_allclose(u_grad, expected, rtol=1e-11, atol=1e-11)
    expected = np.zeros(w.shape)
    np.add.at(expected, (i, j), ((u[above, j] + 2 * u[below, j]) * d).sum(-1))
    np.add.at(expected, (below, right), ((u[i, left] - u[i, right]) * d).sum(-1))
    np.testing.assert_allclose(w_grad, expected, rtol=1e-11, atol=1e-11)


@wp.kernel
def clamped_floats(u: wp.array2d[float], v: wp.array2d[float]):
    i, j = wp.tid()
    above, below = u[wp.max(i - 1, 0), j], u[wp.min(i + 1, u.shape[0] - 1), j]
    v[i, j] = above + below + u[i, wp.max(j - 1, 0)] + u[i, wp.min(j + 1, u.shape[1] - 1)] - 3.0 * u[i, j]


def test_clamped_neighbours_of_numbers():
    shape = (300, 157)
    seed = np.random.default_rng(11).normal(size=shape).astype(np.float32)
    (found,) = gradients(
        clamped_floats,
        shape,
        [wp.ones(shape, dtype=float, requires_grad=True)],
        [wp.zeros(shape, dtype=float, requires_grad=True)],
        [seed],
    )
    i, j = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    terms = [([np.clip(i + step, 0, shape[0] - 1), j], 1.0) for step in (-1, 1)]
    terms += [([i, np.clip(j + step, 0, shape[1] - 1)], 1.0) for step in (-1, 1)]
    expected = scattered(shape, [*terms, ([i, j], -3.0)], seed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@wp.kernel
def overhanging(u: wp.array[wp.float64], v: wp.array[wp.float64]):
    i = wp.tid()
    v[i] = u[wp.min(i + 1, u.shape[0] - 1)]


def test_a_bound_that_is_far_from_most_threads():
    n, m = 300_000, 10
    seed = np.random.default_rng(8).normal(size=n)
    (found,) = gradients(
        overhanging,
        n,
        [wp.ones(m, dtype=wp.float64, requires_grad=True)],
        [wp.zeros(n, dtype=wp.float64, requires_grad=True)],
        [seed],
    )
    expected = np.zeros(m)
    np.add.at(expected, np.minimum(np.arange(n) + 1, m - 1), seed)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@wp.kernel
def volume(u: wp.array3d[wp.float32], v: wp.array3d[wp.float32]):
    i, j, k = wp.tid()
    if i < u.shape[0] - 1 and k > 0:
        row = u[i + 1]
        v[i, j, k] = row[j, k] * row[j, k - 1] + u[i, 0, k]


def test_a_volume_through_views():
    shape = (90, 40, 50)
    rng = np.random.default_rng(9)
    u, seed = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    (found,) = gradients(
        volume, shape, [wp.array(u, requires_grad=True)], [wp.zeros(shape, dtype=float, requires_grad=True)], [seed]
    )
    d = seed[:-1, :, 1:].astype(float)
    expected = np.zeros(shape)
    expected[1:, :, 1:] += d * u[1:, :, :-1]
    expected[1:, :, :-1] += d * u[1:, :, 1:]
    expected[:-1, 0, 1:] += d.sum(1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@wp.kernel
def fit(x: wp.array[wp.float64], p: wp.array[wp.float64], table: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = p[0] * x[i] + p[1] + table[i % 7] * x[i]


def test_gradients_that_all_threads_share():
    n = 100_000
    rng = np.random.default_rng(10)
    x, seed = rng.normal(size=(2, n))
    p, table = rng.normal(size=2), rng.normal(size=7)
    found = gradients(
        fit,
        n,
        [wp.array(v, requires_grad=True) for v in (x, p, table)],
        [wp.zeros(n, dtype=wp.float64, requires_grad=True)],
        [seed],
    )
    i = np.arange(n) % 7
    by_table = np.zeros(7)
    np.add.at(by_table, i, seed * x)
    expected = [seed * (p[0] + table[i]), [(seed * x).sum(), seed.sum()], by_table]
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@wp.kernel
def half_line(u: wp.array[wp.float16], v: wp.array[wp.float16]):
    i = wp.tid()
    if i > 0:
        v[i] = u[i - 1] + u[i]


def test_gradient_of_a_float16_stencil_is_summed_exactly():
    n = 50_000
    (found,) = gradients(
        half_line,
        n,
        [wp.ones(n, dtype=wp.float16, requires_grad=True)],
        [wp.zeros(n, dtype=wp.float16, requires_grad=True)],
        [np.ones(n, dtype=np.float16)],
    )
    expected = np.full(n, 2.0)
    expected[[0, -1]] = 1.0
    np.testing.assert_array_equal(found, expected)


@wp.struct
class Cell:
    heat: wp.float64
    flow: wp.vec3d


@pytest.mark.parametrize("lanes", [None, 4, 16])
@pytest.mark.parametrize("scalar", [wp.float32, wp.float64])
def test_additions_next_to_each_other(scalar, lanes):
    """Several elements of one row, some of them twice, clamped and not, under branches and with loads between."""

    @wp.kernel(module_options={"lanes": lanes} if lanes else None)
    def mixed(u: wp.array2d[scalar], w: wp.array2d[scalar], v: wp.array2d[scalar]):
        i, j = wp.tid()
        n = u.shape[1]
        right = u[i, wp.min(j + 1, n - 1)]
        left = u[i, wp.max(j - 2, 0)]
        here = u[i, j] * u[i, j]
        total = right * left + here * scalar(0.5)
        if j > 2 and j < n - 4:
            total += u[i, j - 3] * w[i, j] + u[i, j + 4] * u[i, j - 3]
        v[i, j] = total * w[i, j] + u[wp.min(i + 1, u.shape[0] - 1), j]

    rng = np.random.default_rng(2)
    dtype = np.float32 if scalar is wp.float32 else np.float64
    for shape in ((1, 1), (2, 5), (9, 40), (300, 257), (40, 3001)):
        u, w, seed = (rng.normal(size=shape).astype(dtype) for _ in range(3))
        inputs = [wp.array(value, dtype=scalar, requires_grad=True) for value in (u, w)]
        outputs = [wp.zeros(shape, dtype=scalar, requires_grad=True)]
        by_u, by_w = gradients(mixed, shape, inputs, outputs, [seed])
        u, w, seed = (value.astype(np.float64) for value in (u, w, seed))
        i, j = np.indices(shape)
        right, left = (i, np.minimum(j + 1, shape[1] - 1)), (i, np.maximum(j - 2, 0))
        d = seed * w
        expected, total = np.zeros(shape), u[right] * u[left] + 0.5 * u * u
        np.add.at(expected, right, d * u[left])
        np.add.at(expected, left, d * u[right])
        expected += d * u
        inside = (j > 2) & (j < shape[1] - 4)
        k = (i[inside], j[inside])
        low, high = (k[0], k[1] - 3), (k[0], k[1] + 4)
        total[k] += u[low] * w[k] + u[high] * u[low]
        np.add.at(expected, low, d[k] * (w[k] + u[high]))
        np.add.at(expected, high, d[k] * u[low])
        by_w_expected = seed * total
        by_w_expected[k] += d[k] * u[low]
        np.add.at(expected, (np.minimum(i + 1, shape[0] - 1), j), seed)
        tolerance = 1e-4 if scalar is wp.float32 else 1e-12
        np.testing.assert_allclose(by_u, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(by_w, by_w_expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("lanes", [None, 4, 16])
def test_fields_and_components_are_not_next_to_each_other(lanes):
    @wp.kernel(module_options={"lanes": lanes} if lanes else None)
    def flow(cells: wp.array[Cell], p: wp.array[wp.vec3d], v: wp.array[wp.float64]):
        i = wp.tid()
        if i > 0 and i < v.shape[0] - 1:
            change = cells[i + 1].heat - wp.float64(3.0) * cells[i].heat + cells[i - 1].heat
            v[i] = change * p[i][1] + p[i + 1][0] * p[i - 1][0]

    rng = np.random.default_rng(4)
    for n in (3, 70, 30_011):
        heat, points, seed = rng.normal(size=n), rng.normal(size=(n, 3)), rng.normal(size=n)
        data = np.zeros(n, dtype=wp.zeros(1, dtype=Cell).numpy().dtype)
        data["heat"] = heat
        cells = wp.array(data, dtype=Cell, requires_grad=True)
        p = wp.array(points, dtype=wp.vec3d, requires_grad=True)
        by_cell, by_p = gradients(flow, n, [cells, p], [wp.zeros(n, dtype=wp.float64, requires_grad=True)], [seed])
        i = np.arange(1, n - 1)
        d = seed[i] * points[i, 1]
        expected = scattered((n,), [([i + 1], 1.0), ([i], -3.0), ([i - 1], 1.0)], d)
        np.testing.assert_allclose(by_cell["heat"], expected, rtol=1e-12, atol=1e-12)
        of_points = np.zeros((n, 3))
        of_points[i, 1] = seed[i] * (heat[i + 1] - 3.0 * heat[i] + heat[i - 1])
        of_points[:, 0] = scattered((n,), [([i + 1], points[i - 1, 0]), ([i - 1], points[i + 1, 0])], seed[i])
        np.testing.assert_allclose(by_p, of_points, rtol=1e-12, atol=1e-12)

"""Points, kernels and launches of the tests about the order of hash grids."""

import itertools

import numpy as np
import warp as wp
from scipy.spatial import cKDTree

COUNT, CELLS = 20_000, 32


RADIUS = 1.0 / CELLS


f64 = wp.float64


fresh = itertools.count(1)  # a number that makes a kernel one that no other test has compiled


def shuffled(count=COUNT, seed=1, dtype=np.float32):
    return np.random.default_rng(seed).random((count, 3)).astype(dtype)


def by_cells(points):
    cell = np.floor(points / RADIUS).astype(int) % CELLS
    return np.ascontiguousarray(points[np.lexsort((cell[:, 0], cell[:, 1], cell[:, 2]))])


def new_grid(points, dtype=wp.float32, groups=None):
    grid = wp.HashGrid(CELLS, CELLS, CELLS, dtype=dtype)
    grid.build(points, RADIUS, groups=groups)
    return grid


def pairs(points):
    """Pairs of different points within RADIUS, each once."""
    return cKDTree(points.astype(np.float64)).query_pairs(RADIUS, output_type="ndarray")


def sums(points, factor):
    """The result of `new_kernel`."""
    a, b = pairs(points).T
    d = (points[a].astype(np.float64) - points[b]) * factor
    out = np.zeros((len(points), 3))
    np.add.at(out, a, d)
    np.add.at(out, b, -d)
    return out


def new_kernel():
    factor = float(next(fresh))

    @wp.kernel
    def sum_up(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        total = wp.vec3()
        for j in wp.hash_grid_query(grid, points[i], radius):
            d = points[i] - points[j]
            if wp.length(d) < radius:
                total += d * float(factor)
        out[i] = total

    return sum_up, factor


def launch(kernel, grid, points, out=None):
    out = wp.zeros(len(points), dtype=wp.vec3) if out is None else out
    wp.launch(kernel, dim=len(points), inputs=[grid.id, points, RADIUS], outputs=[out])
    return out.numpy()


def check_sums(found, points, factor):
    np.testing.assert_allclose(found, sums(points, factor), atol=1e-5 * factor, rtol=1e-4)

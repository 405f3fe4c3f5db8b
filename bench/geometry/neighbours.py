"""A hash grid over 1 M points in a cube, and loops over the 8.1 neighbours of each: their differences are summed up.

* `build`, `build_sorted`: building the grid, of points in no order, and in the order of their cells
* `loop`, `loop_sorted`: the loop over neighbours
* `adjoint`, `adjoint_sorted`: its adjoint, towards all points

The C++ sorts the points by cells too, and loops in that order; its `loop` includes no sorting. It has no adjoint.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

POINTS, RADIUS = 1_000_000, 0.01246
SAMPLE = 100  # points whose sums are checked


def problem(variant):
    points = np.random.default_rng(3).random((POINTS, 3)).astype(np.float32)
    if variant.endswith("sorted"):
        cell = np.floor(points / RADIUS).astype(np.int64) % 128
        points = np.ascontiguousarray(points[np.lexsort((cell[:, 0], cell[:, 1], cell[:, 2]))])
    weights = np.random.default_rng(4).random((POINTS, 3)).astype(np.float32)
    return {"points": points, "weights": weights}


def expected(variant, data):
    rows, points, weights = [], data["points"], data["weights"]
    for x, weight in zip(points[:SAMPLE], weights[:SAMPLE], strict=True):
        d = x - points
        # Each pair counts twice: one point's sum falls by as much as the other's grows.
        terms = weight - weights if variant.startswith("adjoint") else d
        rows.append(terms[(d * d).sum(1) < RADIUS * RADIUS].sum(0, dtype=np.float64))
    return np.array(rows)


def tolerance(variant):
    return {"rtol": 1e-3, "atol": 1e-5}  # of sums of some eight differences


def with_warp(wp, variant, data, options):
    @wp.kernel(enable_backward=variant.startswith("adjoint"))
    def neighbours(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        x = points[i]
        query = wp.hash_grid_query(grid, x, radius)
        index = int(0)  # noqa: UP018
        total = wp.vec3(0.0, 0.0, 0.0)
        while wp.hash_grid_query_next(query, index):
            d = x - points[index]
            if wp.length(d) < radius:
                total += d
        out[i] = total

    points = wp.array(data["points"], dtype=wp.vec3)
    grid = wp.HashGrid(128, 128, 128)
    grid.build(points, RADIUS)
    out = wp.zeros(POINTS, dtype=wp.vec3)

    def loop():
        wp.launch(neighbours, dim=POINTS, inputs=[grid.id, points, RADIUS, out])

    def result():
        loop()
        return out.numpy()[:SAMPLE]

    by_out, by_points = (wp.zeros(POINTS, dtype=wp.vec3) for _ in range(2))
    weights = wp.array(data["weights"], dtype=wp.vec3)

    def adjoint():
        wp.copy(by_out, weights)
        by_points.zero_()
        wp.launch(
            neighbours,
            dim=POINTS,
            inputs=[grid.id, points, RADIUS],
            outputs=[out],
            adj_inputs=[None, by_points, None],
            adj_outputs=[by_out],
            adjoint=True,
        )

    if variant.startswith("adjoint"):
        return measure.Job(adjoint, lambda: by_points.numpy()[:SAMPLE])
    return measure.Job((lambda: grid.build(points, RADIUS)) if variant.startswith("build") else loop, result)


def with_cpp(library, variant, data, options):
    if variant.startswith("adjoint"):
        raise NotImplementedError("the list of cells has no adjoint")
    points, out = data["points"], np.zeros((POINTS, 3), np.float32)
    radius = np.float32(RADIUS)
    measure.call_cpp(library.sort, POINTS, points, radius)()
    loop = measure.call_cpp(library.neighbours, POINTS, radius, out)

    def result():
        loop()
        return out[:SAMPLE]

    build = measure.call_cpp(library.build, POINTS, points, radius)
    return measure.Job(build if variant.startswith("build") else loop, result)


if __name__ == "__main__":
    measure.throughput(
        "neighbours",
        __doc__.splitlines()[0],
        ("build", "build_sorted", "loop", "loop_sorted", "adjoint", "adjoint_sorted"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "cpp": with_cpp},
        tolerance,
    )

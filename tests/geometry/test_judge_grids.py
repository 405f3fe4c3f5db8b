"""Results of hash grids, against brute force in float64 (`judge/`): no point within the radius is missing, none comes
twice, none is of another group; for points at any place, and of every type.

`make test` does it for few points, `make test-long` for a million in all.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

sys.path.insert(0, str(Path(__file__).resolve().parent / "judge"))
import spatial_oracle as oracle

SIZES = [
    pytest.param((500, 300), id="few"),
    pytest.param((48_000, 3000), id="million", marks=pytest.mark.large),
]


def make_kernels(vec, real):
    @wp.kernel(module="unique")
    def ask(
        grid: wp.uint64,
        place: wp.array(dtype=vec),
        group: wp.array(dtype=int),
        radius: real,
        first: wp.array(dtype=wp.int64),
        count: wp.array(dtype=int),
        given: wp.array(dtype=int),
    ):
        """Counts the results of a query, and writes them down as far as there is room."""
        i = wp.tid()
        index = int(-1)
        n = int(0)
        if group:
            query = wp.hash_grid_query(grid, place[i], radius, group[i])
            while wp.hash_grid_query_next(query, index):
                if first:
                    given[int(first[i]) + n] = index
                n += 1
        else:
            query = wp.hash_grid_query(grid, place[i], radius)
            while wp.hash_grid_query_next(query, index):
                if first:
                    given[int(first[i]) + n] = index
                n += 1
        count[i] = n

    return ask


TYPES = {
    np.float16: (wp.vec3h, wp.float16, make_kernels(wp.vec3h, wp.float16)),
    np.float32: (wp.vec3, wp.float32, make_kernels(wp.vec3, wp.float32)),
    np.float64: (wp.vec3d, wp.float64, make_kernels(wp.vec3d, wp.float64)),
}


def answers(dtype, grid, place, group, radius):
    """(first, given): the numbers for place i are given[first[i]:first[i + 1]]."""
    vec, real, ask = TYPES[dtype]
    n = len(place)
    p, count = wp.array(place, dtype=vec), wp.zeros(n, dtype=int)
    g = None if group is None else wp.array(group)
    wp.launch(ask, dim=n, inputs=[grid.id, p, g, real(radius), None, count, None])
    first = np.concatenate([[0], np.cumsum(count.numpy(), dtype=np.int64)])
    given = wp.full(max(int(first[-1]), 1), -1, dtype=int)
    again = wp.zeros(n, dtype=int)
    wp.launch(ask, dim=n, inputs=[grid.id, p, g, real(radius), wp.array(first), again, given])
    np.testing.assert_array_equal(again.numpy(), count.numpy())
    return first, given.numpy()


def spread(rng, n):
    return rng.uniform(-1, 1, (n, 3)), (4.0 / n) ** (1 / 3)


def lattice(rng, n):
    """Distances that are the radius, and cells whose borders are points."""
    edge = max(2, round(n ** (1 / 3)))
    return rng.integers(-edge // 2, edge // 2, (n, 3)) * 0.25, 0.25


def duplicates(rng, n):
    points = rng.uniform(-3, 1, (max(n // 40, 1), 3))
    return points[rng.integers(len(points), size=n)], 0.2


def clusters(rng, n):
    """Nearly everything in few cells of many."""
    middle = rng.uniform(-20, 20, (n // 100 + 1, 3))
    return middle[rng.integers(len(middle), size=n)] + rng.standard_normal((n, 3)) * 0.05, 0.05


def far(rng, n):
    """A small cloud at coordinates that leave few digits for it."""
    return rng.uniform(-1, 1, (n, 3)) + np.array([-900, 30, 500]), 2.2 / n ** (1 / 3) + 0.5


def line(rng, n):
    return np.outer(rng.uniform(-2, 2, n), [1.0, 0, 0]), 8.0 / n


CLOUDS = {cloud.__name__: cloud for cloud in (spread, lattice, duplicates, clusters, far, line)}


def check(dtype, rng, points, place, radius, dims, with_groups):
    vec, real, _ = TYPES[dtype]
    points, place = points.astype(dtype), place.astype(dtype)
    radius = float(dtype(radius))
    group = rng.choice(np.array([-7, 0, 3, 2**31 - 1], np.int32), len(points)) if with_groups else None
    place_group = rng.choice(group, len(place)) if with_groups else None
    grid = wp.HashGrid(*dims, dtype=real)
    # Cells are wider or narrower than the radius that is asked for.
    width = float(dtype(radius * rng.choice([0.6, 1.0, 1.7])))
    groups = {"groups": wp.array(group)} if with_groups else {}
    grid.build(wp.array(points, dtype=vec), width, **groups)
    first, given = answers(dtype, grid, place, place_group, radius)
    wrong, inside = oracle.neighbours(place, points, radius, first, given, place_group, group)
    assert not wrong.any(), f"place {np.flatnonzero(wrong)[0]} of {(wrong != 0).sum()}: {wrong[wrong != 0][:5]}"
    return inside


@pytest.mark.seed("S-HGR-004")
@pytest.mark.parametrize("with_groups", [False, True], ids=["all", "groups"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_neighbours_are_those_of_brute_force(dtype, size, with_groups):
    n, asked = size
    for number, (name, cloud) in enumerate(CLOUDS.items()):
        rng = np.random.default_rng(number)
        points, radius = cloud(rng, n)
        radius = max(radius, 4 * float(np.spacing(np.abs(points).max().astype(dtype))))
        near = points[rng.integers(n, size=asked)]
        near[::3] += rng.uniform(-2, 2, near[::3].shape) * radius
        inside = check(dtype, rng, points, near, radius, rng.integers(3, 90, 3).tolist(), with_groups)
        assert inside.mean() > 0.5, name


@pytest.mark.seed("S-HGR-004")
@pytest.mark.parametrize("dtype", TYPES)
def test_neighbours_at_the_ends_of_the_numbers(dtype):
    """Coordinates whose cells no integer can number."""
    largest = float(np.finfo(dtype).max)
    rng = np.random.default_rng(9)
    ends = rng.choice([-1.0, -0.999, 0.0, 0.5, 0.999, 1.0], (400, 3)) * largest * (1 - 1e-6 * (dtype != np.float16))
    points = np.concatenate([ends, ends[:50], rng.uniform(-1, 1, (200, 3))])
    for radius in (1e-3, 1.0, 100.0):
        inside = check(dtype, rng, points, points, radius, (16, 16, 16), False)
        assert (inside >= 1).all()

"""Launches whose threads run in the order of a hash grid: they give the results of launches in their own order, and run
so if that is quicker and cannot be observed."""

import threading

import numpy as np
import pytest
import warp as wp
from grid_launches import (
    CELLS,
    COUNT,
    RADIUS,
    by_cells,
    check_sums,
    f64,
    fresh,
    launch,
    new_grid,
    new_kernel,
    pairs,
    shuffled,
    sums,
)
from scipy.spatial import cKDTree

pytestmark = [
    pytest.mark.cpu_only("is about the order of threads that launches on the CPU take from a grid"),
    pytest.mark.usefixtures("usual_options"),
]


# ---- what is computed ----
@pytest.mark.seed("S-HGR-004")
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_over_neighbours_have_the_bits_of_threads_in_their_own_order(ordered, threads):
    kernel, factor = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    grid = new_grid(points)
    before = wp.config.cpu_threads
    wp.config.cpu_threads = threads
    try:
        found = launch(kernel, grid, points)
    finally:
        wp.config.cpu_threads = before
    assert ordered() == 1
    check_sums(found, points.numpy(), factor)
    wp.config.serial = True
    np.testing.assert_array_equal(found, launch(kernel, grid, points))
    assert ordered() == 0


@pytest.mark.parametrize(("dtype", "vector"), [(wp.float16, wp.vec3h), (wp.float64, wp.vec3d)])
def test_points_of_other_precision(ordered, dtype, vector):
    weight = next(fresh)

    @wp.kernel
    def count(grid: wp.uint64, points: wp.array(dtype=vector), radius: dtype, out: wp.array(dtype=int)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius):
            if wp.length(points[i] - points[j]) < radius:
                out[i] += weight

    points = wp.array(shuffled(), dtype=vector)
    grid = new_grid(points, dtype)
    found = []
    for wp.config.serial in (False, True):
        out = wp.zeros(COUNT, dtype=int)
        wp.launch(count, dim=COUNT, inputs=[grid.id, points, dtype(RADIUS)], outputs=[out])
        found.append(out.numpy())
        assert ordered() == (not wp.config.serial)
    np.testing.assert_array_equal(*found)
    if dtype is wp.float64:
        a, b = pairs(points.numpy()).T
        np.testing.assert_array_equal(found[0], weight * (1 + np.bincount(np.concatenate([a, b]), minlength=COUNT)))


@wp.struct
class Particle:
    mass: float
    place: wp.vec3


@wp.struct
class Cloud:
    radius: float
    grid: wp.uint64
    points: wp.array(dtype=wp.vec3)
    out: wp.array(dtype=wp.vec3)


def test_members_of_a_struct(ordered):
    factor = float(next(fresh))

    @wp.kernel
    def sum_up(cloud: Cloud):
        i = wp.tid()
        x = cloud.points[i]
        for j in wp.hash_grid_query(cloud.grid, x, cloud.radius):
            if wp.length(x - cloud.points[j]) < cloud.radius:
                cloud.out[i] += (x - cloud.points[j]) * float(factor)

    cloud = Cloud()
    cloud.points, cloud.out = wp.array(shuffled(), dtype=wp.vec3), wp.zeros(COUNT, dtype=wp.vec3)
    grid = new_grid(cloud.points)
    cloud.grid, cloud.radius = grid.id, RADIUS
    wp.launch(sum_up, dim=COUNT, inputs=[cloud])
    assert ordered() == 1
    check_sums(cloud.out.numpy(), cloud.points.numpy(), factor)


def test_members_of_elements_and_a_function(ordered):
    factor = float(next(fresh))

    @wp.func
    def sum_at(grid: wp.uint64, particles: wp.array(dtype=Particle), x: wp.vec3, radius: float):
        total = wp.vec3()
        for j in wp.hash_grid_query(grid, x, radius):
            d = x - particles[j].place
            if wp.length(d) < radius:
                total += d * float(factor)
        return total

    @wp.kernel
    def sum_up(grid: wp.uint64, particles: wp.array(dtype=Particle), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        out[i] = sum_at(grid, particles, particles[i].place, radius)

    places = shuffled()
    particles = np.zeros(COUNT, dtype=Particle.numpy_dtype())
    particles["place"] = places
    grid, out = new_grid(wp.array(places, dtype=wp.vec3)), wp.zeros(COUNT, dtype=wp.vec3)
    wp.launch(sum_up, dim=COUNT, inputs=[grid.id, wp.array(particles, dtype=Particle), RADIUS], outputs=[out])
    assert ordered() == 1
    check_sums(out.numpy(), places, factor)


def test_contributions_to_neighbours(ordered):
    factor = float(next(fresh))

    @wp.kernel
    def push(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius):
            d = points[j] - points[i]
            if wp.length(d) < radius:
                wp.atomic_add(out, j, d * float(factor))

    points = wp.array(shuffled(), dtype=wp.vec3)
    grid = new_grid(points)
    check_sums(launch(push, grid, points), points.numpy(), factor)
    assert ordered() == 1
    wp.config.deterministic = wp.DeterministicMode.RUN_TO_RUN
    once, again = launch(push, grid, points), launch(push, grid, points)
    assert ordered() == 0
    np.testing.assert_array_equal(once, again)


def test_queries_of_several_grids_find_the_same_in_order(ordered):
    factor = float(next(fresh))

    @wp.kernel
    def between(
        fluid: wp.uint64,
        wall: wp.uint64,
        points: wp.array(dtype=wp.vec3),
        walls: wp.array(dtype=wp.vec3),
        radius: float,
        out: wp.array(dtype=wp.vec3),
    ):
        i = wp.tid()
        x = points[i]
        total = wp.vec3()
        for k in wp.hash_grid_query(wall, x, radius):
            if wp.length(x - walls[k]) < radius:
                total += (x - walls[k]) * float(factor)
        for j in wp.hash_grid_query(fluid, x, radius):
            if wp.length(x - points[j]) < radius:
                total += (x - points[j]) * float(factor)
        out[i] = total

    points, walls = (wp.array(shuffled(n, seed=n), dtype=wp.vec3) for n in (COUNT, 30_000))
    grid, wall = new_grid(points), new_grid(walls)
    out = wp.zeros(COUNT, dtype=wp.vec3)
    wp.launch(between, dim=COUNT, inputs=[grid.id, wall.id, points, walls, RADIUS], outputs=[out])
    assert ordered() == 1
    expected = sums(points.numpy(), factor)
    tree = cKDTree(walls.numpy().astype(np.float64))
    for i, near in enumerate(tree.query_ball_point(points.numpy().astype(np.float64), RADIUS)):
        expected[i] += factor * (points.numpy()[i] - walls.numpy()[near].astype(np.float64)).sum(axis=0)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5 * factor, rtol=1e-4)


def test_groups_are_counted_the_same_in_the_order_of_a_grid(ordered):
    weight = next(fresh)

    @wp.kernel
    def count(
        grid: wp.uint64,
        points: wp.array(dtype=wp.vec3),
        groups: wp.array(dtype=int),
        radius: float,
        out: wp.array(dtype=int),
    ):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius, groups[i]):
            if wp.length(points[i] - points[j]) < radius:
                out[i] += weight

    points = wp.array(shuffled(), dtype=wp.vec3)
    groups = np.random.default_rng(2).integers(-1, 2, COUNT).astype(np.int32)
    grid = wp.HashGrid(CELLS, CELLS, CELLS)
    grid.reserve(COUNT)
    grid.build(points, RADIUS, groups=wp.array(groups, dtype=int))
    out = wp.zeros(COUNT, dtype=int)
    wp.launch(count, dim=COUNT, inputs=[grid.id, points, wp.array(groups, dtype=int), RADIUS], outputs=[out])
    assert ordered() == 1
    a, b = pairs(points.numpy()).T
    same = groups[a] == groups[b]
    found = np.bincount(np.concatenate([a[same], b[same]]), minlength=COUNT)
    # Points at the rim may round the other way.
    assert np.count_nonzero(out.numpy() != weight * (1 + found)) <= 2


def test_strided_points(ordered):
    kernel, factor = new_kernel()
    points = wp.array(np.repeat(shuffled(), 2, axis=0), dtype=wp.vec3)[::2]
    grid = new_grid(points)
    check_sums(launch(kernel, grid, points), points.numpy(), factor)
    assert ordered() == 1


@wp.struct
class Body:
    mass: float
    kind: int


def new_mix(number):
    """Reads all kinds of things of neighbours, in all ways."""

    @wp.kernel
    def mix(
        grid: wp.uint64,
        points: wp.array(dtype=wp.vec3),
        bodies: wp.array(dtype=Body),
        weight: wp.array(dtype=wp.float64),
        names: wp.array(dtype=wp.int8),
        rows: wp.array2d(dtype=float),
        radius: float,
        out: wp.array(dtype=wp.float64),
        last: wp.array(dtype=int),
    ):
        i = wp.tid()
        x = points[i]
        query = wp.hash_grid_query(grid, x, radius)
        index = int(0)
        total = weight[i]
        while wp.hash_grid_query_next(query, index):
            if index == i:
                continue
            if bodies[index].kind == 7:
                break
            for k in range(3):
                if points[index][k] > x[k]:
                    total += weight[index] * wp.float64(bodies[index].mass) + wp.float64(names[index])
            total += wp.float64(rows[index, 1])
        # The present value of index, and the values beside it.
        total += weight[index] + wp.float64(names[(index + 1) % COUNT])
        for j in wp.hash_grid_query(grid, points[i], 0.5 * radius):
            total += weight[j] * wp.float64(number)
            total += wp.float64(names[-1 - j]) + wp.float64(names[i])
        out[i] = total
        last[i] = index

    return mix


def test_whatever_is_read_of_neighbours(ordered):
    rng = np.random.default_rng(6)
    points = wp.array(shuffled(), dtype=wp.vec3)
    bodies = np.zeros(COUNT, dtype=Body.numpy_dtype())
    bodies["mass"], bodies["kind"] = rng.random(COUNT), rng.integers(0, 9, COUNT)
    weight = wp.array(rng.random(2 * COUNT), dtype=f64)[::2]
    names = wp.array(rng.integers(-100, 100, COUNT + 5).astype(np.int8))  # more than there are points
    rows = wp.array(rng.random((COUNT, 2)), dtype=float)
    grid, kernel = new_grid(points), new_mix(next(fresh))
    found = []
    for wp.config.serial in (False, True):
        out, last = wp.zeros(COUNT, dtype=f64), wp.zeros(COUNT, dtype=int)
        inputs = [grid.id, points, wp.array(bodies, dtype=Body), weight, names, rows, 1.5 * RADIUS]
        wp.launch(kernel, dim=COUNT, inputs=inputs, outputs=[out, last])
        assert ordered() == (not wp.config.serial)
        found.append((out.numpy(), last.numpy()))
    assert len(np.unique(found[0][0])) > COUNT // 2
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_array_equal(found[0][0], found[1][0])


def test_an_array_that_has_less_elements_than_neighbours(ordered):
    number = next(fresh)

    @wp.kernel
    def some(grid: wp.uint64, points: wp.array(dtype=wp.vec3), few: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], 1.0 / 32.0):
            if j < 100:
                out[i] += few[j] * float(number)

    points, few = wp.array(shuffled(), dtype=wp.vec3), wp.array(np.arange(1, 101), dtype=float)
    grid, found = new_grid(points), []
    for wp.config.serial in (False, True):
        out = wp.zeros(COUNT, dtype=float)
        wp.launch(some, dim=COUNT, inputs=[grid.id, points, few], outputs=[out])
        found.append(out.numpy())
    assert np.count_nonzero(found[0]) >= 100
    np.testing.assert_array_equal(*found)


def test_a_grid_that_another_thread_builds_meanwhile():
    kernel, factor = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    grid = new_grid(points)
    a, b = pairs(points.numpy()).T
    d = (points.numpy()[a].astype(np.float64) - points.numpy()[b]) * factor
    of_half, of_all = np.zeros((COUNT, 3)), sums(points.numpy(), factor)
    np.add.at(of_half, a[b < COUNT // 2], d[b < COUNT // 2])
    np.add.at(of_half, b[a < COUNT // 2], -d[a < COUNT // 2])
    is_done = threading.Event()

    def build():
        while not is_done.is_set():
            grid.build(points[: COUNT // 2], RADIUS)
            grid.build(points, RADIUS)

    builder = threading.Thread(target=build)
    builder.start()
    try:
        for _ in range(60):
            found = launch(kernel, grid, points)
            is_near = [
                np.isclose(found, sum_of, atol=1e-5 * factor, rtol=1e-4).all(axis=1) for sum_of in (of_half, of_all)
            ]
            assert (is_near[0] | is_near[1]).all()
    finally:
        is_done.set()
        builder.join()


# ---- what changes between launches ----
def test_a_grid_that_is_built_again_for_a_recorded_launch(ordered):
    kernel, factor = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    grid, out = new_grid(points), wp.zeros(COUNT, dtype=wp.vec3)
    command = wp.launch(kernel, dim=COUNT, inputs=[grid.id, points, RADIUS], outputs=[out], record_cmd=True)
    assert ordered() == 0
    for seed, in_order, compiled in ((1, True, 0), (2, False, 1), (3, True, 0), (4, False, 0)):
        values = shuffled(seed=seed)
        points.assign(by_cells(values) if in_order else values)
        grid.build(points, RADIUS)
        command.launch()
        check_sums(out.numpy(), points.numpy(), factor)
        assert ordered() == compiled
    # Less points than threads: each still finds its neighbours among them.
    grid.build(points[: COUNT // 2], RADIUS)
    command.launch()
    few = cKDTree(points.numpy()[: COUNT // 2].astype(np.float64))
    for i in range(0, COUNT, 997):
        x = points.numpy()[i].astype(np.float64)
        near = few.query_ball_point(x, RADIUS)
        expected = factor * (x - points.numpy()[near]).sum(axis=0)
        np.testing.assert_allclose(out.numpy()[i], expected, atol=1e-5 * factor, rtol=1e-4)


def test_another_number_of_points(ordered):
    kernel, factor = new_kernel()
    grid = wp.HashGrid(CELLS, CELLS, CELLS)
    for count, compiled in ((COUNT, 1), (18_000, 0), (100, 0), (0, 0), (25_000, 0)):
        points = wp.array(shuffled(count, seed=count), dtype=wp.vec3)
        grid.build(points, RADIUS)
        found = launch(kernel, grid, points)
        check_sums(found, points.numpy(), factor)
        assert ordered() == compiled


def test_points_that_have_moved_since(ordered):
    kernel, factor = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    grid = new_grid(points)
    other = wp.array(by_cells(shuffled()), dtype=wp.vec3)
    found = launch(kernel, grid, other)
    assert ordered() == 0  # these lie in the order of their cells
    np.testing.assert_array_equal(found, launch(kernel, new_grid(points), other))
    moved = wp.array(points.numpy() + np.float32(0.2 * RADIUS), dtype=wp.vec3)
    found = launch(kernel, grid, moved)
    assert ordered() == 1  # a little: still quicker
    wp.config.serial = True
    np.testing.assert_array_equal(found, launch(kernel, grid, moved))


def test_a_grid_that_is_gone():
    kernel, _ = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    grid = new_grid(points)
    launch(kernel, grid, points)
    number = wp.uint64(grid.id)
    del grid
    out = wp.full(COUNT, wp.vec3(1.0), dtype=wp.vec3)
    wp.launch(kernel, dim=COUNT, inputs=[number, points, RADIUS], outputs=[out])
    assert not out.numpy().any()

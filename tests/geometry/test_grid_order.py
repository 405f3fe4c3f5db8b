"""Launches whose threads run in the order of a hash grid: they give what launches in their own order give, and run so
where that is quicker and nobody can tell."""

import itertools
import threading

import numpy as np
import pytest
import warp as wp
from scipy.spatial import cKDTree

pytestmark = pytest.mark.cpu_only("geometry comes to GPUs later")

COUNT, CELLS = 20_000, 32
RADIUS = 1.0 / CELLS
f64 = wp.float64

fresh = itertools.count(1)  # a number that makes a kernel one that no other test has compiled


@pytest.fixture(autouse=True)
def usual_options():
    yield
    wp.config.log_level = wp.LOG_INFO
    wp.config.serial = False
    wp.config.deterministic = wp.DeterministicMode.NOT_GUARANTEED
    wp.config.verify_fp = False


@pytest.fixture
def ordered(capfd):
    """How many kernels have been compiled since the last call for threads in the order of a grid."""
    wp.config.log_level = wp.LOG_DEBUG
    return lambda: capfd.readouterr().out.count("threads in the order of a hash grid")


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
    """What `new_kernel` computes."""
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
    # What lies at the rim may round the other way.
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
        # Whatever stands in index now, and what stands beside it.
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


# ---- where threads keep their order ----


def test_points_in_the_order_of_their_cells(ordered):
    kernel, factor = new_kernel()
    axis = np.arange(27) / 27
    lattice = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.float32)
    two = by_cells(shuffled()).reshape(2, -1, 3).transpose(1, 0, 2).reshape(-1, 3)  # in turns, from two places
    for values in (by_cells(shuffled()), lattice, two):
        points = wp.array(values, dtype=wp.vec3)
        found = launch(kernel, new_grid(points), points)
        if values is not lattice:  # whose distances are those that round either way
            check_sums(found, values, factor)
    assert ordered() == 0


def test_other_places_than_the_points(ordered):
    weight = next(fresh)

    @wp.kernel
    def count(grid: wp.uint64, place: wp.vec3, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=int)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, place, 0.1):
            out[i] += weight
        for j in wp.hash_grid_query(grid, points[COUNT - 1 - i], 0.01):
            out[i] += weight

    points, out = wp.array(shuffled(), dtype=wp.vec3), wp.zeros(COUNT, dtype=int)
    grid = new_grid(points)
    wp.launch(count, dim=COUNT, inputs=[grid.id, wp.vec3(0.5), points], outputs=[out])
    assert ordered() == 0
    assert (out.numpy() >= weight).all()


def relax(number):
    @wp.kernel
    def kernel(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius):
            points[i] = points[i] * 0.5 + points[j] * (0.5 + float(number))

    return kernel


def scatter(number):
    @wp.kernel
    def kernel(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius):
            out[j] = points[i] * float(number)  # one of the values remains

    return kernel


def tell(number):
    @wp.kernel
    def kernel(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius):
            if j == number + 100_000:
                print(j)

    return kernel


def follow(number):
    @wp.kernel
    def kernel(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        for _ in wp.hash_grid_query(grid, points[i], radius):
            out[i] = out[wp.max(i - 1, 0)] + points[i] * float(number)

    return kernel


@pytest.mark.parametrize("make", [relax, scatter, tell, follow])
def test_kernels_in_which_the_order_may_show(ordered, make):
    points = wp.array(shuffled(), dtype=wp.vec3)
    launch(make(next(fresh)), new_grid(points), points)
    assert ordered() == 0


def test_an_atomic_whose_result_is_used(ordered):
    number = next(fresh)

    @wp.kernel
    def pack(
        grid: wp.uint64,
        points: wp.array(dtype=wp.vec3),
        radius: float,
        slots: wp.array(dtype=int),
        out: wp.array(dtype=wp.vec3),
    ):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius):
            if j == i:
                out[wp.atomic_add(slots, 0, 1)] = points[j] * float(number)

    points = wp.array(shuffled(), dtype=wp.vec3)
    grid, slots, out = new_grid(points), wp.zeros(1, dtype=int), wp.zeros(COUNT, dtype=wp.vec3)
    wp.launch(pack, dim=COUNT, inputs=[grid.id, points, RADIUS, slots], outputs=[out])
    assert ordered() == 0
    np.testing.assert_allclose(np.sort(out.numpy()[:, 0]), np.sort(points.numpy()[:, 0] * number), rtol=1e-6)


def test_arrays_that_overlap(ordered):
    kernel, _ = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    launch(kernel, new_grid(points), points, out=points)
    assert ordered() == 0


def test_options_that_promise_an_order(ordered):
    kernel, factor = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    grid = new_grid(points)
    wp.config.serial = True
    check_sums(launch(kernel, grid, points), points.numpy(), factor)
    wp.config.serial = False
    wp.config.verify_fp = True
    check_sums(launch(kernel, grid, points), points.numpy(), factor)
    wp.config.verify_fp = False
    assert ordered() == 0
    # A command that was recorded before is asked again.
    out = wp.zeros(COUNT, dtype=wp.vec3)
    command = wp.launch(kernel, dim=COUNT, inputs=[grid.id, points, RADIUS], outputs=[out], record_cmd=True)
    wp.config.serial = True
    command.launch()
    assert ordered() == 0
    check_sums(out.numpy(), points.numpy(), factor)


# ---- launches that are made later ----


def test_launches_in_a_graph(ordered):
    kernel, factor = new_kernel()
    points, out = wp.array(shuffled(), dtype=wp.vec3), wp.zeros(COUNT, dtype=wp.vec3)
    grid = new_grid(points)
    with wp.ScopedCapture(device="cpu") as capture:
        wp.launch(kernel, dim=COUNT, inputs=[grid.id, points, RADIUS], outputs=[out])
    assert ordered() == 1
    # Each time the points are what they are then, and so is the grid.
    for seed, in_order in ((3, False), (4, True), (5, False)):
        values = shuffled(seed=seed)
        points.assign(by_cells(values) if in_order else values)
        grid.build(points, RADIUS)
        wp.capture_launch(capture.graph)
        found = out.numpy()
        check_sums(found, points.numpy(), factor)
        np.testing.assert_array_equal(found, launch_in_own_order(kernel, grid, points))
        out.zero_()
    # Less points than threads. The graph keeps the grid that nobody else has.
    grid.build(points[: COUNT // 2], RADIUS)
    expected = launch_in_own_order(kernel, grid, points)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(out.numpy(), expected)
    assert ordered() <= 1  # what runs in its own order may be compiled by now
    del grid
    out.zero_()
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(out.numpy(), expected)


def launch_in_own_order(kernel, grid, points):
    wp.config.serial = True
    try:
        return launch(kernel, grid, points)
    finally:
        wp.config.serial = False


def test_a_graph_that_builds_the_grid_and_moves_the_points(ordered):
    kernel, factor = new_kernel()

    @wp.kernel
    def move(points: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        points[i] = wp.vec3(points[i][1], points[i][2], points[i][0]) * 0.9 + out[i] * 0.0

    values = shuffled(seed=6)
    points, out = wp.array(values, dtype=wp.vec3), wp.zeros(COUNT, dtype=wp.vec3)
    grid = new_grid(points)
    with wp.ScopedCapture(device="cpu") as capture:
        grid.build(points, RADIUS)
        wp.launch(kernel, dim=COUNT, inputs=[grid.id, points, RADIUS], outputs=[out])
        wp.launch(move, dim=COUNT, inputs=[points, out])
    assert ordered() == 1
    for _ in range(3):
        before = points.numpy().copy()
        wp.capture_launch(capture.graph)
        check_sums(out.numpy(), before, factor)


def test_a_graph_of_a_kernel_whose_sums_are_rounded_by_the_order(ordered):
    number = float(next(fresh))

    @wp.kernel
    def push(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius):
            d = points[j] - points[i]
            if wp.length(d) < radius:
                wp.atomic_add(out, j, d * float(number))

    points = wp.array(shuffled(), dtype=wp.vec3)
    grid, out = new_grid(points), wp.zeros(COUNT, dtype=wp.vec3)
    for deterministic in (True, False):
        wp.config.deterministic = (
            wp.DeterministicMode.RUN_TO_RUN if deterministic else wp.DeterministicMode.NOT_GUARANTEED
        )
        with wp.ScopedCapture(device="cpu") as capture:
            wp.launch(push, dim=COUNT, inputs=[grid.id, points, RADIUS], outputs=[out])
        assert ordered() == (not deterministic)
        found = []
        for _ in range(2):
            out.zero_()
            wp.capture_launch(capture.graph)
            found.append(out.numpy())
            check_sums(found[-1], points.numpy(), number)
        if deterministic:
            np.testing.assert_array_equal(*found)


@pytest.mark.needs("jax")
def test_a_program_of_jax(ordered):
    import jax

    kernel, factor = new_kernel()
    points = wp.array(shuffled(), dtype=wp.vec3)
    grid = new_grid(points)
    program = jax.jit(lambda x: wp.jax_kernel(kernel, launch_dims=COUNT)(wp.uint64(grid.id), x, RADIUS))
    for seed in (1, 2):
        values = shuffled(seed=seed)
        points.assign(values)
        grid.build(points, RADIUS)
        (found,) = program(values)
        check_sums(np.asarray(found), values, factor)
        np.testing.assert_array_equal(np.asarray(found), launch_in_own_order(kernel, grid, points))
    assert ordered() == 1


# ---- gradients ----


def new_potential():
    scale = float(next(fresh))

    @wp.kernel
    def potential(
        grid: wp.uint64,
        x: wp.array(dtype=wp.vec3d),
        charge: wp.array(dtype=wp.float64),
        radius: wp.float64,
        out: wp.array(dtype=wp.float64),
    ):
        i = wp.tid()
        total = wp.float64(0.0)
        for j in wp.hash_grid_query(grid, x[i], radius):
            d = x[i] - x[j]
            s = radius * radius - wp.dot(d, d)
            if s > wp.float64(0.0):
                total += charge[j] * s * s * wp.float64(scale)
        out[i] = total

    return potential, scale


def slopes(x, charge, weights, scale):
    """Of sum(weights * out) towards x and charge."""
    a, b = pairs(x).T
    d = x[a] - x[b]
    s = RADIUS**2 - (d * d).sum(axis=1)
    by_x, by_charge = np.zeros_like(x), weights * RADIUS**4 * scale
    slope = (-4 * scale * s * (weights[a] * charge[b] + weights[b] * charge[a]))[:, None] * d
    np.add.at(by_x, a, slope)
    np.add.at(by_x, b, -slope)
    np.add.at(by_charge, b, weights[a] * s * s * scale)
    np.add.at(by_charge, a, weights[b] * s * s * scale)
    return by_x, by_charge


def charges(seed=5):
    return np.random.default_rng(seed).uniform(0.5, 1.5, (2, COUNT))


@pytest.mark.parametrize("serial", [False, True])
def test_gradients_in_the_order_of_a_grid_equal_those_without(ordered, serial):
    kernel, scale = new_potential()
    values, (charge, weights) = shuffled(dtype=np.float64), charges()
    x = wp.array(values, dtype=wp.vec3d, requires_grad=True)
    q = wp.array(charge, dtype=f64, requires_grad=True)
    out = wp.zeros(COUNT, dtype=f64, requires_grad=True)
    grid = new_grid(x, f64)
    wp.config.serial = serial
    with wp.Tape() as tape:
        wp.launch(kernel, dim=COUNT, inputs=[grid.id, x, q, f64(RADIUS)], outputs=[out])
    assert ordered() == (not serial)
    tape.backward(grads={out: wp.array(weights, dtype=f64)})
    assert ordered() == (not serial)
    by_x, by_charge = slopes(values, charge, weights, scale)
    assert np.abs(by_x).max() > 0
    np.testing.assert_allclose(x.grad.numpy(), by_x, rtol=1e-9, atol=1e-12 * np.abs(by_x).max())
    np.testing.assert_allclose(q.grad.numpy(), by_charge, rtol=1e-9)


def test_gradients_of_deterministic_sums(ordered):
    kernel, scale = new_potential()
    values, (charge, weights) = shuffled(dtype=np.float64), charges()
    found = []
    wp.config.deterministic = wp.DeterministicMode.RUN_TO_RUN
    for _ in range(2):
        x = wp.array(values, dtype=wp.vec3d, requires_grad=True)
        out = wp.zeros(COUNT, dtype=f64, requires_grad=True)
        grid = new_grid(x, f64)
        with wp.Tape() as tape:
            wp.launch(kernel, dim=COUNT, inputs=[grid.id, x, wp.array(charge, dtype=f64), f64(RADIUS)], outputs=[out])
        ordered()
        tape.backward(grads={out: wp.array(weights, dtype=f64)})
        assert ordered() == 0  # which sums of floats would show
        found.append(x.grad.numpy())
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], slopes(values, charge, weights, scale)[0], rtol=1e-9, atol=1e-12)


def test_a_tape_over_points_that_move_and_a_grid_that_is_built_again(ordered):
    kernel, scale = new_potential()

    @wp.kernel
    def move(x: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        x[i] = x[i] + wp.vec3d(out[i] * out[i], wp.float64(0.0), wp.float64(0.001))

    values, (charge, weights) = shuffled(dtype=np.float64), charges()

    def program(values):
        start = wp.array(values, dtype=wp.vec3d, requires_grad=True)
        x = wp.zeros(COUNT, dtype=wp.vec3d, requires_grad=True)
        q = wp.array(charge, dtype=f64)
        outs = [wp.zeros(COUNT, dtype=f64, requires_grad=True) for _ in range(2)]
        grid = wp.HashGrid(CELLS, CELLS, CELLS, dtype=f64)
        with wp.Tape() as tape:
            wp.copy(x, start)
            for out in outs:
                grid.build(x, RADIUS)
                wp.launch(kernel, dim=COUNT, inputs=[grid.id, x, q, f64(RADIUS)], outputs=[out])
                wp.launch(move, dim=COUNT, inputs=[x], outputs=[out])
        grid.build(wp.zeros(5, dtype=wp.vec3d), RADIUS)
        tape.backward(grads={outs[1]: wp.array(weights, dtype=f64)})
        return start.grad.numpy(), outs

    found, outs = program(values)
    assert ordered() == 2
    wp.config.serial = True
    plain, _ = program(values)
    assert ordered() == 0
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-12 * np.abs(plain).max())
    wp.config.serial = False
    # Along one direction, for all points together.
    direction = np.random.default_rng(8).standard_normal((COUNT, 3))
    step = 1e-7
    ahead, back = ((program(values + sign * step * direction)[1][1].numpy() * weights).sum() for sign in (1, -1))
    np.testing.assert_allclose((ahead - back) / (2 * step), (found * direction).sum(), rtol=1e-4)


def test_gradients_of_members_of_a_struct(ordered):
    scale = float(next(fresh))

    @wp.struct
    class State:
        x: wp.array(dtype=wp.vec3d)

    @wp.kernel
    def potential(grid: wp.uint64, state: State, radius: wp.float64, out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, state.x[i], radius):
            d = state.x[i] - state.x[j]
            s = radius * radius - wp.dot(d, d)
            if s > wp.float64(0.0):
                out[i] += s * s * wp.float64(scale)

    values, (_, weights) = shuffled(dtype=np.float64), charges()
    state = State()
    state.x = wp.array(values, dtype=wp.vec3d, requires_grad=True)
    out = wp.zeros(COUNT, dtype=f64, requires_grad=True)
    grid = new_grid(state.x, f64)
    with wp.Tape() as tape:
        wp.launch(potential, dim=COUNT, inputs=[grid.id, state, f64(RADIUS)], outputs=[out])
    assert ordered() == 1
    tape.backward(grads={out: wp.array(weights, dtype=f64)})
    by_x, _ = slopes(values, np.ones(COUNT), weights, scale)
    np.testing.assert_allclose(state.x.grad.numpy(), by_x, rtol=1e-9, atol=1e-12 * np.abs(by_x).max())


@pytest.mark.parametrize("smooth", [False, True])
def test_gradients_of_a_kernel_that_asks_two_grids(ordered, smooth):
    """Where the first is only counted in, the adjoint does not ask it; the order may be its all the same."""
    scale = float(next(fresh))

    @wp.kernel
    def between(
        own: wp.uint64,
        other: wp.uint64,
        x: wp.array(dtype=wp.vec3d),
        y: wp.array(dtype=wp.vec3d),
        radius: wp.float64,
        n: wp.array(dtype=int),
        out: wp.array(dtype=wp.float64),
    ):
        i = wp.tid()
        total = wp.float64(0.0)
        for j in wp.hash_grid_query(own, x[i], radius):
            d = x[i] - x[j]
            s = radius * radius - wp.dot(d, d)
            if s > wp.float64(0.0):
                n[i] += 1
                if wp.static(smooth):
                    total -= s * s * wp.float64(scale)
        for j in wp.hash_grid_query(other, x[i], radius):
            d = x[i] - y[j]
            s = radius * radius - wp.dot(d, d)
            if s > wp.float64(0.0):
                total += s * s * wp.float64(scale)
        out[i] = total

    places = [shuffled(seed=seed, dtype=np.float64) for seed in (1, 2)]
    _, weights = charges()
    x, y = (wp.array(values, dtype=wp.vec3d, requires_grad=True) for values in places)
    grids = [new_grid(values, f64) for values in (x, y)]
    n, out = wp.zeros(COUNT, dtype=int), wp.zeros(COUNT, dtype=f64, requires_grad=True)
    with wp.Tape() as tape:
        inputs = [*(grid.id for grid in grids), x, y, f64(RADIUS)]
        wp.launch(between, dim=COUNT, inputs=inputs, outputs=[n, out])
    assert ordered() == 1
    tape.backward(grads={out: wp.array(weights, dtype=f64)})
    assert ordered() == 1
    near = cKDTree(places[0]).sparse_distance_matrix(cKDTree(places[1]), RADIUS, output_type="coo_matrix")
    a, b = near.row, near.col
    d = places[0][a] - places[1][b]
    slope = (-4 * scale * (RADIUS**2 - (d * d).sum(axis=1)) * weights[a])[:, None] * d
    by_x, by_y = np.zeros_like(places[0]), np.zeros_like(places[1])
    np.add.at(by_x, a, slope)
    np.add.at(by_y, b, -slope)
    if smooth:
        by_x -= slopes(places[0], np.ones(COUNT), weights, scale)[0]
    for found, expected in ((x, by_x), (y, by_y)):
        assert np.abs(expected).max() > 0
        np.testing.assert_allclose(found.grad.numpy(), expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    assert n.numpy().sum() == COUNT + 2 * len(pairs(places[0]))


def test_several_grids_in_a_struct_and_more_points_in_one_than_in_an_array(ordered):
    """Each array is read at neighbours that each grid has found, where it is long enough."""
    factor = float(next(fresh))

    @wp.struct
    class World:
        fluid: wp.uint64
        points: wp.array(dtype=wp.vec3)
        wall: wp.uint64
        walls: wp.array(dtype=wp.vec3)

    @wp.kernel
    def mix(world: World, radius: float, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        x = world.points[i]
        total = wp.vec3()
        for k in wp.hash_grid_query(world.wall, x, radius):
            total += (x - world.walls[k]) * float(factor)
            if k < world.points.shape[0]:
                total += world.points[k]
        for j in wp.hash_grid_query(world.fluid, x, radius):
            total -= world.points[j] + world.walls[j]
        out[i] = total

    for walls in (30_000, COUNT, 33 * COUNT):
        world = World()
        world.points, world.walls = (wp.array(shuffled(n, seed=n), dtype=wp.vec3) for n in (COUNT, walls))
        grids = [new_grid(world.points), new_grid(world.walls)]
        world.fluid, world.wall = (grid.id for grid in grids)
        found = []
        for wp.config.serial in (False, True):
            out = wp.zeros(COUNT, dtype=wp.vec3)
            wp.launch(mix, dim=COUNT, inputs=[world, RADIUS], outputs=[out])
            found.append(out.numpy())
        assert ordered() == (1 if walls == COUNT else 0)
        np.testing.assert_array_equal(*found)
        assert np.abs(found[0]).max() > 1.0


@pytest.mark.parametrize("moving", [("x", "q"), ("x",), ("q",)], ids=" ".join)
@pytest.mark.parametrize("strided", [False, True])
def test_gradients_in_float32_of_some_members(ordered, moving, strided):
    """What is added to gradients of neighbours is summed up in the order of the grid, where there is a gradient."""
    scale = 1e6 * next(fresh)  # so that gradients are some ones

    @wp.struct
    class State:
        grid: wp.uint64
        x: wp.array(dtype=wp.vec3)
        q: wp.array(dtype=float)

    @wp.kernel
    def potential(state: State, radius: float, out: wp.array(dtype=float)):
        i = wp.tid()
        total = float(0.0)
        for j in wp.hash_grid_query(state.grid, state.x[i], radius):
            d = state.x[i] - state.x[j]
            s = radius * radius - wp.dot(d, d)
            if s > 0.0:
                total += state.q[j] * s * s * float(scale)
        out[i] = total

    values, (charge, weights) = shuffled(), charges()
    step = 2 if strided else 1
    wholes = {
        "x": wp.array(np.repeat(values, step, axis=0), dtype=wp.vec3, requires_grad="x" in moving),
        "q": wp.array(np.repeat(charge, step).astype(np.float32), dtype=float, requires_grad="q" in moving),
    }
    grid, state = new_grid(wp.array(values, dtype=wp.vec3)), State()
    state.grid, state.x, state.q = grid.id, wholes["x"][::step], wholes["q"][::step]
    out = wp.zeros(COUNT, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(potential, dim=COUNT, inputs=[state, RADIUS], outputs=[out])
    assert ordered() == 1
    for name in moving:
        wholes[name].grad.fill_(1.0)  # sums begin with what is there
    tape.backward(grads={out: wp.array(weights, dtype=float)})
    assert ordered() == 1
    expected = dict(zip(("x", "q"), slopes(values.astype(np.float64), charge, weights, scale), strict=True))
    for name in moving:
        found, most = wholes[name].grad.numpy(), np.abs(expected[name]).max()
        assert most > 1.0
        np.testing.assert_allclose(found[::step] - 1.0, expected[name], rtol=1e-3, atol=1e-5 * most)
        if strided:
            assert (found[1::2] == 1.0).all()

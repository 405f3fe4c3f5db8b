"""Launches whose threads keep their own order, though a kernel asks a hash grid; graphs and JAX."""

import numpy as np
import pytest
import warp as wp
from grid_launches import COUNT, RADIUS, by_cells, check_sums, fresh, launch, new_grid, new_kernel, shuffled

pytestmark = [
    pytest.mark.cpu_only("is about the order of threads that launches on the CPU take from a grid"),
    pytest.mark.usefixtures("usual_options"),
]


# ---- threads keep their order ----
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
    # Fewer points than threads. The graph alone keeps the earlier grid.
    grid.build(points[: COUNT // 2], RADIUS)
    expected = launch_in_own_order(kernel, grid, points)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(out.numpy(), expected)
    assert ordered() <= 1  # the code for its own order may be compiled by now
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

"""Hash grids that a CUDA device builds: bit by bit those of the CPU, in the order of streams, in graphs, and for the
backward pass of a tape as they were."""

import gc
import pickle

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts allocations, orders launches or makes them fail")]
DEVICE = "cuda:0"

VECTORS = {wp.float16: wp.vec3h, wp.float32: wp.vec3, wp.float64: wp.vec3d}


@wp.kernel
def read_order(grid: wp.uint64, numbers: wp.array[int]):
    i = wp.tid()
    numbers[i] = wp.hash_grid_point_id(grid, i)


def order(grid, count):
    """The numbers of the points in the order of the cells, and one more."""
    numbers = wp.full(count + 1, -7, dtype=int, device=grid.device)
    wp.launch(read_order, dim=count + 1, inputs=[grid.id, numbers], device=grid.device)
    return numbers.numpy()


def built(points, dtype, dims, width, groups=None, device=DEVICE):
    grid = wp.HashGrid(*dims, device=device, dtype=dtype)
    at = wp.array(points, dtype=VECTORS[dtype], device=device)
    grid.build(at, width, None if groups is None else wp.array(groups, device=device))
    return grid


def check_like_the_cpu(points, dtype, dims, width, groups=None):
    here, there = (built(points, dtype, dims, width, groups, device) for device in (DEVICE, "cpu"))
    for found, expected in zip(here._cells(), there._cells(), strict=True):
        np.testing.assert_array_equal(found, expected)
    found = order(here, len(points))
    np.testing.assert_array_equal(found, order(there, len(points)))
    # Beside NumPy: a stable order by the cells.
    cells = here._cells()[1]
    np.testing.assert_array_equal(found[:-1], np.argsort(cells, kind="stable"))
    assert found[-1] == -1


# ---- the grid ----


@pytest.mark.parametrize("dtype", VECTORS, ids=["f16", "f32", "f64"])
@pytest.mark.parametrize("dims", [(1, 1, 1), (3, 2, 5), (17, 16, 15), (64, 33, 40)], ids=str)
@pytest.mark.parametrize("count", [0, 1, 31, 2048, 5000])
def test_a_grid_is_that_of_the_cpu(dtype, dims, count):
    rng = np.random.default_rng(count)
    points = rng.uniform(-3.0, 5.0, (count, 3))
    points[::7] = points[:1]
    check_like_the_cpu(points, dtype, dims, 0.25)


@pytest.mark.parametrize("dtype", VECTORS, ids=["f16", "f32", "f64"])
def test_a_grid_of_places_beyond_all_cells_is_that_of_the_cpu(dtype):
    largest = float(np.finfo({wp.float16: np.float16, wp.float32: np.float32, wp.float64: np.float64}[dtype]).max)
    some = [0.0, -0.0, 1.0, -1.0, 1e-8, 0.1, -0.3, largest, -largest, largest / 3, np.inf, -np.inf, np.nan]
    points = np.random.default_rng(3).choice(some, (700, 3))
    for width in (1e-3, 0.1, 7.0):
        check_like_the_cpu(points, dtype, (7, 16, 9), width)


@pytest.mark.parametrize("spread", [0.0, 0.01, 4.0], ids=["one cell", "few cells", "many"])
def test_groups_are_those_of_the_cpu(spread):
    rng = np.random.default_rng(5)
    points = rng.uniform(-spread, spread, (6000, 3))
    groups = rng.choice(np.array([-(2**31), -5, 0, 1, 77, 2**31 - 1], np.int32), 6000)
    check_like_the_cpu(points, wp.float32, (20, 13, 31), 0.1, groups)


def test_points_and_groups_with_gaps():
    rng = np.random.default_rng(6)
    points = rng.random((900, 3)).astype(np.float32)
    groups = rng.integers(0, 4, 900).astype(np.int32)
    grids = []
    for device in (DEVICE, "cpu"):
        at, group = wp.array(points, dtype=wp.vec3, device=device), wp.array(groups, device=device)
        grid = wp.HashGrid(9, 9, 9, device=device)
        grid.build(at[::-3], 0.1, group[::3])
        grids.append(grid)
    for found, expected in zip(*(grid._cells() for grid in grids), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(*(order(grid, 300) for grid in grids))
    np.testing.assert_array_equal(grids[0]._cells()[2], groups[::3])


def test_a_grid_is_pickled_with_its_device():
    points, groups = cloud(200)
    grid = built(points, wp.float32, (5, 6, 7), 0.2, groups)
    other = pickle.loads(pickle.dumps(grid))
    assert other.device == DEVICE and other.id != grid.id
    for found, expected in zip(other._cells(), grid._cells(), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(ask(other, points, groups, 0.2), ask(grid, points, groups, 0.2))
    assert wp.HashGrid(5, 6, 7, device=DEVICE)._cells() is None


@pytest.mark.seed("S-HGR-001", "S-HGR-002", "P-85", "P-86")
def test_a_program_of_a_gpu():
    @wp.kernel
    def sum(grid: wp.uint64, points: wp.array[wp.vec3], output: wp.array[wp.vec3], radius: float):
        p = points[wp.tid()]
        s = wp.vec3()
        for index in wp.hash_grid_query(grid, p, radius):
            if wp.length(p - points[index]) <= radius:
                s += points[index]
        output[wp.tid()] = s

    # More threads than those at which launches on the CPU take the order of the grid.
    at = np.random.default_rng(4).random((17_000, 3)).astype(np.float32)
    found = []
    for device in ("cuda", "cpu"):
        points = wp.array(at, dtype=wp.vec3, device=device)
        grid = wp.HashGrid(dim_x=32, dim_y=32, dim_z=32, device=device)
        grid.build(points=points, radius=0.03)
        out = wp.zeros(len(at), dtype=wp.vec3, device=device)
        wp.launch(sum, dim=len(at), inputs=[grid.id, points, out, 0.03], device=device)
        found.append(out.numpy())
    np.testing.assert_array_equal(*found)


# ---- queries ----


@wp.kernel
def neighbours(grid: wp.uint64, p: wp.array[wp.vec3], group: wp.array[int], radius: float, found: wp.array2d[int]):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, p[i], radius):
        found[i, 0] = found[i, 0] * 31 + j
    for j in wp.hash_grid_query(grid, p[i], radius, group[i]):
        found[i, 1] = found[i, 1] * 31 + j


def ask(grid, points, groups, radius=0.1):
    device = grid.device
    p, g = wp.array(points, dtype=wp.vec3, device=device), wp.array(groups, device=device)
    found = wp.zeros((len(points), 2), dtype=int, device=device)
    wp.launch(neighbours, dim=len(points), inputs=[grid.id, p, g, radius, found], device=device)
    return found.numpy()


def cloud(count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((count, 3)).astype(np.float32), rng.integers(-2, 2, count).astype(np.int32)


def test_queries_give_the_points_in_the_order_of_the_cpu():
    points, groups = cloud(1500)
    here, there = (built(points, wp.float32, (12, 10, 9), 0.1, groups, device) for device in (DEVICE, "cpu"))
    np.testing.assert_array_equal(ask(here, points, groups), ask(there, points, groups))


@pytest.mark.parametrize("state", ["new", "without groups", "after groups", "empty", "gone", "number"])
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_query_of_a_group_that_is_nowhere_finds_nothing(state, device):
    points, groups = cloud(50)
    grid = wp.HashGrid(4, 4, 4, device=device)
    at = wp.array(points, dtype=wp.vec3, device=device)
    if state in ("after groups", "empty", "gone"):
        grid.build(at, 0.1, wp.array(groups, device=device))
        assert ask(grid, points, groups)[:, 1].any()
    if state in ("without groups", "after groups"):
        grid.build(at, 0.1)
    if state == "empty":
        grid.build(at[:0], 0.1, wp.zeros(0, dtype=int, device=device))

    class Named:
        id = {"number": 12345}.get(state, grid.id)

    Named.device = device
    if state == "gone":
        del grid
        gc.collect()
        wp.synchronize()
    assert not ask(Named, points, groups)[:, 1].any()


def test_a_grid_ends_after_its_device_has_failed(run):
    out = run(
        """
        @wp.kernel
        def read(x: wp.array[float], y: wp.array[float]):
            y[0] = x[1_000_000]

        grid = wp.HashGrid(4, 4, 4, device="cuda:0")
        x, y = wp.zeros(3, device="cuda:0"), wp.zeros(3, device="cuda:0")
        grid.build(wp.zeros(3, dtype=wp.vec3, device="cuda:0"), 1.0)
        wp.launch(read, dim=1, inputs=[x, y], device="cuda:0")
        try:
            wp.synchronize()
        except RuntimeError as error:
            print("failed" if "cuStreamSynchronize" in str(error) else error)
        del grid, x, y
        gc.collect()
        print("end")
        """,
        WARP_CUDA_DRIVER="emulated",
    )
    assert out.split() == ["failed", "end"]


def test_a_grid_of_another_device_is_an_error_that_names_both(two_gpus):
    points, groups = cloud(20)
    grid = wp.HashGrid(4, 4, 4, device="cuda:1")
    with pytest.raises(RuntimeError, match=r"the grid is on 'cuda:1' and an array on 'cuda:0'. help: array.to"):
        grid.build(wp.array(points, dtype=wp.vec3, device=DEVICE), 0.1)
    with pytest.raises(RuntimeError, match=r"the grid is on 'cuda:1' and an array on 'cpu'"):
        grid.build(wp.array(points, dtype=wp.vec3, device="cpu"), 0.1)

    class There:
        id, device = grid.id, DEVICE

    with pytest.raises(RuntimeError, match="id of a hash grid on 'cuda:1', and the launch is on 'cuda:0'"):
        ask(There, points, groups)
    There.device = "cpu"
    with pytest.raises(RuntimeError, match="id of a hash grid on 'cuda:1', and the launch is on 'cpu'"):
        ask(There, points, groups)


# ---- builds in the order of streams ----


def test_launches_see_the_build_before_them():
    points, groups = cloud(700)
    p, g = wp.array(points, dtype=wp.vec3, device=DEVICE), wp.array(groups, device=DEVICE)
    grid, found = wp.HashGrid(8, 8, 8, device=DEVICE), [wp.zeros((700, 2), dtype=int, device=DEVICE) for _ in range(4)]
    sizes = (700, 300, 0, 650)
    for out, count in zip(found, sizes, strict=True):
        grid.build(p[:count], 0.1, g[:count])
        wp.launch(neighbours, dim=700, inputs=[grid.id, p, g, 0.1, out], device=DEVICE)
    for out, count in zip(found, sizes, strict=True):
        there = built(points[:count], wp.float32, (8, 8, 8), 0.1, groups[:count], "cpu")
        np.testing.assert_array_equal(out.numpy(), ask(there, points, groups))


def used_memory():
    """Bytes of the pool, when memory of other tests has been freed."""
    gc.collect()
    for _ in range(3):
        wp.synchronize()
    return wp.get_mempool_used_mem_current(DEVICE)


@pytest.mark.parametrize("is_reserved", [False, True])
def test_a_build_of_no_more_points_takes_no_memory(is_reserved):
    points, groups = cloud(3000)
    p, g = wp.array(points, dtype=wp.vec3, device=DEVICE), wp.array(groups, device=DEVICE)
    grid = wp.HashGrid(8, 8, 8, device=DEVICE)
    if is_reserved:
        grid.reserve(3000, with_groups=True)
    else:
        grid.build(p, 0.1, g)
    before = used_memory()
    for count in (3000, 10, 2999):
        grid.build(p[:count], 0.1, g[:count])
        grid.build(p[:count], 0.1)
    grid.reserve(100)
    assert used_memory() == before
    del grid
    assert used_memory() < before


def test_memory_that_is_reserved_leaves_the_present_points():
    points, groups = cloud(400)
    grid = built(points, wp.float32, (8, 8, 8), 0.1, groups)
    expected = ask(grid, points, groups)
    grid.reserve(100_000, with_groups=True)
    fill = [wp.full(100_000, 77, dtype=int, device=DEVICE) for _ in range(4)]
    np.testing.assert_array_equal(ask(grid, points, groups), expected)
    assert len(fill) == 4


# ---- graphs ----


@wp.kernel
def shrink(points: wp.array[wp.vec3], by: float):
    i = wp.tid()
    points[i] = points[i] * by


class Scene:
    """Points that move, a build and queries, as work for a graph."""

    def __init__(self, count, seed=0):
        self.points, self.groups = cloud(count, seed)
        self.p = wp.array(self.points, dtype=wp.vec3, device=DEVICE)
        self.g = wp.array(self.groups, device=DEVICE)
        self.found = wp.zeros((count, 2), dtype=int, device=DEVICE)

    def capture(self, grid):
        with wp.ScopedCapture(device=DEVICE) as capture:
            wp.launch(shrink, dim=len(self.points), inputs=[self.p, 0.9], device=DEVICE)
            grid.build(self.p, 0.1, self.g)
            self.found.zero_()
            wp.launch(neighbours, len(self.points), inputs=[grid.id, self.p, self.g, 0.1, self.found], device=DEVICE)
        return capture.graph

    def check(self, dims=(8, 8, 8)):
        self.points = self.points * np.float32(0.9)
        there = built(self.points, wp.float32, dims, 0.1, self.groups, "cpu")
        np.testing.assert_array_equal(self.found.numpy(), ask(there, self.points, self.groups))


@pytest.mark.parametrize("first", ["built before", "reserved", "in the capture"])
def test_a_graph_builds_the_grid_of_the_points_as_they_are_then(first):
    scene = Scene(600)
    grid = wp.HashGrid(8, 8, 8, device=DEVICE)
    if first == "built before":
        grid.build(scene.p, 0.1, scene.g)
    elif first == "reserved":
        grid.reserve(600, with_groups=True)
    graph = scene.capture(grid)
    used = used_memory()
    for _ in range(3):
        wp.capture_launch(graph)
        scene.check()
    assert used_memory() == used, "launches of the graph take no memory"
    wp.launch(neighbours, dim=600, inputs=[grid.id, scene.p, scene.g, 0.1, scene.found], device=DEVICE)
    id = grid.id
    del grid
    gc.collect()
    other = built(*cloud(600, 9)[:1], wp.float32, (8, 8, 8), 0.1)
    wp.capture_launch(graph)
    scene.check()
    assert other.id != id


def test_a_grid_that_is_made_in_a_capture():
    scene = Scene(200)
    with wp.ScopedCapture(device=DEVICE) as capture:
        grid, empty = wp.HashGrid(8, 8, 8, device=DEVICE), wp.HashGrid(8, 8, 8, device=DEVICE)
        grid.reserve(200, with_groups=True)
        wp.launch(shrink, dim=200, inputs=[scene.p, 0.9], device=DEVICE)
        grid.build(scene.p, 0.1, scene.g)
        scene.found.zero_()
        for each in (grid, empty):
            wp.launch(neighbours, 200, inputs=[each.id, scene.p, scene.g, 0.1, scene.found], device=DEVICE)
    assert not ask(grid, scene.points, scene.groups).any(), "it has not run"
    for _ in range(2):
        wp.capture_launch(capture.graph)
        scene.check()


def test_graphs_and_builds_take_turns():
    """Each build counts, in any memory that it has written to."""
    small, large = Scene(300, 1), Scene(2500, 2)
    grid = wp.HashGrid(8, 8, 8, device=DEVICE)
    first = small.capture(grid)
    second = large.capture(grid)
    middle, groups = cloud(900, 3)
    for _ in range(2):
        for graph, scene in ((first, small), (second, large)):
            wp.capture_launch(graph)
            scene.check()
            p, g = wp.array(middle, dtype=wp.vec3, device=DEVICE), wp.array(groups, device=DEVICE)
            grid.build(p, 0.1, g)
            there = built(middle, wp.float32, (8, 8, 8), 0.1, groups, "cpu")
            np.testing.assert_array_equal(ask(grid, middle, groups), ask(there, middle, groups))
            grid.reserve(4000, with_groups=True)
    wp.capture_launch(first)
    small.check()
    del first, graph
    gc.collect()
    fill = [wp.full(5000, 77, dtype=int, device=DEVICE) for _ in range(8)]
    now = small.points
    there = built(now, wp.float32, (8, 8, 8), 0.1, small.groups, "cpu")
    np.testing.assert_array_equal(ask(grid, now, small.groups), ask(there, now, small.groups))
    assert len(fill) == 8


def test_a_build_in_the_body_of_a_condition_and_in_a_graph_within_a_graph():
    scene = Scene(300)
    grid = wp.HashGrid(8, 8, 8, device=DEVICE)
    if_set = wp.zeros(1, dtype=int, device=DEVICE)

    def work():
        wp.launch(shrink, dim=300, inputs=[scene.p, 0.9], device=DEVICE)
        grid.build(scene.p, 0.1, scene.g)
        scene.found.zero_()
        wp.launch(neighbours, dim=300, inputs=[grid.id, scene.p, scene.g, 0.1, scene.found], device=DEVICE)

    with wp.ScopedDevice(DEVICE):
        with wp.ScopedCapture() as capture:
            wp.capture_if(if_set, work)
        with wp.ScopedCapture() as outer:
            wp.capture_launch(capture.graph)
        wp.capture_launch(outer.graph)
        assert not scene.found.numpy().any()
        if_set.fill_(1)
        for graph in (capture.graph, outer.graph):
            wp.capture_launch(graph)
            scene.check()


# ---- tapes ----


@wp.kernel
def energy(grid: wp.uint64, x: wp.array[wp.vec3d], radius: wp.float64, out: wp.array[wp.float64]):
    i = wp.tid()
    e = wp.float64(0.0)
    for j in wp.hash_grid_query(grid, x[i], radius):
        d = radius - wp.length(x[i] - x[j])
        if j != i and d > wp.float64(0.0):
            e += d * d * d
    wp.atomic_add(out, 0, e)


@wp.kernel
def move(x: wp.array[wp.vec3d], y: wp.array[wp.vec3d]):
    i = wp.tid()
    y[i] = x[i] * wp.float64(1.5)


def steps(device, grid, x, y, out):
    """Two energies, each of a grid of its own time."""
    grid.build(x, 0.2)
    wp.launch(energy, dim=len(x), inputs=[grid.id, x, 0.2, out], device=device)
    wp.launch(move, dim=len(x), inputs=[x, y], device=device)
    grid.build(y, 0.2)
    wp.launch(energy, dim=len(x), inputs=[grid.id, y, 0.2, out], device=device)


def arrays(device, points):
    x = wp.array(points, dtype=wp.vec3d, device=device, requires_grad=True)
    y = wp.zeros_like(x, requires_grad=True)
    out = wp.zeros(1, dtype=wp.float64, device=device, requires_grad=True)
    return x, y, out, wp.HashGrid(8, 8, 8, device=device, dtype=wp.float64)


def gradient_on_the_cpu(points):
    x, y, out, grid = arrays("cpu", points)
    with wp.Tape() as tape:
        steps("cpu", grid, x, y, out)
    tape.backward(out)
    assert x.grad.numpy().any()
    return x.grad.numpy()


def test_a_backward_pass_finds_the_grids_of_its_launches():
    points = np.random.default_rng(8).random((80, 3)) * 0.6
    x, y, out, grid = arrays(DEVICE, points)
    with wp.Tape() as tape:
        steps(DEVICE, grid, x, y, out)
    grid.build(wp.array(points[:5] + 100, dtype=wp.vec3d, device=DEVICE), 0.2)
    del grid
    gc.collect()
    tape.backward(out)
    np.testing.assert_allclose(x.grad.numpy(), gradient_on_the_cpu(points), rtol=1e-12, atol=1e-14)


def test_a_tape_and_a_graph_that_builds_the_grid_again():
    """The graph writes to the memory that the tape needs: an error, and no wrong gradient."""
    points = np.random.default_rng(10).random((60, 3)) * 0.6
    x, y, out, grid = arrays(DEVICE, points)
    moved = wp.array(points * 2, dtype=wp.vec3d, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        grid.build(moved, 0.2)
    with wp.Tape() as tape:
        steps(DEVICE, grid, x, y, out)
    tape.backward(out)
    np.testing.assert_allclose(x.grad.numpy(), gradient_on_the_cpu(points), rtol=1e-12, atol=1e-14)
    # The graph's build reaches launches after it, although the tape has kept another grid.
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(order(grid, 60)[:-1], np.argsort(grid._cells()[1], kind="stable"))
    there = built(points * 2, wp.float64, (8, 8, 8), 0.2, None, "cpu")
    np.testing.assert_array_equal(grid._cells()[1], there._cells()[1])
    tape.zero()
    with pytest.raises(RuntimeError, match="kernel 'energy' looked into .* a graph has built again"):
        tape.backward(out)

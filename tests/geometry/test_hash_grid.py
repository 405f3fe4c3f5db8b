"""Hash grids: neighbours against brute force, at any place, of any type, in groups, from several threads."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st
from run_in_threads import run_in_threads


@wp.kernel
def neighbours(
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    places: wp.array(dtype=wp.vec3),
    radius: float,
    count: wp.array(dtype=int),
    numbers: wp.array(dtype=wp.uint64),
    seen: wp.array(dtype=int),
):
    i = wp.tid()
    query = wp.hash_grid_query(grid, places[i], radius)
    index = int(0)
    total = int(0)
    inside = int(0)
    mixed = wp.uint64(0)
    while wp.hash_grid_query_next(query, index):
        total += 1
        if wp.length(places[i] - points[index]) <= radius:
            inside += 1
            mixed += wp.uint64(index + 1) * wp.uint64(index + 1) * wp.uint64(index + 7919)
    count[i] = inside
    numbers[i] = mixed
    seen[i] = total


def mixed(numbers):
    k = numbers.astype(np.uint64)
    return (k + np.uint64(1)) * (k + np.uint64(1)) * (k + np.uint64(7919))


def near(points, places, radius):
    """In float32, as the kernel computes it."""
    d = places[:, None, :] - points[None]
    with np.errstate(over="ignore", invalid="ignore"):
        squared = d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1] + d[..., 2] * d[..., 2]
        return np.sqrt(squared) <= np.float32(radius)


def run(grid, points, places, radius):
    n = len(places)
    out = wp.zeros(n, dtype=int), wp.zeros(n, dtype=wp.uint64), wp.zeros(n, dtype=int)
    p, q = wp.array(points, dtype=wp.vec3), wp.array(places, dtype=wp.vec3)
    wp.launch(neighbours, dim=n, inputs=[grid.id, p, q, radius], outputs=list(out))
    return [a.numpy() for a in out]


def check(grid, points, places, radius):
    """Every neighbour is found, and nothing twice."""
    count, numbers, seen = run(grid, points, places, radius)
    expected = near(points, places, radius)
    # Points at the rim may round the other way in one of the two.
    d = np.linalg.norm(places[:, None, :].astype(np.float64) - points[None], axis=2)
    rim = np.abs(d - radius) <= 1e-6 * radius
    clear = ~rim.any(axis=1)
    assert clear.any()
    np.testing.assert_array_equal(count[clear], expected[clear].sum(axis=1))
    weights = np.where(expected, mixed(np.arange(len(points)))[None], np.uint64(0))
    np.testing.assert_array_equal(numbers[clear], weights.sum(axis=1, dtype=np.uint64)[clear])
    assert (seen >= count).all() and (seen <= len(points)).all()
    return seen


@pytest.mark.seed("S-HGR-002", "S-HGR-003", "S-HGR-004", "S-HGR-005")
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 400),
    dims=st.tuples(*[st.integers(1, 40)] * 3),
    scale=st.sampled_from([1e-6, 1.0, 30.0, 1e5]),
    offset=st.sampled_from([0.0, -3.0, 1000.0, -2.5e4]),
    width=st.floats(0.01, 2.0),
    reach=st.sampled_from([0.1, 0.5, 1.0, 1.0, 2.3]),
)
def test_neighbours_are_those_of_brute_force(seed, count, dims, scale, offset, width, reach):
    rng = np.random.default_rng(seed)
    points = ((rng.random((count, 3)) - 0.5 + offset) * scale).astype(np.float32)
    points[::5] = points[0]  # duplicates
    places = np.concatenate([points[: count // 2 + 1], points[:20] + np.float32(0.3 * width * scale)])
    grid = wp.HashGrid(*dims)
    grid.build(points=wp.array(points, dtype=wp.vec3), radius=width * scale)
    check(grid, points, places, np.float32(width * scale * reach))


@pytest.mark.seed("S-HGR-004")
def test_a_neighbour_at_the_border_of_cells_is_found():
    """On a lattice every distance is a multiple of the width."""
    axis = np.arange(-6, 7, dtype=np.float32) * np.float32(0.1)
    points = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    grid = wp.HashGrid(5, 4, 3)
    grid.build(wp.array(points, dtype=wp.vec3), 0.1)
    count, _, _ = run(grid, points, points, np.float32(0.1001))
    inner = (np.abs(points) < 0.55).all(axis=1)
    assert (count[inner] == 7).all()


@pytest.mark.seed("S-HGR-004")
def test_places_beyond_all_cells():
    points = np.array(
        [[1e30, 0, 0], [1e30, 1, 0], [-1e30, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0], [0.5, 0, 0]], np.float32
    )
    grid = wp.HashGrid(16, 16, 16)
    grid.build(wp.array(points, dtype=wp.vec3), 1.0)
    places = np.array([[1e30, 0.5, 0], [0, 0, 0], [np.nan, 0, 0]], np.float32)
    count, _, seen = run(grid, points, places, 1.0)
    assert count.tolist() == [2, 1, 0]
    assert (seen <= len(points)).all()


@pytest.mark.seed("S-HGR-007")
def test_queries_see_the_last_build_only():
    rng = np.random.default_rng(3)
    grid = wp.HashGrid()
    for count in (500, 20, 0, 900):
        points = rng.random((count, 3)).astype(np.float32)
        grid.build(wp.array(points, dtype=wp.vec3), 0.1)
        places = rng.random((50, 3)).astype(np.float32)
        if count:
            check(grid, points, places, np.float32(0.1))
        else:
            assert run(grid, np.zeros((1, 3), np.float32), places, 0.1)[2].sum() == 0


@pytest.mark.seed("S-HGR-001", "S-HGR-006", "P-85")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_members_of_a_grid(device):
    grid = wp.HashGrid(dim_x=128, dim_y=128, dim_z=128, device=device)
    assert isinstance(grid.id, int) and 0 < grid.id < 2**64
    assert grid.device == device and repr(grid) == f"<HashGrid 128 x 128 x 128 on '{device}'>"
    grid.reserve(1000)
    grid.reserve(num_points=1000, with_groups=True)
    other = wp.HashGrid(device=device)
    assert other.id != grid.id
    assert (other.dim_x, other.dim_y, other.dim_z) == (128, 128, 128)


@pytest.mark.seed("P-86", "D-10")
def test_the_sum_of_neighbours():
    @wp.kernel(module="unique")
    def newer(grid: wp.uint64, points: wp.array(dtype=wp.vec3), output: wp.array(dtype=wp.vec3), radius: float):
        p = points[wp.tid()]
        for index in wp.hash_grid_query(grid, p, radius):
            if wp.length(p - points[index]) <= radius:
                output[wp.tid()] += points[index]

    @wp.kernel(module="unique")
    def sum(grid: wp.uint64, points: wp.array(dtype=wp.vec3), output: wp.array(dtype=wp.vec3), radius: float):
        p = points[wp.tid()]
        query = wp.hash_grid_query(grid, p, radius)
        index = int(0)
        s = wp.vec3()
        while wp.hash_grid_query_next(query, index):
            neighbor = points[index]
            if wp.length(p - neighbor) <= radius:
                s += neighbor
        output[wp.tid()] = s

    points = wp.array([[0.0, 0, 0], [0.4, 0, 0], [2.0, 0, 0]], dtype=wp.vec3)
    grid = wp.HashGrid(128, 128, 128)
    grid.build(points=points, radius=0.5)
    for form in (sum, newer):
        out = wp.zeros(3, dtype=wp.vec3)
        wp.launch(form, dim=3, inputs=[grid.id, points, out, 0.5])
        np.testing.assert_allclose(out.numpy()[:, 0], [0.4, 0.4, 2.0], rtol=1e-6)


def test_a_for_loop_runs_over_a_query():
    @wp.kernel(module="unique")
    def loop(grid: wp.uint64, points: wp.array(dtype=wp.vec3), first: wp.array(dtype=int), total: wp.array(dtype=int)):
        i = wp.tid()
        found = int(-1)
        count = int(0)
        for j in wp.hash_grid_query(grid, points[i], 0.1):
            if j == i:
                continue
            for k in wp.hash_grid_query(grid, points[j], 0.1):
                if k == i:
                    count += 1
                    break
            if wp.length(points[i] - points[j]) > 0.1:
                continue
            found = wp.max(found, j)
        first[i] = found
        total[i] = count

    rng = np.random.default_rng(0)
    points = rng.random((300, 3)).astype(np.float32)
    grid = wp.HashGrid(32, 32, 32)
    p = wp.array(points, dtype=wp.vec3)
    grid.build(p, 0.1)
    found, total = wp.zeros(300, dtype=int), wp.zeros(300, dtype=int)
    wp.launch(loop, dim=300, inputs=[grid.id, p, found, total])
    near_by = near(points, points, 0.1)
    np.fill_diagonal(near_by, False)
    expected = np.where(near_by.any(axis=1), 299 - np.argmax(near_by[:, ::-1], axis=1), -1)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert (total.numpy() >= near_by.sum(axis=1)).all()


@pytest.mark.parametrize("dtype, name", [(wp.float16, wp.vec3h), (wp.float64, wp.vec3d)])
def test_points_of_other_types(dtype, name):
    @wp.kernel(module="unique")
    def count_near(grid: wp.uint64, points: wp.array(dtype=name), radius: dtype, count: wp.array(dtype=int)):
        i = wp.tid()
        n = int(0)
        for j in wp.hash_grid_query(grid, points[i], radius):
            if wp.length(points[i] - points[j]) <= radius:
                n += 1
        count[i] = n

    @wp.kernel(module="unique")
    def count_all(points: wp.array(dtype=name), radius: dtype, count: wp.array(dtype=int)):
        i = wp.tid()
        n = int(0)
        for j in range(points.shape[0]):
            if wp.length(points[i] - points[j]) <= radius:
                n += 1
        count[i] = n

    rng = np.random.default_rng(1)
    points = wp.array((rng.random((700, 3)) - 0.5) * 4.0, dtype=name)
    grid = wp.HashGrid(20, 20, 20, dtype=dtype)
    assert grid.dtype is dtype
    grid.build(points, 0.25)
    found, expected = wp.zeros(700, dtype=int), wp.zeros(700, dtype=int)
    wp.launch(count_near, dim=700, inputs=[grid.id, points, 0.25, found])
    wp.launch(count_all, dim=700, inputs=[points, 0.25, expected])
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_a_query_of_a_group_finds_its_points_alone():
    @wp.kernel(module="unique")
    def of_group(
        grid: wp.uint64,
        points: wp.array(dtype=wp.vec3),
        groups: wp.array(dtype=int),
        radius: float,
        count: wp.array2d(dtype=int),
    ):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, points[i], radius, groups[i]):
            if groups[j] != groups[i]:
                count[i, 2] += 1
            elif wp.length(points[i] - points[j]) <= radius:
                count[i, 0] += 1
        for j in wp.hash_grid_query(grid, points[i], radius):
            if wp.length(points[i] - points[j]) <= radius:
                count[i, 1] += 1

    rng = np.random.default_rng(2)
    points = rng.random((800, 3)).astype(np.float32)
    groups = rng.choice([-5, 0, 1, 2**31 - 1], 800).astype(np.int32)
    grid = wp.HashGrid(12, 12, 12)
    p, g = wp.array(points, dtype=wp.vec3), wp.array(groups)
    grid.build(p, 0.1, groups=g)
    count = wp.zeros((800, 3), dtype=int)
    wp.launch(of_group, dim=800, inputs=[grid.id, p, g, 0.1, count])
    expected = near(points, points, 0.1)
    np.testing.assert_array_equal(count.numpy()[:, 1], expected.sum(axis=1))
    np.testing.assert_array_equal(count.numpy()[:, 0], (expected & (groups[:, None] == groups)).sum(axis=1))
    assert (count.numpy()[:, 2] == 0).all()


def test_the_order_of_the_points():
    @wp.kernel(module="unique")
    def order(grid: wp.uint64, numbers: wp.array(dtype=int)):
        i = wp.tid()
        numbers[i] = wp.hash_grid_point_id(grid, i - 1)

    rng = np.random.default_rng(5)
    points = rng.random((1000, 3)).astype(np.float32)
    grid = wp.HashGrid(10, 10, 10)
    grid.build(wp.array(points, dtype=wp.vec3), 0.1)
    numbers = wp.zeros(1002, dtype=int)
    wp.launch(order, dim=1002, inputs=[grid.id, numbers])
    found = numbers.numpy()
    assert found[0] == found[-1] == -1
    cells = np.floor(points.astype(np.float64) / 0.1).astype(int) % 10
    # Points of a cell stand in the order of their numbers.
    expected = np.lexsort((np.arange(1000), cells[:, 0], cells[:, 1], cells[:, 2]))
    np.testing.assert_array_equal(found[1:-1], expected)


def test_an_id_that_names_no_grid_finds_nothing():
    points = np.zeros((4, 3), np.float32)
    grid = wp.HashGrid(4, 4, 4)
    assert run(grid, points, points, 1.0)[2].sum() == 0, "not built yet"
    grid.build(wp.array(points, dtype=wp.vec3), 1.0)
    assert run(grid, points, points, 1.0)[2].sum() == 16

    class Gone:
        id = grid.id

    del grid
    wp.synchronize()  # a GPU forgets it when its work is done
    for number in (Gone.id, 0, 1, 2**64 - 1, 3 << 56, 0xDEAD << 32):
        Gone.id = number
        assert run(Gone, points, points, 1.0)[2].sum() == 0


def test_a_query_of_a_group_by_an_id_that_names_no_grid_finds_nothing():
    @wp.kernel(module="unique")
    def count_group(grid: wp.uint64, count: wp.array(dtype=int)):
        for _ in wp.hash_grid_query(grid, wp.vec3(), 1.0, 3):
            count[0] += 1

    count = wp.zeros(1, dtype=int)
    grid, built = wp.HashGrid(4, 4, 4), wp.HashGrid(4, 4, 4)
    built.build(wp.zeros(5, dtype=wp.vec3), 1.0)  # without groups
    for number in (0, 1, 2**64 - 1, 3 << 56, 0xDEAD << 32, grid.id, built.id):
        wp.launch(count_group, dim=1, inputs=[number, count])
    assert count.list() == [0]
    built.build(wp.zeros(5, dtype=wp.vec3), 1.0, groups=wp.array([3, 1, 3, 2, 3], dtype=int))
    wp.launch(count_group, dim=1, inputs=[built.id, count])
    assert count.list() == [3]


def test_grids_that_live_one_after_the_other_have_ids_of_their_own():
    ids = set()
    for _ in range(50):
        ids.add(wp.HashGrid(2, 2, 2).id)
    assert len(ids) == 50


def test_several_grids_in_one_kernel():
    @wp.kernel(module="unique")
    def both(grids: wp.array(dtype=wp.uint64), point: wp.vec3, radius: float, count: wp.array(dtype=int)):
        i = wp.tid()
        for _ in wp.hash_grid_query(grids[i], point, radius):
            count[i] += 1

    grids = []
    for k in range(40):
        grids.append(wp.HashGrid(8, 8, 8))
        grids[-1].build(wp.zeros(k, dtype=wp.vec3), 1.0)
    count = wp.zeros(40, dtype=int)
    ids = wp.array([g.id for g in grids], dtype=wp.uint64)
    wp.launch(both, dim=40, inputs=[ids, wp.vec3(), 0.5, count])
    assert count.numpy().tolist() == list(range(40))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda g: wp.HashGrid(0, 4, 4), ValueError, "at least 1 cell"),
        (lambda g: wp.HashGrid(2000, 2000, 2000), ValueError, "at most"),
        (lambda g: wp.HashGrid(dtype=int), TypeError, "float16, float32 or float64"),
        (lambda g: wp.HashGrid(dtype=wp.mat33), TypeError, "coordinates"),
        (lambda g: g.build(np.zeros((3, 3)), 1.0), TypeError, "points"),
        (lambda g: g.build(wp.zeros(3), 1.0), TypeError, "expected an array of vec3f"),
        (lambda g: g.build(wp.zeros(3, dtype=wp.vec3d), 1.0), TypeError, "vec3d"),
        (lambda g: g.build(wp.zeros((3, 2), dtype=wp.vec3), 1.0), TypeError, "vec3f"),
        (lambda g: g.build(wp.zeros(3, dtype=wp.vec3), 0.0), ValueError, "above 0"),
        (lambda g: g.build(wp.zeros(3, dtype=wp.vec3), float("nan")), ValueError, "above 0"),
        (
            lambda g: g.build(wp.zeros(3, dtype=wp.vec3), 1.0, wp.zeros(2, dtype=int)),
            TypeError,
            "one for each of the 3",
        ),
        (lambda g: g.reserve(-1), ValueError, "number of points"),
    ],
)
def test_wrong_arguments_of_hash_grids_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call(wp.HashGrid(4, 4, 4))


def test_a_query_is_no_sequence():
    @wp.kernel(module="unique")
    def counted(grid: wp.uint64):
        for i, j in enumerate(wp.hash_grid_query(grid, wp.vec3(), 1.0)):
            print(i + j)

    with pytest.raises(TypeError, match="cannot be counted"):
        wp.launch(counted, dim=1, inputs=[wp.HashGrid().id])


def test_a_function_takes_a_query():
    @wp.func
    def count(query: wp.HashGridQuery):
        n = int(0)
        for _ in query:
            n += 1
        return n

    @wp.kernel(module="unique")
    def all_of_them(grid: wp.uint64, out: wp.array(dtype=int)):
        out[0] = count(wp.hash_grid_query(grid, wp.vec3(), 1.0))

    grid = wp.HashGrid(4, 4, 4)
    grid.build(wp.zeros(5, dtype=wp.vec3), 1.0)
    out = wp.zeros(1, dtype=int)
    wp.launch(all_of_them, dim=1, inputs=[grid.id, out])
    assert out.numpy()[0] == 5


def test_the_gradient_of_a_sum_over_neighbours():
    """Against differences in float64."""

    @wp.kernel(module="unique")
    def energy(grid: wp.uint64, points: wp.array(dtype=wp.vec3d), radius: wp.float64, out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        e = wp.float64(0.0)
        for j in wp.hash_grid_query(grid, points[i], radius):
            d = wp.length(points[i] - points[j])
            if j != i and d < radius:
                w = radius - d
                e += w * w * w
        wp.atomic_add(out, 0, e)

    rng = np.random.default_rng(7)
    points = rng.random((60, 3)) * 0.5
    grid = wp.HashGrid(16, 16, 16, dtype=wp.float64)

    def value(x):
        p, out = wp.array(x, dtype=wp.vec3d), wp.zeros(1, dtype=wp.float64)
        grid.build(p, 0.2)
        wp.launch(energy, dim=len(x), inputs=[grid.id, p, 0.2, out])
        return out.numpy()[0]

    p = wp.array(points, dtype=wp.vec3d, requires_grad=True)
    out = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    grid.build(p, 0.2)
    with wp.Tape() as tape:
        wp.launch(energy, dim=60, inputs=[grid.id, p, 0.2, out])
    tape.backward(out)
    gradient = p.grad.numpy()
    for i, axis in [(0, 0), (7, 1), (31, 2), (59, 0)]:
        step = np.zeros_like(points)
        step[i, axis] = 1e-6
        expected = (value(points + step) - value(points - step)) / 2e-6
        assert abs(gradient[i, axis] - expected) < 1e-6 * max(1.0, abs(expected))


def test_threads_that_build_query_and_free():
    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(12):
            points = rng.random((200, 3)).astype(np.float32)
            grid = wp.HashGrid(16, 16, 16)
            grid.build(wp.array(points, dtype=wp.vec3), 0.1)
            check(grid, points, points[:40], np.float32(0.1))
            grid.build(wp.array(points[:50], dtype=wp.vec3), 0.2)
            check(grid, points[:50], points[:40], np.float32(0.2))

    run_in_threads(work, range(8))


@pytest.mark.parametrize(("dtype", "vector"), [(wp.float16, wp.vec3h), (float, wp.vec3), (wp.float64, wp.vec3d)])
def test_queries_are_named_by_the_type_of_coordinates(dtype, vector):
    @wp.func
    def count(query: wp.HashGridQuery[dtype]):
        n = int(0)
        for _ in query:
            n += 1
        return n

    @wp.kernel
    def ask(grid: wp.uint64, place: wp.array(dtype=vector), n: wp.array(dtype=int)):
        n[0] = count(wp.hash_grid_query(grid, place[0], place[0][1]))

    grid = wp.HashGrid(4, 4, 4, dtype=dtype)
    grid.build(wp.array([[0, 0, 0], [0.5, 0, 0], [2, 2, 2]], dtype=vector), 1.0)
    n = wp.zeros(1, dtype=int)
    wp.launch(ask, 1, [grid.id, wp.array([[0.25, 0.5, 0]], dtype=vector), n])
    assert 2 <= n.list()[0] <= 3


@pytest.mark.parametrize("dtype", [int, wp.vec3, "float32", None])
def test_queries_of_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match=r"HashGridQuery\[...\]: expected float16, float32 or float64, got"):
        wp.HashGridQuery[dtype]

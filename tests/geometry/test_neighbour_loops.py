"""Loops over neighbours that lanes go through run by run (transform/passes/neighbour_rows.cpp): with any bodies
they give the results of brute force, and the bits of one lane."""

import re

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.cpu_only("is about the CPU's lanes")

LANES = (4, 8, 16)


def in_lanes(function, runs):
    """The kernel by its number of lanes. One lane asks the query for each item; lanes have `runs` loops over rows."""
    kernels = {n: wp.kernel(function, module_options={"lanes": n}, module="unique") for n in (1, *LANES)}
    for n, kernel in kernels.items():
        loops = re.findall(r" for %\S+ = %\S+ to %\S+ step", kernel.listing("ir"))
        assert len(loops) == (runs if n > 1 else 0)
    return kernels


def sums(
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    places: wp.array(dtype=wp.vec3),
    radius: float,
    out: wp.array(dtype=int, ndim=2),
):
    i = wp.tid()
    query = wp.hash_grid_query(grid, places[i], radius)
    index = int(-7)
    while wp.hash_grid_query_next(query, index):
        out[i, 0] += 1
        if wp.length(places[i] - points[index]) <= radius:
            out[i, 1] += 1
            out[i, 2] += index * index + 1
    out[i, 3] = index  # the last one


def leaves(
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    places: wp.array(dtype=wp.vec3),
    radius: float,
    out: wp.array(dtype=int, ndim=2),
):
    """After three that are near; then the query continues."""
    i = wp.tid()
    query = wp.hash_grid_query(grid, places[i], radius)
    index = int(0)
    first = int(0)
    rest = int(0)
    while wp.hash_grid_query_next(query, index):
        if wp.length(places[i] - points[index]) > radius:
            continue
        first += 1
        if first == 3:
            break
    while wp.hash_grid_query_next(query, index):
        if wp.length(places[i] - points[index]) <= radius:
            rest += 1
    out[i, 0] = first
    out[i, 1] = rest
    out[i, 2] = index


@wp.func
def any_near(grid: wp.uint64, points: wp.array(dtype=wp.vec3), place: wp.vec3, radius: float):
    for j in wp.hash_grid_query(grid, place, radius):
        if wp.length(place - points[j]) <= radius:
            return j
    return -1


def returns(
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    places: wp.array(dtype=wp.vec3),
    radius: float,
    out: wp.array(dtype=int, ndim=2),
):
    i = wp.tid()
    out[i, 0] = any_near(grid, points, places[i], radius)
    for j in wp.hash_grid_query(grid, places[i], radius):
        if wp.length(places[i] - points[j]) <= 0.5 * radius:
            out[i, 1] = j + 1
            return
    out[i, 1] = -1


def nested(
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    places: wp.array(dtype=wp.vec3),
    radius: float,
    out: wp.array(dtype=int, ndim=2),
):
    """Neighbours of neighbours, no further than the fourth of each."""
    i = wp.tid()
    for j in wp.hash_grid_query(grid, places[i], radius):
        if wp.length(places[i] - points[j]) <= radius:
            few = int(0)
            for k in wp.hash_grid_query(grid, points[j], radius):
                if wp.length(points[j] - points[k]) <= radius:
                    out[i, 0] += 1
                    few += 1
                    if few == 4:
                        break
            out[i, 1] += few * j


def ends(
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    places: wp.array(dtype=wp.vec3),
    radius: float,
    out: wp.array(dtype=int, ndim=2),
):
    """Work without further neighbours. One query again and again, and in turns."""
    i = wp.tid()
    for turn in range(3):
        query = wp.hash_grid_query(grid, places[i], radius * float(turn))
        index = int(0)
        found = int(0)
        while True:
            if wp.hash_grid_query_next(query, index):
                if wp.length(places[i] - points[index]) <= radius * float(turn):
                    found += 1
            else:
                out[i, turn] = found + 1
                break


def near(points, places, radius):
    """In float32, as the kernel computes it."""
    d = places[:, None, :] - points[None]
    squared = d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1] + d[..., 2] * d[..., 2]
    return np.sqrt(squared) <= np.float32(radius)


def is_clear(points, places, radius):
    """Places without points at the rim, which may round either way."""
    d = np.linalg.norm(places[:, None, :].astype(np.float64) - points[None], axis=2)
    rims = [radius * factor for factor in (0.5, 1.0, 2.0)]
    return ~np.any([np.abs(d - rim) <= 1e-5 * rim + 1e-12 for rim in rims], axis=(0, 2))


def expected_sums(points, places, radius):
    inside = near(points, places, radius)
    numbers = np.arange(len(points))
    return {1: inside.sum(axis=1), 2: (inside * (numbers * numbers + 1)).sum(axis=1)}


def expected_leaves(points, places, radius):
    count = near(points, places, radius).sum(axis=1)
    return {0: np.minimum(count, 3), 1: np.maximum(count - 3, 0)}


def expected_ends(points, places, radius):
    return {
        turn: near(points, places, np.float32(radius) * np.float32(turn)).sum(axis=1) + 1 if turn else None
        for turn in range(3)
    }


def check_returns(out, points, places, radius, clear):
    for column, factor in ((0, 1.0), (1, 0.5)):
        inside = near(points, places, radius * factor)
        found = out[:, column] - column
        has = inside.any(axis=1)
        none = found == (-1 if column == 0 else -2)
        np.testing.assert_array_equal(none[clear], ~has[clear])
        rows = np.flatnonzero(clear & has)
        assert inside[rows, found[rows]].all()


def check_nested(out, points, places, radius, clear):
    own = near(points, points, radius)
    few = np.minimum(own.sum(axis=1), 4)
    inside = near(points, places, radius)
    # Which of the neighbours is clear is asked of all points.
    clear = clear & is_clear(points, points, radius)[None].repeat(len(places), 0)[inside | True].reshape(
        len(places), -1
    ).all(axis=1)
    np.testing.assert_array_equal(out[clear, 0], (inside * few).sum(axis=1)[clear])
    np.testing.assert_array_equal(out[clear, 1], (inside * few * np.arange(len(points))).sum(axis=1)[clear])


def launch(kernel, grid, points, places, radius):
    out = wp.zeros((len(places), 4), dtype=int)
    p, q = wp.array(points, dtype=wp.vec3), wp.array(places, dtype=wp.vec3)
    wp.launch(kernel, dim=len(places), inputs=[grid.id, p, q, radius], outputs=[out])
    return out.numpy()


# A query that continues is asked item by item.
RUNS = {"sums": 1, "leaves": 1, "returns": 2, "nested": 2, "ends": 3, "of_groups": 1, "of_two_grids": 2}
KERNELS = {}


def kernels_of(function):
    if function not in KERNELS:
        KERNELS[function] = in_lanes(function, RUNS[function.__name__])
    return KERNELS[function]


def by_columns(expected):
    def check(out, points, places, radius, clear):
        for column, values in expected(points, places, radius).items():
            if values is not None:
                np.testing.assert_array_equal(out[clear, column], values[clear])

    return check


@pytest.mark.seed("S-HGR-003", "S-HGR-004")
@pytest.mark.parametrize(
    ("function", "check"),
    [
        (sums, by_columns(expected_sums)),
        (leaves, by_columns(expected_leaves)),
        (returns, check_returns),
        (nested, check_nested),
        (ends, by_columns(expected_ends)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 300),
    dims=st.tuples(*[st.integers(1, 20)] * 3),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    reach=st.floats(0.05, 4.0),
    lanes=st.sampled_from(LANES),
)
def test_loops_are_those_of_brute_force_and_of_one_lane(function, check, seed, count, dims, scale, reach, lanes):
    random = np.random.default_rng(seed)
    points = (random.normal(size=(count, 3)) * scale).astype(np.float32)
    # Also far outside of all points; in no order.
    places = np.concatenate([points[random.permutation(count)[:60]], random.normal(size=(43, 3)) * 3 * scale])
    places = places.astype(np.float32)
    radius = float(np.float32(0.2 * scale * reach))
    grid = wp.HashGrid(*dims)
    grid.build(wp.array(points, dtype=wp.vec3), 0.2 * scale)
    kernels = kernels_of(function)
    found = launch(kernels[lanes], grid, points, places, radius)
    np.testing.assert_array_equal(found, launch(kernels[1], grid, points, places, radius))
    if count:
        check(found, points, places, radius, is_clear(points, places, radius))


def of_groups(
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    groups: wp.array(dtype=int),
    radius: float,
    out: wp.array(dtype=int, ndim=2),
):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, points[i], radius, groups[i]):
        if wp.length(points[i] - points[j]) <= radius:
            out[i, 0] += 1
            out[i, 1] += (groups[j] - groups[i]) * (groups[j] - groups[i])
            if out[i, 0] == 5:
                break


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kinds=st.integers(1, 6),
    dims=st.tuples(*[st.integers(1, 12)] * 3),
    lanes=st.sampled_from(LANES),
)
def test_points_in_groups(seed, kinds, dims, lanes):
    random = np.random.default_rng(seed)
    points = random.random((300, 3)).astype(np.float32)
    groups = random.integers(-kinds, kinds, 300).astype(np.int32)
    radius = float(np.float32(0.17))
    p, g = wp.array(points, dtype=wp.vec3), wp.array(groups)
    grid = wp.HashGrid(*dims)
    grid.build(p, 0.15, groups=g)
    found = {}
    for n in (lanes, 1):
        out = wp.zeros((300, 4), dtype=int)
        wp.launch(kernels_of(of_groups)[n], dim=300, inputs=[grid.id, p, g, radius], outputs=[out])
        found[n] = out.numpy()
    np.testing.assert_array_equal(found[lanes], found[1])
    clear = is_clear(points, points, radius)
    inside = near(points, points, radius) & (groups[:, None] == groups[None])
    np.testing.assert_array_equal(found[lanes][clear, 0], np.minimum(inside.sum(axis=1), 5)[clear])
    assert (found[lanes][:, 1] == 0).all()


def of_two_grids(
    a: wp.uint64,
    b: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    others: wp.array(dtype=wp.vec3),
    radius: float,
    out: wp.array(dtype=float),
):
    i = wp.tid()
    total = float(0.0)
    for j in wp.hash_grid_query(a, points[i], radius):
        total += wp.max(radius - wp.length(points[i] - points[j]), 0.0)
    for j in wp.hash_grid_query(b, points[i], radius):
        total -= 2.0 * wp.max(radius - wp.length(points[i] - others[j]), 0.0)
    out[i] = total


def two_grids(n=400):
    random = np.random.default_rng(5)
    points, others = random.random((2, n, 3)).astype(np.float32)
    grids = [wp.HashGrid(8, 9, 10), wp.HashGrid(5, 5, 5)]
    for grid, of in zip(grids, (points, others), strict=True):
        grid.build(wp.array(of, dtype=wp.vec3), 0.2)
    return points, others, grids


def depths(points, others, radius):
    """In float64, and the derivative along a direction by which `points` move."""
    d = points[:, None].astype(np.float64) - others[None]
    r = np.linalg.norm(d, axis=2)
    inside = r < radius
    directions = np.divide(d, r[..., None], out=np.zeros_like(d), where=r[..., None] > 0)
    return np.where(inside, radius - r, 0).sum(axis=1), -np.where(inside[..., None], directions, 0)


@pytest.mark.parametrize("lanes", LANES)
def test_several_grids_in_one_kernel(lanes):
    points, others, grids = two_grids()
    out = wp.zeros(len(points), dtype=float)
    inputs = [*(grid.id for grid in grids), wp.array(points, dtype=wp.vec3), wp.array(others, dtype=wp.vec3), 0.15]
    wp.launch(kernels_of(of_two_grids)[lanes], dim=len(points), inputs=inputs, outputs=[out])
    expected = depths(points, points, 0.15)[0] - 2 * depths(points, others, 0.15)[0]
    assert np.abs(expected).max() > 0.3
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lanes", LANES)
def test_gradients_are_those_of_finite_sums(lanes):
    points, others, grids = two_grids()
    p = wp.array(points, dtype=wp.vec3, requires_grad=True)
    q = wp.array(others, dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(len(points), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        inputs = [*(grid.id for grid in grids), p, q, 0.15]
        wp.launch(kernels_of(of_two_grids)[lanes], dim=len(points), inputs=inputs, outputs=[out])
    weights = np.random.default_rng(6).random(len(points)).astype(np.float32)
    tape.backward(grads={out: wp.array(weights)})
    own, far = depths(points, points, 0.15)[1], depths(points, others, 0.15)[1]
    weighted = own * weights[:, None, None]
    expected = weighted.sum(axis=1) - weighted.sum(axis=0) - 2 * (far * weights[:, None, None]).sum(axis=1)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(q.grad.numpy(), 2 * (far * weights[:, None, None]).sum(axis=0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("lanes", LANES)
def test_forward_mode_goes_through_the_same_loops(lanes):
    points, others, grids = two_grids()
    p, q = wp.array(points, dtype=wp.vec3), wp.array(others, dtype=wp.vec3)
    out, along = wp.zeros(len(points), dtype=float), wp.zeros(len(points), dtype=float)
    moved = np.random.default_rng(8).normal(size=points.shape).astype(np.float32)
    inputs = [*(grid.id for grid in grids), p, q, 0.15]
    tangents = [None, None, wp.array(moved, dtype=wp.vec3), None, None]
    wp.jvp(
        kernels_of(of_two_grids)[lanes],
        dim=len(points),
        inputs=inputs,
        outputs=[out],
        input_tangents=tangents,
        output_tangents=[along],
    )
    own, far = depths(points, points, 0.15)[1], depths(points, others, 0.15)[1]
    expected = (own * (moved[:, None] - moved[None])).sum(axis=(1, 2)) - 2 * (far * moved[:, None]).sum(axis=(1, 2))
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(along.numpy(), expected, rtol=1e-3, atol=1e-3)


# ---- adjoints ----


@wp.func
def weight(d: wp.vec3d, radius: wp.float64):
    s = radius * radius - wp.dot(d, d)
    return wp.where(s > wp.float64(0.0), s * s, wp.float64(0.0))


def carries(grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, out: wp.array(dtype=wp.float64)):
    """Each item starts with the values that the previous one left."""
    i = wp.tid()
    total = wp.float64(0.1)
    for j in wp.hash_grid_query(grid, x[i], radius):
        d = x[i] - x[j]
        total = total * (wp.float64(1.0) + weight(d, radius)) + wp.sin(total) * weight(d, radius)
    out[i] = total


def steps_after(grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, out: wp.array(dtype=wp.float64)):
    """The number of the last item is used behind the loop; one query is gone through twice."""
    i = wp.tid()
    query = wp.hash_grid_query(grid, x[i], radius)
    index = int(0)
    total = wp.float64(0.0)
    few = int(0)
    while wp.hash_grid_query_next(query, index):
        total += weight(x[i] - x[index], radius) * wp.float64(1 + few)
        few = (few + 1) % 3
    out[i] = total + wp.dot(x[index], x[index])


def breaks(grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    total = wp.float64(0.0)
    for j in wp.hash_grid_query(grid, x[i], radius):
        total += weight(x[i] - x[j], radius) * wp.exp(total)
        if total > wp.float64(0.05):
            break
    out[i] = total


def of_neighbours(grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    total = wp.float64(0.0)
    for j in wp.hash_grid_query(grid, x[i], radius):
        inner = wp.float64(1.0)
        for k in wp.hash_grid_query(grid, x[j], radius):
            inner += weight(x[j] - x[k], radius) * inner
        total += weight(x[i] - x[j], radius) * inner * inner
    out[i] = total


def adds_to_neighbours(
    grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, out: wp.array(dtype=wp.float64)
):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, x[i], radius):
        wp.atomic_add(out, j, weight(x[i] - x[j], radius) * x[i][0])


def counts_atomics(grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, out: wp.array(dtype=wp.float64)):
    """The adjoint has to know what each atomic gave: the greatest weight takes the gradient."""
    i = wp.tid()
    for j in wp.hash_grid_query(grid, x[i], radius):
        if j != i:
            wp.atomic_max(out, j, weight(x[i] - x[j], radius))


def brute(name, x, radius, order):
    """Of one array of places, in the order in which the query gives items: `order[i]`."""
    n = len(x)

    def w(i, j):
        s = radius * radius - ((x[i] - x[j]) ** 2).sum()
        return s * s if s > 0 else 0.0

    out = np.zeros(n)
    for i in range(n):
        if name == "carries":
            out[i] = 0.1
            for j in order[i]:
                out[i] = out[i] * (1 + w(i, j)) + np.sin(out[i]) * w(i, j)
        elif name == "steps_after":
            out[i] = sum(w(i, j) * (1 + k % 3) for k, j in enumerate(order[i])) + (x[order[i][-1]] ** 2).sum()
        elif name == "breaks":
            for j in order[i]:
                out[i] += w(i, j) * np.exp(out[i])
                if out[i] > 0.05:
                    break
        elif name == "of_neighbours":
            for j in order[i]:
                inner = 1.0
                for k in order[j]:
                    inner += w(j, k) * inner
                out[i] += w(i, j) * inner * inner
        elif name == "adds_to_neighbours":
            for j in order[i]:
                out[j] += w(i, j) * x[i][0]
        else:
            for j in order[i]:
                if j != i:
                    out[j] = max(out[j], w(i, j))
    return out


@wp.kernel
def note_order(
    grid: wp.uint64,
    x: wp.array(dtype=wp.vec3d),
    radius: wp.float64,
    n: wp.array(dtype=int),
    items: wp.array2d(dtype=int),
):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, x[i], radius):
        items[i, n[i]] = j
        n[i] += 1


REVERSED = [carries, steps_after, breaks, of_neighbours, adds_to_neighbours, counts_atomics]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("function", REVERSED, ids=lambda function: function.__name__)
def test_gradients_are_those_of_differences_of_brute_force(function, lanes):
    kernel = wp.kernel(function, module_options={"lanes": lanes}, module="unique")
    x, radius, count = np.random.default_rng(21).random((70, 3)), 0.4, 70
    places = wp.array(x, dtype=wp.vec3d, requires_grad=True)
    grid = wp.HashGrid(5, 4, 6, dtype=wp.float64)
    grid.build(places, 0.2)
    n, items = wp.zeros(count, dtype=int), wp.zeros((count, count), dtype=int)
    wp.launch(note_order, dim=count, inputs=[grid.id, places, wp.float64(radius)], outputs=[n, items])
    order = [items.numpy()[i, : n.numpy()[i]] for i in range(count)]
    out = wp.zeros(count, dtype=wp.float64, requires_grad=True)
    weights = np.random.default_rng(22).standard_normal(count)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=count, inputs=[grid.id, places, wp.float64(radius)], outputs=[out])
    np.testing.assert_allclose(out.numpy(), brute(function.__name__, x, radius, order), rtol=1e-12)
    tape.backward(grads={out: wp.array(weights, dtype=wp.float64)})
    h, found = 1e-6, places.grad.numpy()
    assert np.abs(found).max() > 1e-2
    for seed in range(4):
        along = np.random.default_rng(seed).standard_normal(x.shape)
        ahead, back = (brute(function.__name__, x + step * along, radius, order) for step in (h, -h))
        np.testing.assert_allclose((found * along).sum(), ((ahead - back) * weights).sum() / (2 * h), rtol=1e-5)

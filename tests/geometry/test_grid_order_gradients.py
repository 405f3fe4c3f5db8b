"""Gradients of launches whose threads run in the order of a hash grid."""

import numpy as np
import pytest
import warp as wp
from grid_launches import CELLS, COUNT, RADIUS, f64, fresh, new_grid, pairs, shuffled
from scipy.spatial import cKDTree

pytestmark = [
    pytest.mark.cpu_only("is about the order of threads that launches on the CPU take from a grid"),
    pytest.mark.usefixtures("usual_options"),
]


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
    """If the first query only counts, the adjoint does not ask it; its order may be used all the same."""
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
    """Additions to gradients of neighbours are summed up in the order of the grid, if there is a gradient."""
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

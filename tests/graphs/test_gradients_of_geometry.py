"""Backward passes inside of captures, of launches that look into meshes, BVHs, hash grids and volumes. Each launch of a
graph has to give the gradients that the same work gives without one."""

import gc

import numpy as np
import pytest
import warp as wp

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.own_launches("objects that graphs change; launches run in graphs"),
]


@pytest.fixture(params=["cpu", "cuda:0"], autouse=True)
def device(request):
    with wp.ScopedDevice(request.param):
        yield request.param


@wp.kernel
def squared_distance(mesh: wp.uint64, at: wp.array[wp.vec3], out: wp.array[float]):
    found = wp.mesh_query_point_no_sign(mesh, at[wp.tid()], 100.0)
    nearest = wp.mesh_eval_position(mesh, found.face, found.u, found.v)
    wp.atomic_add(out, 0, wp.length_sq(at[wp.tid()] - nearest))


@wp.kernel
def shift(points: wp.array[wp.vec3], by: wp.array[float], moved: wp.array[wp.vec3]):
    i = wp.tid()
    moved[i] = points[i] + wp.vec3(0.0, 0.1 * float(i), 1.0) * by[0]


@wp.kernel
def box_weights(bvh: wp.uint64, at: wp.array[wp.vec3], weight: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    for j in wp.bvh_query_aabb(bvh, at[i] - wp.vec3(0.2), at[i] + wp.vec3(0.2)):
        wp.atomic_add(out, 0, weight[j] * weight[j] * float(i + 1))


@wp.kernel
def attraction(grid: wp.uint64, points: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, points[i], 0.3):
        wp.atomic_add(out, 0, wp.max(0.0, 0.09 - wp.length_sq(points[j] - points[i])))


@wp.kernel
def fill(volume: wp.uint64, factor: wp.array[float]):
    i, j, k = wp.tid()
    wp.volume_store(volume, i, j, k, factor[0] * float(i * i + j + 3 * k))


@wp.kernel
def sample(volume: wp.uint64, at: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(out, 0, wp.volume_sample_f(volume, at[i], wp.Volume.LINEAR))


def ball(rng, count=40):
    points = rng.normal(size=(3 * count, 3)).astype(np.float32)
    return wp.Mesh(wp.array(points, dtype=wp.vec3, requires_grad=True), wp.array(np.arange(3 * count), dtype=int))


def vectors(rng, count):
    return wp.array(rng.random((count, 3)).astype(np.float32), dtype=wp.vec3, requires_grad=True)


def go_back(mesh, at, loss):
    """One launch and its backward pass."""
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(squared_distance, 20, [mesh.id, at, loss])
    tape.backward(loss)


def check(step, arrays, set_up, rounds=3):
    """A graph of step() and step() itself, by turns: the gradients of `arrays` have to agree."""
    set_up(0)
    with wp.ScopedCapture() as capture:
        step()
    for number in range(1, rounds + 1):
        found = []
        for run in (step, lambda: wp.capture_launch(capture.graph)):
            set_up(number)
            for array in arrays:
                array.grad.zero_()
            run()
            found.append([array.grad.numpy().copy() for array in arrays])
        for expected, actual in zip(*found, strict=True):
            assert np.isfinite(expected).all() and np.abs(expected).max() > 0
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    return capture.graph


def test_a_mesh_that_the_capture_does_not_change():
    rng = np.random.default_rng(1)
    mesh, at, loss = ball(rng), vectors(rng, 20), wp.zeros(1, requires_grad=True)
    first = mesh.points.numpy().copy()

    def set_up(number):
        mesh.points.assign(first * (1.0 + number))
        mesh.refit()

    check(lambda: go_back(mesh, at, loss), [at, mesh.points], set_up)


def test_a_mesh_that_moves_in_the_capture():
    rng = np.random.default_rng(2)
    mesh, at, loss = ball(rng), vectors(rng, 20), wp.zeros(1, requires_grad=True)
    first = mesh.points.numpy().copy()
    by, start = wp.array([0.5], dtype=float, requires_grad=True), wp.clone(mesh.points, requires_grad=True)

    def set_up(number):
        start.assign(first)
        mesh.points.assign(first * 3.0)
        mesh.refit()
        by.assign([0.5 * number])

    def step():
        loss.zero_()
        with wp.Tape() as tape:
            for _ in range(3):
                wp.launch(squared_distance, 20, [mesh.id, at, loss])
                wp.launch(shift, len(start), [start, by, mesh.points])
                mesh.refit()
            wp.launch(squared_distance, 20, [mesh.id, at, loss])
        tape.backward(loss)

    check(step, [at, by, start, mesh.points], set_up)


def test_a_tree_that_is_built_again_in_the_capture():
    rng = np.random.default_rng(3)
    n = 200
    low, at = vectors(rng, n), vectors(rng, 10)
    high = wp.array(low.numpy() + np.float32(0.02), dtype=wp.vec3)
    bvh = wp.Bvh(low, high, constructor="lbvh")
    weight, loss = wp.array(rng.random(n), dtype=float, requires_grad=True), wp.zeros(1, requires_grad=True)
    others = [wp.array(a.numpy() * 0.5, dtype=wp.vec3) for a in (low, high)]
    first = low.numpy().copy()

    def set_up(number):
        low.assign(first + np.float32(0.1 * number))
        high.assign(first + np.float32(0.1 * number + 0.02))
        bvh.rebuild()

    def step():
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(box_weights, 10, [bvh.id, at, weight, loss])
        wp.copy(low, others[0])
        wp.copy(high, others[1])
        bvh.rebuild()
        with tape:
            wp.launch(box_weights, 10, [bvh.id, at, weight, loss])
        tape.backward(loss)

    check(step, [weight], set_up)


def test_a_grid_that_the_capture_builds():
    rng = np.random.default_rng(4)
    points, loss = vectors(rng, 100), wp.zeros(1, requires_grad=True)
    grid = wp.HashGrid(8, 8, 8)
    first = points.numpy().copy()

    def step():
        loss.zero_()
        grid.build(points, 0.3)
        with wp.Tape() as tape:
            wp.launch(attraction, 100, [grid.id, points, loss])
        tape.backward(loss)

    check(step, [points], lambda number: points.assign(first * np.float32(1.0 + 0.3 * number)))


@pytest.mark.parametrize("groups", [False, True])
def test_a_grid_that_is_built_again_before_the_backward_pass(groups):
    rng = np.random.default_rng(5)
    sets = [vectors(rng, count) for count in (100, 60, 100)]
    loss, others = wp.zeros(1, requires_grad=True), wp.array(rng.random((150, 3)) * 0.1, dtype=wp.vec3)
    of_group = wp.array(np.arange(150) % 3, dtype=int)
    first = [points.numpy().copy() for points in sets]
    grid = wp.HashGrid(8, 8, 8)

    def build(points):
        grid.build(points, 0.3, groups=of_group[: len(points)] if groups else None)

    build(others)

    def step():
        loss.zero_()
        tape = wp.Tape()
        for points in sets:
            build(points)
            with tape:
                wp.launch(attraction, len(points), [grid.id, points, loss])
        build(others)
        tape.backward(loss)

    def set_up(number):
        for points, numbers in zip(sets, first, strict=True):
            points.assign(numbers * np.float32(1.0 + 0.2 * number))
        if number == 2:  # a build outside of the graph, of more points than before
            grid.build(wp.array(rng.random((400, 3)), dtype=wp.vec3), 0.1)

    check(step, sets, set_up)


def test_a_grid_from_before_the_capture_that_is_built_again_in_it(device):
    rng = np.random.default_rng(5)
    points, loss = vectors(rng, 100), wp.zeros(1, requires_grad=True)
    others = wp.array(rng.random((100, 3)) * 0.1, dtype=wp.vec3)
    grid = wp.HashGrid(8, 8, 8)
    first = points.numpy().copy()

    def step():
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(attraction, 100, [grid.id, points, loss])
        grid.build(others, 0.3)
        tape.backward(loss)

    def set_up(number):
        points.assign(first * np.float32(1.0 + 0.3 * number))
        grid.build(points, 0.3)

    if device == "cpu":
        check(step, [points], set_up)
        return
    set_up(0)
    with (
        wp.ScopedCapture(),
        pytest.raises(RuntimeError, match=r"builds a grid again that kernel 'attraction' has looked into.*help: "),
    ):
        step()
    set_up(1)
    step()
    assert np.isfinite(points.grad.numpy()).all()


def test_a_volume_that_the_capture_stores_into(device):
    rng = np.random.default_rng(6)
    at = wp.array(rng.random((10, 3)) * 6.0, dtype=wp.vec3, requires_grad=True)
    loss, volume = wp.zeros(1, requires_grad=True), wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0)
    factors = [wp.array([f], dtype=float) for f in (1.0, -2.5)]

    def step():
        loss.zero_()
        wp.launch(fill, (8, 8, 8), [volume.id, factors[0]])
        tape = wp.Tape()
        for factor in reversed(factors):
            with tape:
                wp.launch(sample, 10, [volume.id, at, loss])
            wp.launch(fill, (8, 8, 8), [volume.id, factor])
        tape.backward(loss)

    check(step, [at], lambda number: factors[0].assign([1.0 + number]))


def test_objects_and_tapes_may_go_before_the_graph():
    rng = np.random.default_rng(7)
    mesh, at, loss = ball(rng), vectors(rng, 20), wp.zeros(1, requires_grad=True)
    points, first = mesh.points, mesh.points.numpy().copy()

    def step(mesh):
        by, moved = wp.array([0.25], dtype=float), wp.empty_like(mesh.points, requires_grad=True)
        loss.zero_()
        mesh.refit()
        with wp.Tape() as tape:
            wp.launch(squared_distance, 20, [mesh.id, at, loss])
            wp.launch(shift, len(mesh.points), [mesh.points, by, moved])
            wp.copy(mesh.points, moved)
            mesh.refit()
            wp.launch(squared_distance, 20, [mesh.id, at, loss])
        tape.backward(loss)

    step(mesh)
    expected = at.grad.numpy().copy()
    with wp.ScopedCapture() as capture:
        step(mesh)
    del mesh
    gc.collect()
    junk = [wp.full(5000, 3.0, dtype=float) for _ in range(20)]
    for _ in range(2):
        points.assign(first)
        at.grad.zero_()
        wp.capture_launch(capture.graph)
        np.testing.assert_allclose(at.grad.numpy(), expected, rtol=1e-4, atol=1e-5)
    del junk


def test_a_tree_that_another_tape_keeps_is_followed():
    rng = np.random.default_rng(8)
    mesh, at, loss = ball(rng), vectors(rng, 20), wp.zeros(1, requires_grad=True)
    first = mesh.points.numpy().copy()
    tapes = []

    def set_up(number):
        with wp.Tape() as tape:
            wp.launch(squared_distance, 20, [mesh.id, at, loss])
        tapes.append(tape)  # keeps the tree, so that the refit makes another
        mesh.points.assign(first * (1.0 + number))
        mesh.refit()

    check(lambda: go_back(mesh, at, loss), [at, mesh.points], set_up)


def test_a_graph_inside_of_another():
    rng = np.random.default_rng(9)
    mesh, at, loss = ball(rng), vectors(rng, 20), wp.zeros(1, requires_grad=True)
    with wp.ScopedCapture() as capture:
        go_back(mesh, at, loss)
    with wp.ScopedCapture() as outer:
        wp.capture_launch(capture.graph)
    found = []
    for graph in (capture.graph, outer.graph):
        at.grad.zero_()
        mesh.points.assign(mesh.points.numpy() * 0.5)
        mesh.refit()
        wp.capture_launch(graph)
        found.append(at.grad.numpy().copy())
        at.grad.zero_()
        go_back(mesh, at, loss)
        np.testing.assert_allclose(found[-1], at.grad.numpy(), rtol=1e-4, atol=1e-5)


# ---- forward mode and second derivatives ----


def compare(work, set_up, rounds=3):
    """The arrays that work() gives, in a graph and without one."""
    set_up(0)
    with wp.ScopedCapture() as capture:
        captured = work()
    for number in range(1, rounds + 1):
        set_up(number)
        expected = [one.numpy().copy() for one in work()]
        for one in captured:
            one.fill_(wp.nan)
        set_up(number)
        wp.capture_launch(capture.graph)
        for one, numbers in zip(captured, expected, strict=True):
            assert np.isfinite(numbers).all() and np.abs(numbers).max() > 0
            np.testing.assert_allclose(one.numpy(), numbers, rtol=1e-4, atol=1e-5)


@pytest.fixture
def moved_ball():
    rng = np.random.default_rng(11)
    mesh, at = ball(rng), vectors(rng, 20)
    corners, first = wp.clone(mesh.points, requires_grad=True), mesh.points.numpy().copy()

    def set_up(number):
        corners.assign(first * (1.0 + number))
        mesh.points.assign(first * (2.0 + number))
        mesh.refit()

    def function(points, corners):
        out = wp.zeros(1, requires_grad=True)
        wp.copy(mesh.points, corners)
        mesh.refit()
        wp.launch(squared_distance, 20, [mesh.id, points, out])
        return out

    along = [wp.array(rng.normal(size=(len(one), 3)), dtype=wp.vec3) for one in (at, corners)]
    return mesh, function, [at, corners], along, set_up


def test_products_with_hessians_of_a_kernel_that_looks_into_a_mesh(moved_ball):
    mesh, _, (at, _), (along, _), set_up = moved_ball

    def work():
        out = wp.zeros(1, requires_grad=True)
        found = wp.autograd.hvp(squared_distance, dim=20, inputs=[mesh.id, at], outputs=[out], vectors=[None, along])
        return [one for one in found if one is not None]

    compare(work, set_up)


@pytest.mark.parametrize("moves", [False, True])
def test_products_with_hessians_of_a_function_with_a_mesh_that_is_refitted(moved_ball, moves):
    _, function, inputs, (along, of_corners), set_up = moved_ball
    vectors = [along, of_corners if moves else None]
    compare(lambda: wp.autograd.hvp(function, inputs=inputs, vectors=vectors), set_up)


def test_forward_mode_of_a_mesh_that_moves(moved_ball):
    _, function, inputs, along, set_up = moved_ball
    compare(lambda: list(wp.jvp(function, inputs=inputs, input_tangents=along)), set_up)

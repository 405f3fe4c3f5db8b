"""Tapes over meshes, BVHs, hash grids and volumes that change between the launch and the way back: gradients against
differences in float64, and against programs that give each step objects of its own."""

import numpy as np
import pytest
import warp as wp
from brute_force import sphere
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.cpu_only("geometry comes to GPUs later")

f64 = wp.float64


def ball(rows=5, columns=6):
    """Closed, counter-clockwise from outside, and not quite round."""
    points, faces = sphere(rows, columns)
    return points + np.random.default_rng(1).standard_normal(points.shape) * 0.02, faces.reshape(-1)


POINTS, FACES = ball()


@wp.kernel
def move(points: wp.array(dtype=wp.vec3d), speed: wp.array(dtype=wp.vec3d), dt: wp.float64):
    i = wp.tid()
    p = points[i]
    points[i] = p + dt * (speed[i] + wp.cross(p, speed[i]) * wp.float64(0.3))


@wp.kernel
def move_to(
    points: wp.array(dtype=wp.vec3d), speed: wp.array(dtype=wp.vec3d), dt: wp.float64, moved: wp.array(dtype=wp.vec3d)
):
    i = wp.tid()
    p = points[i]
    moved[i] = p + dt * (speed[i] + wp.cross(p, speed[i]) * wp.float64(0.3))


@wp.kernel
def look(mesh: wp.uint64, place: wp.array(dtype=wp.vec3d), weight: wp.float64, out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    p = place[i]
    q = wp.mesh_query_point(mesh, p, wp.float64(1e6))
    d = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - p) * q.sign
    value = d * d * d + d
    r = wp.mesh_query_ray(mesh, p, -p, wp.float64(1e6))
    if r.result:
        value += r.t * (wp.float64(1.0) + r.u * wp.float64(2.0) - r.v) + wp.dot(r.normal, p)
    v = wp.mesh_eval_velocity(mesh, q.face, q.u, q.v)
    wp.atomic_add(out, 0, weight * (value + wp.dot(v, v)))


@wp.kernel
def follow(mesh: wp.uint64, place: wp.array(dtype=wp.vec3d), next_place: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, place[i], wp.float64(1e6))
    at = wp.mesh_eval_position(mesh, q.face, q.u, q.v)
    next_place[i] = place[i] + (at - place[i]) * wp.float64(0.2)


def vectors(values, requires_grad=True):
    return wp.array(values, dtype=wp.vec3d, requires_grad=requires_grad)


def given_arrays(seed=0, queries=25):
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal((queries, 3))
    places = direction / np.linalg.norm(direction, axis=1)[:, None] * rng.uniform(1.4, 2.0, (queries, 1))
    return {"points": POINTS.copy(), "place": places, "speed": rng.standard_normal(POINTS.shape) * 0.4}


def rollout(given_values, steps=3, own_meshes=False, change=None):
    """A mesh whose points a kernel moves in place, each step with queries; or a mesh and points for each step. Gives
    the arrays, the loss, the tape and the meshes."""
    start = {name: vectors(value) for name, value in given_values.items()}
    out = wp.zeros(1, dtype=f64, requires_grad=True)
    faces = wp.array(FACES, dtype=int)
    meshes = []
    tape = wp.Tape()
    with tape:
        points, place = vectors(np.zeros_like(POINTS)), vectors(np.zeros_like(given_values["place"]))
        wp.copy(points, start["points"])
        wp.copy(place, start["place"])
        mesh = wp.Mesh(points, faces, start["speed"])
        for step in range(steps):
            if own_meshes:
                moved, after = vectors(np.zeros_like(POINTS)), vectors(np.zeros_like(given_values["place"]))
                wp.launch(move_to, dim=len(POINTS), inputs=[points, start["speed"], f64(0.2), moved])
                points, mesh = moved, wp.Mesh(moved, faces, start["speed"])
                wp.launch(follow, dim=len(place), inputs=[mesh.id, place, after])
                place = after
            else:
                wp.launch(move, dim=len(POINTS), inputs=[points, start["speed"], f64(0.2)])
                mesh.refit()
                after = vectors(np.zeros_like(given_values["place"]))
                wp.launch(follow, dim=len(place), inputs=[mesh.id, place, after])
                wp.copy(place, after)
            wp.launch(look, dim=len(place), inputs=[mesh.id, place, f64(1.0 + step), out])
            meshes.append(mesh)
            if change:
                change(mesh)
    return start, out, tape, meshes


def gradients(start):
    return {name: array.grad.numpy().copy() for name, array in start.items()}


def check_against_differences(value_of, given_values, gradient, count=10, seed=3, at_least=5):
    """`value_of(values)` along directions in which nothing but smooth things happen."""
    rng, checked = np.random.default_rng(seed), 0
    for _ in range(count):
        along = {name: rng.standard_normal(value.shape) for name, value in given_values.items()}
        h = 1e-6
        values = [
            value_of({name: value + k * h * along[name] for name, value in given_values.items()})
            for k in (-2, -1, 1, 2)
        ]
        near, far = (values[2] - values[1]) / (2 * h), (values[3] - values[0]) / (4 * h)
        if abs(near - far) > 1e-5 * max(1.0, abs(near)):
            continue  # another face was found
        checked += 1
        expected = sum((gradient[name] * along[name]).sum() for name in given_values)
        assert abs(expected - near) < 2e-5 * max(1.0, abs(near))
    assert checked >= at_least


def assert_equal_gradients(one, other, rtol=1e-9):
    for name in one:
        assert np.abs(other[name]).max() > 1e-3
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, atol=1e-10, err_msg=name)


# ---- meshes ----


def test_a_mesh_that_moves_in_place_has_the_gradients_of_differences():
    values = given_arrays()
    start, out, tape, _ = rollout(values)
    tape.backward(out)
    check_against_differences(lambda v: rollout(v)[1].numpy()[0], values, gradients(start))


def test_a_mesh_that_moves_in_place_has_the_gradients_of_a_mesh_for_each_step():
    values = given_arrays(1)
    start, out, tape, _ = rollout(values, steps=5)
    own, own_out, own_tape, _ = rollout(values, steps=5, own_meshes=True)
    np.testing.assert_allclose(out.numpy(), own_out.numpy(), rtol=1e-13)
    tape.backward(out)
    own_tape.backward(own_out)
    assert_equal_gradients(gradients(start), gradients(own))
    # Once more, and the same again after another recording on the same tape.
    once = gradients(start)
    tape.zero()
    tape.backward(out)
    assert_equal_gradients(gradients(start), once, rtol=1e-12)


def test_meshes_that_are_gone_and_changed_before_the_way_back():
    values = given_arrays(2)
    start, out, tape, meshes = rollout(values)
    tape.backward(out)
    expected = gradients(start)

    start, out, tape, meshes = rollout(values)
    meshes[0].points = vectors(np.zeros_like(POINTS))
    meshes[0].velocities = None
    meshes[0].refit()
    meshes.clear()
    tape.backward(out)
    assert_equal_gradients(gradients(start), expected, rtol=1e-12)


def test_queries_between_a_move_and_its_refit():
    """The tree is that of the last refit, the points are the present ones."""

    def program(values):
        start = {name: vectors(value) for name, value in values.items()}
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        with wp.Tape() as tape:
            points = vectors(np.zeros_like(POINTS))
            wp.copy(points, start["points"])
            mesh = wp.Mesh(points, wp.array(FACES, dtype=int), start["speed"])
            for step in range(3):
                wp.launch(move, dim=len(POINTS), inputs=[points, start["speed"], f64(0.02)])
                wp.launch(look, dim=len(start["place"]), inputs=[mesh.id, start["place"], f64(1.0), out])
                if step == 1:
                    mesh.refit()
                    wp.launch(look, dim=len(start["place"]), inputs=[mesh.id, start["place"], f64(0.5), out])
        return start, out, tape

    values = given_arrays(4)
    start, out, tape = program(values)
    tape.backward(out)
    check_against_differences(lambda v: program(v)[1].numpy()[0], values, gradients(start))


def test_points_of_each_step_are_assigned():
    def program(values, assigns):
        start = {name: vectors(value) for name, value in values.items()}
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        faces = wp.array(FACES, dtype=int)
        with wp.Tape() as tape:
            points = start["points"]
            mesh = wp.Mesh(points, faces, start["speed"])
            for step in range(4):
                moved = vectors(np.zeros_like(POINTS))
                wp.launch(move_to, dim=len(POINTS), inputs=[points, start["speed"], f64(0.2), moved])
                points = moved
                if assigns:
                    mesh.points = points
                else:
                    mesh = wp.Mesh(points, faces, start["speed"])
                wp.launch(look, dim=len(start["place"]), inputs=[mesh.id, start["place"], f64(1.0 + step), out])
        return start, out, tape

    values = given_arrays(5)
    start, out, tape = program(values, True)
    own, own_out, own_tape = program(values, False)
    tape.backward(out)
    own_tape.backward(own_out)
    assert_equal_gradients(gradients(start), gradients(own))
    check_against_differences(lambda v: program(v, True)[1].numpy()[0], values, gradients(start))


OPERATIONS = ["move", "copy", "assign", "velocities", "refit", "look", "follow", "look"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(OPERATIONS), min_size=3, max_size=12), st.integers(0, 1000))
def test_random_programs(operations, seed):
    """On one mesh, and with new arrays and a new mesh after every change."""
    values = given_arrays(seed, queries=6)
    other = np.random.default_rng(seed + 1).permutation(POINTS) * 0.8
    results = []
    for own in (False, True):
        start = {name: vectors(value) for name, value in values.items()}
        start["other"] = vectors(other)
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        faces = wp.array(FACES, dtype=int)
        with wp.Tape() as tape:
            points, place, velocities = (vectors(np.zeros_like(a)) for a in (POINTS, values["place"], POINTS))
            wp.copy(points, start["points"])
            wp.copy(place, start["place"])
            wp.copy(velocities, start["speed"])
            mesh = wp.Mesh(points, faces, velocities)
            for operation in [*operations, "look"]:
                if operation == "move":
                    if own:
                        points, former = vectors(np.zeros_like(POINTS)), points
                        wp.launch(move_to, dim=len(POINTS), inputs=[former, start["speed"], f64(0.1), points])
                        mesh = wp.Mesh(points, faces, velocities)
                    else:
                        wp.launch(move, dim=len(POINTS), inputs=[points, start["speed"], f64(0.1)])
                        mesh.refit()
                elif operation in ("copy", "assign"):
                    if own or operation == "assign":
                        points = vectors(np.zeros_like(POINTS))
                    wp.copy(points, start["other"])
                    if own:
                        mesh = wp.Mesh(points, faces, velocities)
                    elif operation == "assign":
                        mesh.points = points
                    else:
                        mesh.refit()
                elif operation == "velocities":
                    if own:
                        velocities = vectors(np.zeros_like(POINTS))
                        wp.copy(velocities, start["other"])
                        mesh = wp.Mesh(points, faces, velocities)
                    else:
                        wp.copy(velocities, start["other"])
                elif operation == "refit":
                    mesh.refit()
                elif operation == "follow":
                    after = vectors(np.zeros_like(values["place"]))
                    wp.launch(follow, dim=6, inputs=[mesh.id, place, after])
                    if own:
                        place = after
                    else:
                        wp.copy(place, after)
                else:
                    wp.launch(look, dim=6, inputs=[mesh.id, place, f64(1.0), out])
        tape.backward(out)
        results.append((out.numpy()[0], gradients(start)))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    for name in results[0][1]:
        np.testing.assert_allclose(results[0][1][name], results[1][1][name], rtol=1e-8, atol=1e-9, err_msg=name)


def test_a_write_that_the_tape_does_not_see_is_an_error():
    values = given_arrays(6)
    start, out, tape, meshes = rollout(values)
    meshes[0].points.assign(POINTS * 2.0)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(out)

    # Also where it came between two launches, and the later one overwrote it.
    def write(mesh):
        tape = wp._weft.active_tape()
        wp._weft.set_active_tape(None)
        mesh.points.assign(POINTS * 2.0)
        wp._weft.set_active_tape(tape)

    start, out, tape, meshes = rollout(values, change=write)
    with pytest.raises(RuntimeError, match=r"outside of the tape"):
        tape.backward(out)


def test_a_gradient_that_comes_late():
    """Nothing but the mesh has one when the launch is recorded."""
    values = given_arrays(7)
    points, place = vectors(values["points"]), vectors(values["place"], False)
    for is_late in (True, False):
        out = wp.zeros(1, dtype=f64, requires_grad=not is_late)
        mesh = wp.Mesh(points, wp.array(FACES, dtype=int), vectors(values["speed"], False))
        with wp.Tape() as tape:
            wp.launch(look, dim=len(place), inputs=[mesh.id, place, f64(1.0), out])
            wp.launch(move, dim=len(points), inputs=[mesh.points, mesh.velocities, f64(0.1)])
            mesh.refit()
        tape.backward(grads={out: wp.ones(1, dtype=f64)})
        gradient = points.grad.numpy().copy()
        assert np.abs(gradient).max() > 0.1
        if is_late:
            late = gradient
        points.grad.zero_()
        points.assign(values["points"])
    np.testing.assert_allclose(late, gradient, rtol=1e-12)


@pytest.mark.parametrize("changes", [False, True])
def test_gradients_that_come_when_the_mesh_has_changed(changes):
    """Where nothing has one, nothing is kept."""
    values = given_arrays(8)
    place, out = vectors(values["place"], False), wp.zeros(1, dtype=f64)
    mesh = wp.Mesh(vectors(values["points"], False), wp.array(FACES, dtype=int))
    with wp.Tape() as tape:
        wp.launch(look, dim=len(place), inputs=[mesh.id, place, f64(1.0), out])
    place.requires_grad = True
    if changes:
        mesh.refit()
        with pytest.raises(RuntimeError, match="has changed since"):
            tape.backward(grads={out: wp.ones(1, dtype=f64)})
    else:
        tape.backward(grads={out: wp.ones(1, dtype=f64)})
        assert np.abs(place.grad.numpy()).max() > 0.1


def test_forward_mode_and_hessians_along_the_places_while_a_mesh_is_refitted():
    values = given_arrays(10)
    points, steps = wp.array(POINTS, dtype=wp.vec3d), np.random.default_rng(2).standard_normal((2, *POINTS.shape)) * 0.1
    direction = np.random.default_rng(3).standard_normal(values["place"].shape)

    def of_places(place):
        points.assign(POINTS)
        mesh = wp.Mesh(points, wp.array(FACES, dtype=int))
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        for step in steps:
            points.assign(points.numpy() + step)
            mesh.refit()
            after = vectors(np.zeros_like(values["place"]))
            wp.launch(follow, dim=len(place), inputs=[mesh.id, place, after])
            wp.launch(look, dim=len(place), inputs=[mesh.id, after, f64(1.0), out])
            place = after
        return out

    def gradient(place):
        place = vectors(place)
        with wp.Tape() as tape:
            out = of_places(place)
        tape.backward(out)
        return place.grad.numpy().copy()

    place, along = vectors(values["place"]), vectors(direction)
    _, tangent = wp.jvp(of_places, inputs=[place], input_tangents=[along])
    by_tape = gradient(values["place"])
    np.testing.assert_allclose(tangent.numpy()[0], (by_tape * direction).sum(), rtol=1e-9)
    h = 1e-6
    expected = (gradient(values["place"] + h * direction) - gradient(values["place"] - h * direction)) / (2 * h)
    (product,) = wp.autograd.hvp(of_places, inputs=[place], vectors=[along])
    smooth = np.abs(product.numpy() - expected).max(axis=1) < 1e-4
    assert smooth.mean() > 0.8 and np.abs(expected[smooth]).max() > 1e-2


# ---- ids from elsewhere ----


@wp.struct
class Bodies:
    first: wp.uint64
    others: wp.array(dtype=wp.uint64)


@wp.kernel
def look_at_all(
    bodies: Bodies,
    ids: wp.array2d(dtype=wp.uint64),
    skipped: wp.uint64,
    place: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    limit = wp.float64(1e6)
    total = wp.float64(0.0)
    for k in range(ids.shape[1]):
        if ids[0, k] != skipped:
            q = wp.mesh_query_point_no_sign(ids[0, k], place[i], limit)
            d = wp.mesh_eval_position(ids[0, k], q.face, q.u, q.v) - place[i]
            total += wp.dot(d, d) * wp.float64(k + 1)
    q = wp.mesh_query_point_no_sign(bodies.first, place[i], limit)
    d = wp.mesh_eval_position(bodies.first, q.face, q.u, q.v) - place[i]
    total += wp.length(d)
    if bodies.first == ids[0, 1]:
        total *= wp.float64(2.0)
    q = wp.mesh_query_point_no_sign(bodies.others[1], place[i], limit)
    d = wp.mesh_eval_position(bodies.others[1], q.face, q.u, q.v) - place[i]
    total += wp.dot(d, d) * d[0]
    wp.atomic_add(out, 0, total)


def test_ids_in_arrays_and_structs():
    def program(values, keeps=None):
        start = {name: vectors(value) for name, value in values.items()}
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        faces = wp.array(FACES, dtype=int)
        with wp.Tape() as tape:
            points = [vectors(np.zeros_like(POINTS)) for _ in range(3)]
            for one in points:
                wp.copy(one, start["points"])
            meshes = [wp.Mesh(one, faces) for one in points]
            ids = wp.array([[m.id for m in meshes]], dtype=wp.uint64)
            others = wp.array([meshes[2].id, meshes[0].id], dtype=wp.uint64)
            bodies = Bodies()
            bodies.others = others
            for step in range(3):
                for k, mesh in enumerate(meshes):
                    wp.launch(move, dim=len(POINTS), inputs=[points[k], start["speed"], f64(0.05 * (k + step + 1))])
                    mesh.refit()
                bodies.first = meshes[step].id
                wp.launch(
                    look_at_all,
                    dim=len(start["place"]),
                    inputs=[bodies, ids, meshes[0].id, start["place"], out],
                )
                ids.assign(np.roll(ids.numpy(), 1, axis=1))
                others.assign(others.numpy()[::-1].copy())
        if keeps is not None:
            keeps.append(meshes)
        return start, out, tape

    values = given_arrays(11)
    start, out, tape = program(values)  # the meshes are gone
    tape.backward(out)
    check_against_differences(lambda v: program(v)[1].numpy()[0], values, gradients(start))
    found, kept = gradients(start), []
    start, out, tape = program(values, kept)
    tape.backward(out)
    assert_equal_gradients(gradients(start), found, rtol=1e-12)


def test_an_id_that_is_a_constant_of_the_kernel():
    values = given_arrays(12)
    points, place, speed = (vectors(values[name]) for name in ("points", "place", "speed"))
    mesh = wp.Mesh(points, wp.array(FACES, dtype=int))
    number = wp.constant(wp.uint64(mesh.id))

    @wp.kernel(module="unique")
    def look_at_it(place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
        q = wp.mesh_query_point_no_sign(number, place[wp.tid()], wp.float64(1e6))
        d = wp.mesh_eval_position(number, q.face, q.u, q.v) - place[wp.tid()]
        wp.atomic_add(out, 0, wp.dot(d, d))

    found = []
    for changes in (False, True):
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(look_at_it, dim=len(place), inputs=[place, out])
            if changes:
                wp.launch(move, dim=len(POINTS), inputs=[points, speed, f64(0.5)])
                mesh.refit()
        tape.backward(out)
        found.append((points.grad.numpy().copy(), place.grad.numpy().copy()))
        tape.zero()
    assert np.abs(found[0][0]).max() > 0.1
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_ids_that_a_kernel_computes_are_an_error():
    values = given_arrays(13)
    points, place = vectors(values["points"]), vectors(values["place"])
    mesh = wp.Mesh(points, wp.array(FACES, dtype=int))

    @wp.kernel(module="unique")
    def look_at_next(before: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
        mesh = before + wp.uint64(1)
        q = wp.mesh_query_point_no_sign(mesh, place[wp.tid()], wp.float64(1e6))
        d = wp.mesh_eval_position(mesh, q.face, q.u, q.v) - place[wp.tid()]
        wp.atomic_add(out, 0, wp.dot(d, d))

    out = wp.zeros(1, dtype=f64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(look_at_next, dim=len(place), inputs=[wp.uint64(mesh.id - 1), place, out])
    assert out.numpy()[0] > 0
    with pytest.raises(RuntimeError, match="by ids that it computes"):
        tape.backward(out)


# ---- BVHs and hash grids ----


@wp.kernel
def near_boxes(
    bvh: wp.uint64,
    place: wp.array(dtype=wp.vec3),
    weight: wp.array(dtype=float),
    out: wp.array(dtype=float),
):
    i = wp.tid()
    p = place[i]
    one = wp.vec3(0.3, 0.3, 0.3)
    for k in wp.bvh_query_aabb(bvh, p - one, p + one):
        wp.atomic_add(out, 0, weight[k] * wp.dot(p, p) * float(k + 1))


@pytest.mark.parametrize("change", ["refit", "rebuild"])
def test_a_bvh_that_changes(change):
    rng = np.random.default_rng(3)
    n, m, steps = 40, 60, 4
    place = rng.random((n, 3)).astype(np.float32)
    weight = rng.random(m).astype(np.float32)
    lower = [rng.random((m, 3)).astype(np.float32) for _ in range(steps)]
    places, weights = wp.array(place, dtype=wp.vec3, requires_grad=True), wp.array(weight, requires_grad=True)
    out = wp.zeros(1, requires_grad=True)
    lowers, uppers = wp.zeros(m, dtype=wp.vec3), wp.zeros(m, dtype=wp.vec3)
    with wp.Tape() as tape:
        bvh = wp.Bvh(lowers, uppers)
        for low in lower:
            lowers.assign(low)
            uppers.assign(low + np.float32(0.1))
            getattr(bvh, change)()
            wp.launch(near_boxes, dim=n, inputs=[bvh.id, places, weights, out])
    tape.backward(out)
    by_place, by_weight = np.zeros((n, 3)), np.zeros(m)
    for low in lower:
        meets = ((low[None] <= place[:, None] + 0.3) & (low[None] + np.float32(0.1) >= place[:, None] - 0.3)).all(2)
        by_place += 2 * place * (meets * weight * np.arange(1, m + 1)).sum(1)[:, None]
        by_weight += (meets * (place**2).sum(1)[:, None]).sum(0) * np.arange(1, m + 1)
    np.testing.assert_allclose(places.grad.numpy(), by_place, rtol=1e-4)
    np.testing.assert_allclose(weights.grad.numpy(), by_weight, rtol=1e-4)


@wp.kernel
def push_apart(grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, force: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    f = wp.vec3d()
    for j in wp.hash_grid_query(grid, x[i], radius):
        d = x[i] - x[j]
        s = wp.dot(d, d)
        if s > wp.float64(0.0) and s < radius * radius:
            w = radius * radius - s
            f += d * w * w
    force[i] = f


@wp.kernel
def step_on(x: wp.array(dtype=wp.vec3d), v: wp.array(dtype=wp.vec3d), force: wp.array(dtype=wp.vec3d), dt: wp.float64):
    i = wp.tid()
    v[i] = v[i] + force[i] * dt
    x[i] = x[i] + v[i] * dt


@wp.kernel
def energy(x: wp.array(dtype=wp.vec3d), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(out, 0, wp.dot(v[i], v[i]) + wp.dot(x[i], x[i]) * x[i][0])


def test_a_hash_grid_that_is_built_in_each_step():
    rng = np.random.default_rng(4)
    values = {"x": rng.random((60, 3)), "v": rng.standard_normal((60, 3)) * 0.1}

    def program(values):
        start = {name: vectors(value) for name, value in values.items()}
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        grid = wp.HashGrid(8, 8, 8, dtype=f64)
        with wp.Tape() as tape:
            x, v, force = (vectors(np.zeros((60, 3))) for _ in range(3))
            wp.copy(x, start["x"])
            wp.copy(v, start["v"])
            for _ in range(5):
                grid.build(x, 0.4)
                wp.launch(push_apart, dim=60, inputs=[grid.id, x, f64(0.4), force])
                wp.launch(step_on, dim=60, inputs=[x, v, force, f64(0.5)])
            wp.launch(energy, dim=60, inputs=[x, v, out])
        return start, out, tape

    start, out, tape = program(values)
    tape.backward(out)
    check_against_differences(lambda v: program(v)[1].numpy()[0], values, gradients(start))


# ---- volumes ----


@wp.kernel
def sample(volume: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    value = wp.volume_sample(volume, place[i], wp.Volume.LINEAR, dtype=wp.float64)
    wp.atomic_add(out, 0, value * value)


@wp.kernel
def fill(volume: wp.uint64, values: wp.array3d(dtype=wp.float64), factor: wp.float64):
    i, j, k = wp.tid()
    wp.volume_store(volume, i, j, k, values[i, j, k] * factor)


def trilinear(values, place):
    """The value at each place, and its derivative."""
    i = np.floor(place).astype(int)
    f = place - i
    value, slope = np.zeros(len(place)), np.zeros_like(place)
    for corner in np.ndindex(2, 2, 2):
        c = np.array(corner)
        w = np.where(c == 1, f, 1 - f)
        at = values[tuple((i + c).T)]
        value += w.prod(1) * at
        for axis in range(3):
            rest = np.delete(w, axis, 1).prod(1)
            slope[:, axis] += rest * np.where(c[axis] == 1, 1, -1) * at
    return value, slope


def new_volume():
    return wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0, wp.float64(0.0))


def test_a_volume_that_kernels_store_into_between_samples():
    rng = np.random.default_rng(5)
    places = rng.uniform(0.1, 6.9, (30, 3))
    values = wp.array(rng.standard_normal((8, 8, 8)), dtype=f64)
    volume, other = new_volume(), new_volume()
    place = vectors(places)
    out = wp.zeros(1, dtype=f64, requires_grad=True)
    expected = np.zeros_like(places)
    with wp.Tape() as tape:
        for step in range(4):
            wp.launch(fill, dim=(8, 8, 8), inputs=[volume.id, values, f64(1.0 + step)])
            wp.launch(fill, dim=(8, 8, 8), inputs=[other.id, values, f64(-1.0)])
            wp.launch(sample, dim=30, inputs=[volume.id, place, out])
            wp.launch(sample, dim=30, inputs=[volume.id, place, out])
            value, slope = trilinear(values.numpy() * (1.0 + step), places)
            expected += 4 * value[:, None] * slope
    tape.backward(out)
    np.testing.assert_allclose(place.grad.numpy(), expected, rtol=1e-10)
    # A store outside of the tape changes nothing of what was recorded, and neither does the volume's end.
    tape.zero()
    wp.launch(fill, dim=(8, 8, 8), inputs=[volume.id, values, f64(7.0)])
    del volume, other
    tape.backward(out)
    np.testing.assert_allclose(place.grad.numpy(), expected, rtol=1e-10)


def test_a_volume_that_is_rebuilt():
    rng = np.random.default_rng(6)
    places = rng.uniform(0.1, 6.9, (30, 3))
    values = wp.array(rng.standard_normal((8, 8, 8)), dtype=f64)
    tiles = wp.array([[0, 0, 0]], dtype=wp.vec3i)
    volume = wp.Volume.allocate_by_tiles(tiles, 1.0, wp.float64(0.0), rebuildable=True)
    wp.launch(fill, dim=(8, 8, 8), inputs=[volume.id, values, f64(1.0)])
    place = vectors(places)
    out = wp.zeros(1, dtype=f64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sample, dim=30, inputs=[volume.id, place, out])
    volume.rebuild(wp.array([[64, 0, 0]], dtype=wp.vec3i))
    tape.backward(out)
    value, slope = trilinear(values.numpy(), places)
    np.testing.assert_allclose(place.grad.numpy(), 2 * value[:, None] * slope, rtol=1e-10)


def test_a_write_to_the_bytes_of_a_volume_is_an_error():
    volume, place = new_volume(), vectors(np.ones((3, 3)))
    out = wp.zeros(1, dtype=f64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sample, dim=3, inputs=[volume.id, place, out])
    volume.array().fill_(0)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(out)


@wp.kernel
def add_near(mesh: wp.uint64, numbers: wp.array[float], out: wp.array[float]):
    for face in wp.bvh_query_aabb(wp.mesh_get_bvh(mesh), wp.vec3(-1.0), wp.vec3(1.0)):
        out[0] += numbers[face]


@wp.kernel
def add_near_in_tree(tree: wp.uint64, numbers: wp.array[float], out: wp.array[float]):
    for face in wp.bvh_query_aabb(tree, wp.vec3(-1.0), wp.vec3(1.0)):
        out[0] += numbers[face]


@wp.kernel
def tree_of(mesh: wp.uint64, tree: wp.array[wp.uint64]):
    tree[0] = wp.mesh_get_bvh(mesh)


@pytest.mark.parametrize("is_given", [False, True])
def test_the_tree_of_a_mesh_is_that_of_the_launch(is_given):
    """Two faces, of which the first is near; they change places behind the launch."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=np.float32)
    points = wp.array(np.concatenate([corners, corners + 50]), dtype=wp.vec3)
    mesh = wp.Mesh(points, wp.array(np.arange(6), dtype=int))
    numbers, out = wp.array([3.0, 4.0], dtype=float, requires_grad=True), wp.zeros(1, requires_grad=True)
    tree = wp.zeros(1, dtype=wp.uint64)
    wp.launch(tree_of, dim=1, inputs=[mesh.id, tree])
    with wp.Tape() as tape:
        if is_given:
            wp.launch(add_near_in_tree, dim=1, inputs=[int(tree.numpy()[0]), numbers, out])
        else:
            wp.launch(add_near, dim=1, inputs=[mesh.id, numbers, out])
        points.assign(np.concatenate([corners + 50, corners]))
        mesh.refit()
    assert out.numpy()[0] == 3
    out.grad.fill_(1.0)
    tape.backward()
    np.testing.assert_array_equal(numbers.grad.numpy(), [1, 0])

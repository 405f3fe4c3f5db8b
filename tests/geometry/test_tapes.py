"""Tapes over meshes, BVHs, hash grids and volumes that change between the launch and the way back: gradients against
differences in float64, and against programs that give each step objects of its own."""

import numpy as np
import pytest
import warp as wp
from brute_force import sphere
from hypothesis import given, settings
from hypothesis import strategies as st
from tape_values import check_against_differences, f64, gradients, vectors


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

    # Also if it came between two launches, and the later one overwrote it.
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
    """If nothing has one, nothing is kept."""
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

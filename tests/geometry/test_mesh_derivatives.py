"""Derivatives of queries of meshes, by differences."""

import numpy as np
import pytest
import warp as wp
from brute_force import sphere, tetrahedron


@wp.kernel
def distances(
    mesh: wp.uint64,
    place: wp.array(dtype=wp.vec3d),
    direction: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    q = wp.mesh_query_point(mesh, place[i], wp.float64(1e6))
    d = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - place[i]) * q.sign
    r = wp.mesh_query_ray(mesh, place[i], direction[i], wp.float64(1e6))
    value = d * d * d + d
    if r.result:
        value += r.t * (wp.float64(1.0) + r.u * wp.float64(2.0) - r.v) + wp.dot(r.normal, place[i])
    wp.atomic_add(out, 0, value)


@pytest.mark.parametrize("of", ["place", "direction", "points"])
def test_derivatives_against_differences(of):
    points, faces = sphere(6, 7)
    rng = np.random.default_rng(11)
    given = {
        "place": rng.standard_normal((40, 3)) * 1.7,
        "direction": rng.standard_normal((40, 3)),
        "points": points + rng.standard_normal(points.shape) * 0.02,
    }

    def launch(values, requires_grad=False):
        arrays = {k: wp.array(v, dtype=wp.vec3d, requires_grad=requires_grad) for k, v in values.items()}
        mesh = wp.Mesh(arrays["points"], wp.array(faces.reshape(-1), dtype=int))
        out = wp.zeros(1, dtype=wp.float64, requires_grad=requires_grad)
        with wp.Tape() as tape:
            wp.launch(distances, dim=40, inputs=[mesh.id, arrays["place"], arrays["direction"], out])
        return arrays, out, tape, mesh

    arrays, out, tape, mesh = launch(given, True)
    tape.backward(out)
    gradient = arrays[of].grad.numpy()
    checked = 0
    for _ in range(12):
        along = rng.standard_normal(given[of].shape)
        h = 1e-6
        values = [launch({**given, of: given[of] + k * h * along})[1].numpy()[0] for k in (-2, -1, 1, 2)]
        near, far = (values[2] - values[1]) / (2 * h), (values[3] - values[0]) / (4 * h)
        if abs(near - far) > 1e-5 * abs(near):
            continue  # a face or a side has changed between them
        checked += 1
        assert abs((gradient * along).sum() - near) < 1e-5 * max(1.0, abs(near))
    assert checked >= 5
    tape.zero()
    assert (arrays["points"].grad.numpy() == 0).all()


def test_a_grid_that_is_built_again_keeps_its_gradient():
    @wp.kernel(module="unique")
    def count(grid: wp.uint64, p: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, p[i], 0.5):
            d = wp.length_sq(p[i] - p[j])
            if d < 0.25:
                out[i] += d

    rng = np.random.default_rng(0)
    p = wp.array(rng.random((50, 3)).astype(np.float32), dtype=wp.vec3, requires_grad=True)
    gradients = []
    for again in (False, True):
        grid = wp.HashGrid(8, 8, 8)
        grid.build(p, 0.5)
        out = wp.zeros(50, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(count, dim=50, inputs=[grid.id, p, out])
        if again:
            grid.build(wp.zeros(3, dtype=wp.vec3), 0.5)
            del grid
        tape.backward(grads={out: wp.ones(50)})
        gradients.append(p.grad.numpy().copy())
        tape.zero()
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-5)
    assert np.abs(gradients[0]).max() > 0.1


def test_gradients_of_what_a_mesh_is_made_of():
    @wp.kernel(module="unique")
    def look(mesh: wp.uint64, u: wp.array(dtype=float), out: wp.array(dtype=float)):
        v = wp.mesh_eval_velocity(mesh, 1, u[0], 0.5)
        n = wp.mesh_eval_face_normal(mesh, 0)
        p = wp.mesh_get_point(mesh, 4)
        w = wp.mesh_get_velocity(mesh, 2)
        m = wp.mesh_get(mesh)
        out[0] = v[0] + 2.0 * n[0] + 3.0 * p[1] + 5.0 * w[2] + 7.0 * m.points[0][1] * m.velocities[1][2]

    corners = np.array([[0.0, 0, 0], [1, 0, 0.5], [0, 1, 0.25], [1, 1, 1]], np.float32)
    points = wp.array(corners, dtype=wp.vec3, requires_grad=True)
    velocities = wp.array(np.arange(12.0).reshape(4, 3), dtype=wp.vec3, requires_grad=True)
    u = wp.array([0.25], dtype=float, requires_grad=True)
    out = wp.zeros(1, requires_grad=True)
    mesh = wp.Mesh(points, wp.array([0, 1, 2, 1, 3, 2], dtype=int), velocities)
    with wp.Tape() as tape:
        wp.launch(look, dim=1, inputs=[mesh.id, u, out])
    tape.backward(out)
    expected = np.zeros((4, 3))
    expected[[1, 3, 2], 0] = 0.25, 0.5, 0.25
    expected[2, 2] += 5
    np.testing.assert_allclose(velocities.grad.numpy(), expected, atol=1e-6)  # the point has no height
    assert u.grad.numpy()[0] == 3.0 - 6.0
    gradient = points.grad.numpy()
    assert gradient[3, 1] == 3.0 and abs(gradient[0, 1] - 7.0 * 5.0) < 3.0

    def normal(x):
        n = np.cross(x[1] - x[0], x[2] - x[0])
        return 2 * n[0] / np.linalg.norm(n)

    for i, axis in ((1, 2), (0, 2), (2, 0)):
        step = np.zeros((4, 3))
        step[i, axis] = 1e-5
        difference = (normal(corners + step) - normal(corners - step)) / 2e-5
        assert abs(gradient[i, axis] - difference) < 1e-4


def test_a_kernel_that_writes_to_its_mesh_has_no_gradient():
    @wp.kernel(module="unique")
    def push(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
        i = wp.tid()
        q = wp.mesh_query_point(mesh, points[i], 10.0)
        points[i] = wp.mesh_eval_position(mesh, q.face, q.u, q.v) * 2.0
        out[i] = q.u

    corners, faces = tetrahedron()
    points = wp.array(corners, dtype=wp.vec3, requires_grad=True)
    mesh = wp.Mesh(points, wp.array(faces.reshape(-1), dtype=int))
    other, out = wp.clone(points, requires_grad=True), wp.zeros(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="writes to an array of the mesh"), wp.Tape():
        wp.launch(push, dim=4, inputs=[mesh.id, points, out])
    with wp.Tape():
        wp.launch(push, dim=4, inputs=[mesh.id, other, out])

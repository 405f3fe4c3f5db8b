"""Forward mode and products with Hessians towards the points and velocities of meshes: against differences."""

import numpy as np
import pytest
import warp as wp

f64 = wp.float64
QUERIES = 40


def octahedron():
    """Closed, counter-clockwise from outside, each face cut into four, and not quite round."""
    corners = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=np.float64)
    points, faces, middle = list(corners), [], {}
    large = [(0, 2, 4), (2, 1, 4), (1, 3, 4), (3, 0, 4), (2, 0, 5), (1, 2, 5), (3, 1, 5), (0, 3, 5)]

    def between(a, b):
        key = (min(a, b), max(a, b))
        if key not in middle:
            middle[key] = len(points)
            at = points[a] + points[b]
            points.append(at / np.linalg.norm(at))
        return middle[key]

    for a, b, c in large:
        ab, bc, ca = between(a, b), between(b, c), between(c, a)
        faces += [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
    points = np.array(points)
    return points + np.random.default_rng(4).standard_normal(points.shape) * 0.03, np.array(faces).reshape(-1)


POINTS, FACES = octahedron()


def vectors(values, requires_grad=True):
    return wp.array(values, dtype=wp.vec3d, requires_grad=requires_grad)


def places(seed=0):
    direction = np.random.default_rng(seed).standard_normal((QUERIES, 3))
    return direction / np.linalg.norm(direction, axis=1)[:, None] * 1.7


@wp.kernel
def to_point(mesh: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    q = wp.mesh_query_point(mesh, place[i], wp.float64(1e6))
    d = wp.mesh_eval_position(mesh, q.face, q.u, q.v) - place[i]
    out[i] = q.sign * wp.length(d) + wp.dot(d, d) * d[0]  # q.u depends on which face an edge counts to


@wp.kernel
def to_ray(mesh: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    r = wp.mesh_query_ray(mesh, place[i], -place[i], wp.float64(1e6))
    out[i] = r.t * (wp.float64(1.0) + r.u * wp.float64(2.0) - r.v) + wp.dot(r.normal, place[i])


@wp.kernel
def of_velocity(mesh: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, place[i], wp.float64(1e6))
    v = wp.mesh_eval_velocity(mesh, q.face, q.u, q.v)
    out[i] = wp.dot(v, v) + wp.dot(v, place[i])


@wp.kernel
def shift(points: wp.array(dtype=wp.vec3d), by: wp.array(dtype=wp.vec3d), moved: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    moved[i] = points[i] + wp.cross(points[i], by[i]) * wp.length(points[i])


def asking(kernel):
    """A function of the points: they move, and what the kernel asks the mesh is what it gives."""
    place, speed = vectors(places(), False), vectors(np.random.default_rng(5).standard_normal(POINTS.shape))
    by = vectors(np.random.default_rng(6).standard_normal(POINTS.shape) * 0.1, False)

    def function(points):
        moved = vectors(np.zeros_like(POINTS))
        wp.launch(shift, dim=len(POINTS), inputs=[points, by], outputs=[moved])
        velocities = vectors(np.zeros_like(POINTS))
        wp.launch(shift, dim=len(POINTS), inputs=[speed, moved], outputs=[velocities])
        mesh = wp.Mesh(moved, wp.array(FACES, dtype=int), velocities)
        out = wp.zeros(QUERIES, dtype=f64, requires_grad=True)
        wp.launch(kernel, dim=QUERIES, inputs=[mesh.id, place], outputs=[out])
        return out

    return function


def gradient(function, points, weights):
    points = vectors(points)
    with wp.Tape() as tape:
        out = function(points)
    tape.backward(grads={out: wp.array(weights, dtype=f64)})
    return points.grad.numpy().copy()


def check_most(found, expected, atol, least):
    """If the closest feature changes within the step, differences prove nothing."""
    smooth = np.abs(found - expected) <= atol + 1e-4 * np.abs(expected)
    assert smooth.mean() > 0.85, f"{np.count_nonzero(~smooth)} of {smooth.size} differ"
    assert np.abs(expected).max() > least


KERNELS = [to_point, to_ray, of_velocity]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key.split(".")[-1])
def test_forward_mode_is_that_of_differences(kernel):
    function, along = asking(kernel), np.random.default_rng(7).standard_normal(POINTS.shape)
    out, tangent = wp.jvp(function, inputs=[vectors(POINTS)], input_tangents=[vectors(along)])
    h = 1e-6
    ahead, back = (function(vectors(POINTS + step * along)).numpy() for step in (h, -h))
    np.testing.assert_array_equal(out.numpy(), function(vectors(POINTS)).numpy())
    check_most(tangent.numpy(), (ahead - back) / (2 * h), 1e-6, 0.1)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key.split(".")[-1])
def test_forward_mode_is_the_transpose_of_reverse_mode(kernel):
    function, rng = asking(kernel), np.random.default_rng(8)
    along, weights = rng.standard_normal(POINTS.shape), rng.standard_normal(QUERIES)
    _, tangent = wp.jvp(function, inputs=[vectors(POINTS)], input_tangents=[vectors(along)])
    by_tape = gradient(function, POINTS, weights)
    np.testing.assert_allclose((tangent.numpy() * weights).sum(), (by_tape * along).sum(), rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key.split(".")[-1])
def test_products_with_hessians_are_those_of_differences(kernel):
    function, rng = asking(kernel), np.random.default_rng(9)
    along, weights = rng.standard_normal(POINTS.shape), rng.standard_normal(QUERIES)
    (product,) = wp.autograd.hvp(
        function, inputs=[vectors(POINTS)], vectors=[vectors(along)], weights=[wp.array(weights, dtype=f64)]
    )
    h = 1e-6
    ahead, back = (gradient(function, POINTS + step * along, weights) for step in (h, -h))
    check_most(product.numpy(), (ahead - back) / (2 * h), 1e-5, 0.1)


def rolling(mesh, place, steps=3):
    """A function of where a mesh starts: one mesh moves in place, and is asked in each step."""

    def function(start):
        out = wp.zeros(QUERIES, dtype=f64, requires_grad=True)
        at, turn = vectors(place), vectors(np.full_like(POINTS, 0.05), False)
        wp.copy(mesh.points, start)
        for _ in range(steps):
            moved = vectors(np.zeros_like(POINTS))
            wp.launch(shift, dim=len(POINTS), inputs=[mesh.points, turn], outputs=[moved])
            wp.copy(mesh.points, moved)
            mesh.refit()
            wp.launch(add_distance, dim=QUERIES, inputs=[mesh.id, at], outputs=[out])
        return out

    return function


@wp.kernel
def add_distance(mesh: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, place[i], wp.float64(1e6))
    d = wp.mesh_eval_position(mesh, q.face, q.u, q.v) - place[i]
    out[i] = out[i] + wp.dot(d, d) * wp.length(d)


def test_a_mesh_that_moves_in_place_while_it_is_asked():
    place, rng = places(11), np.random.default_rng(12)
    mesh = wp.Mesh(vectors(POINTS), wp.array(FACES, dtype=int))
    function = rolling(mesh, place)
    along, weights = rng.standard_normal(POINTS.shape), rng.standard_normal(QUERIES)
    mesh.points.grad.fill_(1000.0)  # the user's own: products do not start from it, and leave it
    _, tangent = wp.jvp(function, inputs=[vectors(POINTS)], input_tangents=[vectors(along)])
    (product,) = wp.autograd.hvp(
        function, inputs=[vectors(POINTS)], vectors=[vectors(along)], weights=[wp.array(weights, dtype=f64)]
    )
    np.testing.assert_array_equal(mesh.points.grad.numpy(), np.full_like(POINTS, 1000.0))
    mesh.points.grad.zero_()
    h = 1e-6
    ahead, back = (function(vectors(POINTS + step * along)).numpy() for step in (h, -h))
    check_most(tangent.numpy(), (ahead - back) / (2 * h), 1e-6, 0.1)
    by_tape = []
    for step in (h, -h):
        by_tape.append(gradient(function, POINTS + step * along, weights))
        mesh.points.grad.zero_()
    check_most(product.numpy(), (by_tape[0] - by_tape[1]) / (2 * h), 1e-5, 0.1)


def test_a_mesh_whose_points_are_an_input_of_the_kernel():
    rng, points = np.random.default_rng(13), vectors(POINTS)
    along, place = rng.standard_normal(POINTS.shape), vectors(places(), False)
    mesh = wp.Mesh(points, wp.array(FACES, dtype=int))

    @wp.kernel
    def both(
        mesh: wp.uint64,
        points: wp.array(dtype=wp.vec3d),
        place: wp.array(dtype=wp.vec3d),
        out: wp.array(dtype=wp.float64),
    ):
        i = wp.tid()
        q = wp.mesh_query_point_no_sign(mesh, place[i], wp.float64(1e6))
        d = wp.mesh_eval_position(mesh, q.face, q.u, q.v) - place[i]
        out[i] = wp.dot(d, d) + points[0][0]

    def values(step):
        moved = vectors(POINTS + step * along)
        other, out = wp.Mesh(moved, wp.array(FACES, dtype=int)), wp.zeros(QUERIES, dtype=f64)
        wp.launch(both, dim=QUERIES, inputs=[other.id, moved, place], outputs=[out])
        return out.numpy()

    out, tangent = wp.zeros(QUERIES, dtype=f64), wp.zeros(QUERIES, dtype=f64)
    forward = {"dim": QUERIES, "outputs": [out], "output_tangents": [tangent]}
    wp.jvp(both, inputs=[mesh.id, points, place], input_tangents=[None, vectors(along), None], **forward)
    h = 1e-6
    check_most(tangent.numpy(), (values(h) - values(-h)) / (2 * h), 1e-6, 0.1)
    # Other points move by themselves: the mesh does not move.
    wp.jvp(both, inputs=[mesh.id, vectors(POINTS), place], input_tangents=[None, vectors(along), None], **forward)
    np.testing.assert_allclose(tangent.numpy(), np.full(QUERIES, along[0, 0]), rtol=1e-12)
    with pytest.raises(ValueError, match="a part of an input that moves"):
        wp.jvp(both, inputs=[mesh.id, points[:5], place], input_tangents=[None, vectors(along[:5]), None], **forward)


@pytest.fixture
def usual_mode():
    yield
    wp.config.mode = "release"


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_one_mesh_moves_and_another_stays(mode, usual_mode):
    """Debug mode refuses ids of objects that are gone: a mesh without tangents is there."""
    wp.config.mode = mode
    place, rng = vectors(places(), False), np.random.default_rng(14)
    along = rng.standard_normal(POINTS.shape)
    still = wp.Mesh(vectors(POINTS * 1.1), wp.array(FACES, dtype=int))

    @wp.kernel
    def between(a: wp.uint64, b: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        p = wp.mesh_query_point_no_sign(a, place[i], wp.float64(1e6))
        q = wp.mesh_query_point_no_sign(b, place[i], wp.float64(1e6))
        d = wp.mesh_eval_position(a, p.face, p.u, p.v) - wp.mesh_eval_position(b, q.face, q.u, q.v)
        out[i] = wp.dot(d, d)

    def function(points):
        moved = vectors(np.zeros_like(POINTS))
        wp.copy(moved, points)
        mesh = wp.Mesh(moved, wp.array(FACES, dtype=int))
        out = wp.zeros(QUERIES, dtype=f64, requires_grad=True)
        wp.launch(between, dim=QUERIES, inputs=[mesh.id, still.id, place], outputs=[out])
        return out

    _, tangent = wp.jvp(function, inputs=[vectors(POINTS)], input_tangents=[vectors(along)])
    (product,) = wp.autograd.hvp(function, inputs=[vectors(POINTS)], vectors=[vectors(along)])
    assert not still.points.grad.numpy().any()
    h = 1e-6
    ahead, back = (function(vectors(POINTS + step * along)).numpy() for step in (h, -h))
    check_most(tangent.numpy(), (ahead - back) / (2 * h), 1e-6, 0.1)
    ahead, back = (gradient(function, POINTS + step * along, np.ones(QUERIES)) for step in (h, -h))
    check_most(product.numpy(), (ahead - back) / (2 * h), 1e-5, 0.1)


def test_corners_and_normals_of_meshes_of_float32():
    """In a closed form: of two triangles whose points move."""
    values = np.array([[0, 0, 0], [2, 0, 0], [0, 3, 0], [0, 0, 4]], dtype=np.float32)
    along = np.random.default_rng(15).standard_normal((4, 3)).astype(np.float32)
    faces = [0, 1, 2, 0, 2, 3]

    @wp.kernel
    def squares(mesh: wp.uint64, out: wp.array(dtype=float)):
        i = wp.tid()
        p = wp.mesh_get_point(mesh, i)
        v = wp.mesh_get_velocity(mesh, i)
        m = wp.mesh_get(mesh)
        out[i] = wp.dot(p, p) + wp.dot(m.points[i % 4], m.points[i % 4]) + wp.dot(v, v)
        if i >= 2 * 3:
            out[i] = wp.dot(wp.mesh_eval_face_normal(mesh, i - 6), wp.vec3(1.0, 2.0, 3.0))

    def function(points):
        moved = wp.zeros(4, dtype=wp.vec3, requires_grad=True)
        wp.copy(moved, points)
        mesh = wp.Mesh(moved, wp.array(faces, dtype=int))
        out = wp.zeros(8, requires_grad=True)
        wp.launch(squares, dim=8, inputs=[mesh.id], outputs=[out])
        return out

    points, moving = (wp.array(x, dtype=wp.vec3, requires_grad=True) for x in (values, along))
    _, tangent = wp.jvp(function, inputs=[points], input_tangents=[moving])
    slope = 2 * (values * along).sum(axis=1)
    np.testing.assert_allclose(tangent.numpy()[:6], slope[faces] + slope[np.arange(6) % 4], rtol=1e-5)

    def normals(points):
        a, b, c = (points[np.array(faces).reshape(2, 3)[:, k]] for k in range(3))
        n = np.cross(b - a, c - a)
        return (n / np.linalg.norm(n, axis=1)[:, None]) @ [1.0, 2.0, 3.0]

    h = 1e-6
    ahead, back = (normals(values.astype(np.float64) + step * along) for step in (h, -h))
    np.testing.assert_allclose(tangent.numpy()[6:], (ahead - back) / (2 * h), rtol=1e-4, atol=1e-5)

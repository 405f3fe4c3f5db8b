"""The numbers that a query of a mesh gives belong together, and are what their names say.

Each test computes the numbers anew in float64 from corners, or from a system of equations: the point of the face with
the weights lies on the ray at t, or is the closest point; weights are at least 0 and their sum at most 1; normal and
sign are those of the face. Derivatives are compared with differences of these equations.
"""

import numpy as np
import pytest
import warp as wp

TYPES = {"float32": (wp.float32, wp.vec3), "float64": (wp.float64, wp.vec3d)}
FORMS = ["struct", "outputs"]
# How far a number may be from what float64 says: results are rounded to their type, points are as they are.
ROUNDING = {"float32": 3e-5, "float64": 1e-11}
RAY = ["t", "u", "v", "sign", "nx", "ny", "nz", "x", "y", "z", "face", "hits", "any"]
POINT = ["u", "v", "sign", "x", "y", "z", "face"]


def ball(rng, count=60):
    """Closed, convex, with faces of all sizes: the hull of points on a sphere."""
    points = rng.standard_normal((count, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    faces = []
    for i in range(count):  # a face has all points on one side
        for j in range(i + 1, count):
            normal = np.cross(points[j] - points[i], points[j + 1 :] - points[i])
            height = (points[None] - points[i]) @ normal.T if len(normal) else np.zeros((1, count, 0))
            height = height.reshape(count, -1)
            for k in np.flatnonzero((height <= 1e-9).all(axis=0)):
                faces.append([i, j, j + 1 + k])
            for k in np.flatnonzero((height >= -1e-9).all(axis=0)):
                faces.append([i, j + 1 + k, j])
    return points * [1.0, 2.0, 0.7] + [0.3, -0.2, 0.1], np.array(faces)


def make(name, points, faces, **options):
    vec = TYPES[name][1]
    return wp.Mesh(wp.array(points, dtype=vec), wp.array(faces.reshape(-1), dtype=int), **options)


def ray_kernel(name, form):
    real, vec = TYPES[name]

    @wp.kernel(module="unique")
    def struct(
        mesh: wp.uint64, start: wp.array(dtype=vec), direction: wp.array(dtype=vec), out: wp.array2d(dtype=real)
    ):
        i = wp.tid()
        q = wp.mesh_query_ray(mesh, start[i], direction[i], real(1e6))
        out[i, 10] = real(-1.0)
        if q.result:
            p = wp.mesh_eval_position(mesh, q.face, q.u, q.v)
            out[i, 0] = q.t
            out[i, 1] = q.u
            out[i, 2] = q.v
            out[i, 3] = q.sign
            for k in range(3):
                out[i, 4 + k] = q.normal[k]
                out[i, 7 + k] = p[k]
            out[i, 10] = real(q.face)
        out[i, 11] = real(wp.mesh_query_ray_count_intersections(mesh, start[i], direction[i]))
        if wp.mesh_query_ray_anyhit(mesh, start[i], direction[i], real(1e6)):
            out[i, 12] = real(1.0)

    @wp.kernel(module="unique")
    def outputs(
        mesh: wp.uint64, start: wp.array(dtype=vec), direction: wp.array(dtype=vec), out: wp.array2d(dtype=real)
    ):
        i = wp.tid()
        t = real(0.0)
        u = real(0.0)
        v = real(0.0)
        sign = real(0.0)
        normal = vec()
        face = int(-1)
        if wp.mesh_query_ray(mesh, start[i], direction[i], real(1e6), t, u, v, sign, normal, face):
            p = wp.mesh_eval_position(mesh, face, u, v)
            out[i, 0] = t
            out[i, 1] = u
            out[i, 2] = v
            out[i, 3] = sign
            for k in range(3):
                out[i, 4 + k] = normal[k]
                out[i, 7 + k] = p[k]
        out[i, 10] = real(face)
        out[i, 11] = real(wp.mesh_query_ray_count_intersections(mesh, start[i], direction[i]))
        if wp.mesh_query_ray_anyhit(mesh, start[i], direction[i], real(1e6)):
            out[i, 12] = real(1.0)

    return {"struct": struct, "outputs": outputs}[form]


KERNELS = {(name, form): ray_kernel(name, form) for name in TYPES for form in FORMS}


def solve_rays(start, direction, corners):
    """t, u, v of rays and the planes of their triangles (n, 3, 3): start + t direction = u a + v b + (1 - u - v) c."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    matrix = np.stack([-direction, a - c, b - c], axis=2)
    return np.linalg.solve(matrix, (start - c)[..., None])[..., 0].T


def unit_normals(corners):
    n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return n / np.linalg.norm(n, axis=1)[:, None]


def check_rays(points, faces, start, direction, out, tolerance):
    """The numbers of rays that hit, in the order of RAY, belong together; returns which did."""
    hit = out[:, 10] >= 0
    np.testing.assert_array_equal(out[:, 12] > 0, hit)
    found = dict(zip(RAY, out[hit].T, strict=True))
    corners = points[faces[found["face"].astype(int)]]
    t, u, v = solve_rays(start[hit], direction[hit], corners)
    np.testing.assert_allclose(found["t"], t, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found["u"], u, atol=tolerance)
    np.testing.assert_allclose(found["v"], v, atol=tolerance)
    assert min(found["u"].min(), found["v"].min()) >= -tolerance
    assert (found["u"] + found["v"]).max() <= 1 + tolerance
    place = np.stack([found["x"], found["y"], found["z"]], axis=1)
    np.testing.assert_allclose(place, start[hit] + found["t"][:, None] * direction[hit], atol=tolerance * 4)
    normal = unit_normals(corners)
    given = np.stack([found["nx"], found["ny"], found["nz"]], axis=1)
    np.testing.assert_allclose(given, normal, atol=tolerance)
    np.testing.assert_array_equal(found["sign"], np.where((normal * direction[hit]).sum(axis=1) < 0, 1, -1))
    return hit


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(TYPES))
def test_a_ray_straight_down_onto_a_triangle(name, form):
    real, vec = TYPES[name]
    mesh = make(name, np.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]]), np.array([0, 1, 2]))
    start, down = wp.array([[1.0, 1, 5]], dtype=vec), wp.array([[0.0, 0, -2]], dtype=vec)
    out = wp.zeros((1, len(RAY)), dtype=real)
    wp.launch(KERNELS[name, form], dim=1, inputs=[mesh.id, start, down, out])
    np.testing.assert_array_equal(out.numpy()[0], [2.5, 0.5, 0.25, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1])


@pytest.mark.parametrize("way", ["coherent", "scattered", "single"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(TYPES))
def test_the_numbers_of_a_ray_belong_together(name, form, way):
    """Neighbours in packets of lanes, each lane by itself, and launches of one thread."""
    real, vec = TYPES[name]
    rng = np.random.default_rng(3)
    points, faces = ball(rng)
    n = 5 if way == "single" else 300
    if way == "coherent":
        start = np.broadcast_to([0.1, 0.2, 6.0], (n, 3))
        x, y = np.arange(n) % 20 - 9.7, np.arange(n) // 20 - 7.3
        direction = np.stack([x / 60, y / 20, np.full(n, -1.0)], axis=1)
    else:
        start = rng.standard_normal((n, 3)) * 2.0
        direction = rng.standard_normal((n, 3)) * 0.8 - start * rng.uniform(0.3, 2.0, (n, 1))
    single = name == "float32"
    points, start, direction = (
        x.astype(np.float32 if single else np.float64).astype(np.float64) for x in (points, start, direction)
    )
    mesh = make(name, points, faces)
    arrays = wp.array(start, dtype=vec), wp.array(direction, dtype=vec)
    out = wp.zeros((n, len(RAY)), dtype=real)
    if way == "single":
        for i in range(n):
            inputs = [mesh.id, *(a[i : i + 1] for a in arrays), out[i : i + 1]]
            wp.launch(KERNELS[name, form], dim=1, inputs=inputs)
    else:
        wp.launch(KERNELS[name, form], dim=n, inputs=[mesh.id, *arrays, out])
    out = out.numpy().astype(np.float64)
    hit = check_rays(points, faces, start, direction, out, ROUNDING[name])
    assert 0.3 < hit.mean() or way == "single"
    # Of a convex mesh a ray meets two faces from outside, one from inside; none in vain.
    normals = unit_normals(points[faces])
    inside = (((start[:, None] - points[faces][None, :, 0]) * normals[None]).sum(axis=2) < 0).all(axis=1)
    np.testing.assert_array_equal(out[:, 11], np.where(inside, 1, np.where(hit, 2, 0)))
    np.testing.assert_array_equal(out[hit, 3], np.where(inside, -1, 1)[hit])


@pytest.mark.parametrize("mode", ["adjoint", "forward"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(TYPES))
def test_derivatives_of_rays_are_differences_of_their_equations(name, form, mode):
    """For t, u, v, the normal and the place, towards the ray and the corners."""
    real, vec = TYPES[name]
    rng = np.random.default_rng(7)
    points = np.array([[0.0, 0, 0.2], [4, 0.3, 0], [0.1, 4, -0.3]])
    faces = np.array([[0, 1, 2]])
    n = 6
    weights = rng.dirichlet([2, 2, 2], n)
    start = rng.standard_normal((n, 3)) + [1, 1, 4]
    direction = (weights @ points - start) / rng.uniform(1, 3, (n, 1))

    def meaning(start, direction, points):
        corners = np.broadcast_to(points[faces[0]], (n, 3, 3))
        t, u, v = solve_rays(start, direction, corners)
        place = start + t[:, None] * direction
        return np.concatenate([np.stack([t, u, v], axis=1), np.zeros((n, 1)), unit_normals(corners), place], axis=1)

    given = [start, direction, points]
    ways = [rng.standard_normal(x.shape) for x in given]
    h = 1e-5
    ahead, behind = (meaning(*(x + s * h * w for x, w in zip(given, ways, strict=True))) for s in (1, -1))
    expected = (ahead - behind) / (2 * h)

    arrays = [wp.array(x, dtype=vec, requires_grad=True) for x in given]
    mesh = wp.Mesh(arrays[2], wp.array(faces.reshape(-1), dtype=int))
    out = wp.zeros((n, len(RAY)), dtype=real, requires_grad=True)
    tolerance = 1e-3 if name == "float32" else 1e-7
    if mode == "adjoint":
        seeds = rng.standard_normal((n, len(RAY)))
        seeds[:, [3, 10, 11, 12]] = 0
        with wp.Tape() as tape:
            wp.launch(KERNELS[name, form], dim=n, inputs=[mesh.id, *arrays[:2], out])
        tape.backward(grads={out: wp.array(seeds, dtype=real)})
        found = sum((a.grad.numpy() * w).sum() for a, w in zip(arrays, ways, strict=True))
        np.testing.assert_allclose(found, (seeds[:, :10] * expected).sum(), rtol=tolerance, atol=tolerance)
        return

    def function(start, direction, points):
        moved = wp.zeros(3, dtype=vec, requires_grad=True)
        wp.copy(moved, points)
        mesh, out = (
            wp.Mesh(moved, wp.array(faces.reshape(-1), dtype=int)),
            wp.zeros((n, len(RAY)), dtype=real, requires_grad=True),
        )
        wp.launch(KERNELS[name, form], dim=n, inputs=[mesh.id, start, direction, out])
        return out

    tangents = [wp.array(w, dtype=vec) for w in ways]
    _, change = wp.jvp(function, inputs=arrays, input_tangents=tangents)
    np.testing.assert_allclose(change.numpy()[:, :10], expected, rtol=tolerance, atol=tolerance)

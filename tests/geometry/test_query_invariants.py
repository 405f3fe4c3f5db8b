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
POINT = ["u", "v", "x", "y", "z", "vx", "vy", "vz", "sign", "face"]


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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(TYPES))
def test_a_ray_in_the_plane_of_a_face_that_meets_it_has_a_place_on_both(name, form):
    """Rounding decides whether it does. If so, the place is where it enters the face, and gradients are finite."""
    real, vec = TYPES[name]
    kind = np.float32 if name == "float32" else np.float64
    rng = np.random.default_rng(12)
    n = 400
    corners = rng.integers(-5, 6, (n, 3, 3)) * np.where(np.arange(n) % 2 == 0, 1.0, 0.1)[:, None, None]
    corners = corners.astype(kind).astype(np.float64)
    steps = rng.integers(-3, 4, (n, 2, 1))
    direction = steps[:, 0] * (corners[:, 1] - corners[:, 0]) + steps[:, 1] * (corners[:, 2] - corners[:, 0])
    start = corners[:, 0] + 0.25 * (corners[:, 1] - corners[:, 0]) - direction * rng.integers(1, 4, (n, 1))
    start, direction = (x.astype(kind).astype(np.float64) for x in (start, direction))
    seeds = np.zeros((1, len(RAY)))
    seeds[:, :3] = 1.0
    hits = 0
    for i in range(n):
        mesh = make(name, corners[i], np.array([0, 1, 2]))
        arrays = [wp.array(x[i : i + 1], dtype=vec, requires_grad=True) for x in (start, direction)]
        out = wp.zeros((1, len(RAY)), dtype=real, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(KERNELS[name, form], dim=1, inputs=[mesh.id, *arrays, out])
        found = dict(zip(RAY, out.numpy()[0].astype(np.float64), strict=True))
        if found["face"] < 0:
            continue
        hits += 1
        scale = np.abs(start[i]).max() + np.abs(corners[i]).max()
        place = np.array([found["x"], found["y"], found["z"]])
        np.testing.assert_allclose(place, start[i] + found["t"] * direction[i], atol=ROUNDING[name] * scale)
        assert min(found["u"], found["v"], 1 - found["u"] - found["v"]) >= -1e-6 and found["t"] >= 0
        tape.backward(grads={out: wp.array(seeds, dtype=real)})
        assert all(np.isfinite(a.grad.numpy()).all() for a in arrays)
    assert hits > 40


# ---- points ----

SIGNED = [
    "mesh_query_point",
    "mesh_query_point_sign_normal",
    "mesh_query_point_sign_parity",
    "mesh_query_point_sign_winding_number",
]
QUERIES = [*SIGNED, "mesh_query_point_no_sign", "mesh_query_furthest_point_no_sign"]


def point_kernel(name, form, query):
    real, vec = TYPES[name]
    ask, furthest = getattr(wp, query), wp.constant(real(0.0 if "furthest" in query else 1e6))

    @wp.func
    def store(mesh: wp.uint64, i: int, face: int, u: real, v: real, sign: real, out: wp.array2d(dtype=real)):
        p = wp.mesh_eval_position(mesh, face, u, v)
        speed = wp.mesh_eval_velocity(mesh, face, u, v)
        out[i, 0] = u
        out[i, 1] = v
        for k in range(3):
            out[i, 2 + k] = p[k]
            out[i, 5 + k] = speed[k]
        out[i, 8] = sign
        out[i, 9] = real(face)

    @wp.kernel(module="unique")
    def struct(mesh: wp.uint64, place: wp.array(dtype=vec), out: wp.array2d(dtype=real)):
        i = wp.tid()
        q = ask(mesh, place[i], furthest)
        if q.result:
            store(mesh, i, q.face, q.u, q.v, q.sign, out)

    @wp.kernel(module="unique")
    def with_sign(mesh: wp.uint64, place: wp.array(dtype=vec), out: wp.array2d(dtype=real)):
        i = wp.tid()
        sign = real(0.0)
        face = int(-1)
        u = real(0.0)
        v = real(0.0)
        if ask(mesh, place[i], furthest, sign, face, u, v):
            store(mesh, i, face, u, v, sign, out)

    @wp.kernel(module="unique")
    def without_sign(mesh: wp.uint64, place: wp.array(dtype=vec), out: wp.array2d(dtype=real)):
        i = wp.tid()
        face = int(-1)
        u = real(0.0)
        v = real(0.0)
        if ask(mesh, place[i], furthest, face, u, v):
            store(mesh, i, face, u, v, real(0.0), out)

    if form == "struct":
        return struct
    return with_sign if query in SIGNED else without_sign


def weights_of_closest(p, corners):
    """(u, v) of the points of triangles (n, 3, 3) that are closest to places, and the distances; in float64."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    ones = np.ones(len(p))
    candidates = []
    for i, j in ((0, 1), (1, 2), (2, 0)):
        start, along = corners[:, i], corners[:, j] - corners[:, i]
        t = np.clip(((p - start) * along).sum(axis=1) / (along**2).sum(axis=1), 0, 1)
        weights = np.zeros((len(p), 3))
        weights[:, i], weights[:, j] = 1 - t, t
        candidates.append(weights)
    basis = np.stack([a - c, b - c], axis=2)
    uv = np.linalg.solve(basis.transpose(0, 2, 1) @ basis, basis.transpose(0, 2, 1) @ (p - c)[..., None])[..., 0]
    inside = np.concatenate([uv, (ones - uv.sum(axis=1))[:, None]], axis=1)
    candidates.append(np.where((inside >= 0).all(axis=1)[:, None], inside, candidates[0]))
    stacked = np.stack(candidates)
    distance = np.linalg.norm((stacked[..., None] * corners[None]).sum(axis=2) - p, axis=2)
    best = distance.argmin(axis=0)
    rows = np.arange(len(p))
    return stacked[best, rows, :2], distance[best, rows]


def weights_of_furthest(p, corners):
    distance = np.linalg.norm(corners - p[:, None], axis=2)
    return np.eye(3)[distance.argmax(axis=1)][:, :2], distance.max(axis=1)


def combine(weights, corners):
    u, v = weights[:, :1], weights[:, 1:]
    return u * corners[:, 0] + v * corners[:, 1] + (1 - u - v) * corners[:, 2]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("name", list(TYPES))
def test_the_numbers_of_a_point_belong_together(name, query, form):
    """Face, weights, place, velocity and side, around a convex mesh; many places are closest to edges and corners."""
    real, vec = TYPES[name]
    rng = np.random.default_rng(5)
    points, faces = ball(rng)
    n = 300
    place = rng.standard_normal((n, 3)) * rng.choice([0.4, 2.0], (n, 1))
    kind = np.float32 if name == "float32" else np.float64
    points, place = (x.astype(kind).astype(np.float64) for x in (points, place))
    speeds = rng.standard_normal(points.shape).astype(kind).astype(np.float64)
    mesh = wp.Mesh(
        wp.array(points, dtype=vec),
        wp.array(faces.reshape(-1), dtype=int),
        wp.array(speeds, dtype=vec),
        support_winding_number=True,
    )
    out = wp.zeros((n, len(POINT)), dtype=real)
    wp.launch(point_kernel(name, form, query), dim=n, inputs=[mesh.id, wp.array(place, dtype=vec), out])
    out = out.numpy().astype(np.float64)
    face, tolerance = out[:, 9].astype(int), ROUNDING[name]
    corners = points[faces[face]]
    weights_of = weights_of_furthest if "furthest" in query else weights_of_closest
    weights, distance = weights_of(place, corners)
    # Of all faces it is the best.
    everywhere = [weights_of(place, np.broadcast_to(points[f], (n, 3, 3)))[1] for f in faces]
    best = np.max(everywhere, axis=0) if "furthest" in query else np.min(everywhere, axis=0)
    np.testing.assert_allclose(distance, best, atol=tolerance)
    np.testing.assert_allclose(out[:, :2], weights, atol=20 * tolerance)
    assert out[:, :2].min() >= 0 and out[:, :2].sum(axis=1).max() <= 1 + tolerance
    np.testing.assert_allclose(out[:, 2:5], combine(weights, corners), atol=4 * tolerance)
    np.testing.assert_allclose(out[:, 5:8], combine(weights, speeds[faces[face]]), atol=80 * tolerance)
    normals = unit_normals(points[faces])
    inside = (((place[:, None] - points[faces][None, :, 0]) * normals[None]).sum(axis=2) < 0).all(axis=1)
    expected = np.where(inside, -1, 1) if query in SIGNED else np.zeros(n)
    np.testing.assert_array_equal(out[:, 8], expected)
    assert 0.2 < inside.mean() < 0.8
    on_edge = (weights == 0).any(axis=1) | (weights.sum(axis=1) == 1)
    assert on_edge.mean() > 0.2


@pytest.mark.parametrize("mode", ["adjoint", "forward"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("query", ["mesh_query_point", "mesh_query_point_no_sign", "mesh_query_furthest_point_no_sign"])
def test_derivatives_of_points_are_differences_of_closest_points(query, form, mode):
    """Places above the inside, an edge and a corner of a triangle; towards the place, the corners and velocities."""
    real, vec = TYPES["float64"]
    rng = np.random.default_rng(9)
    points = np.array([[0.0, 0, 0.2], [4, 0.3, 0], [0.1, 4, -0.3]])
    place = np.array(
        [[1.0, 1, 2], [1.5, 0.7, -1], [2, -3, 1], [-2, 2, 0.5], [4, 4, 1], [7, -1, 2], [-1, -2, -1], [0, 9, 1]]
    )
    speeds = rng.standard_normal((3, 3))
    n = len(place)
    weights_of = weights_of_furthest if "furthest" in query else weights_of_closest

    def meaning(place, points, speeds):
        corners = np.broadcast_to(points, (n, 3, 3))
        weights, _ = weights_of(place, corners)
        return np.concatenate(
            [weights, combine(weights, corners), combine(weights, np.broadcast_to(speeds, (n, 3, 3)))], axis=1
        )

    given = [place, points, speeds]
    ways = [rng.standard_normal(x.shape) for x in given]
    h = 1e-6
    ahead, behind = (meaning(*(x + s * h * w for x, w in zip(given, ways, strict=True))) for s in (1, -1))
    expected = (ahead - behind) / (2 * h)
    assert np.abs(expected[:, :2]).max() > 0.1 or "furthest" in query

    kernel = point_kernel("float64", form, query)
    arrays = [wp.array(x, dtype=vec, requires_grad=True) for x in given]

    def function(place, points, speeds):
        moved, changed = wp.zeros(3, dtype=vec, requires_grad=True), wp.zeros(3, dtype=vec, requires_grad=True)
        wp.copy(moved, points)
        wp.copy(changed, speeds)
        mesh = wp.Mesh(moved, wp.array([0, 1, 2], dtype=int), changed)
        out = wp.zeros((n, len(POINT)), dtype=real, requires_grad=True)
        wp.launch(kernel, dim=n, inputs=[mesh.id, place, out])
        return out

    if mode == "forward":
        _, change = wp.jvp(function, inputs=arrays, input_tangents=[wp.array(w, dtype=vec) for w in ways])
        np.testing.assert_allclose(change.numpy()[:, :8], expected, rtol=1e-6, atol=1e-7)
        return
    seeds = rng.standard_normal((n, len(POINT)))
    seeds[:, 8:] = 0
    with wp.Tape() as tape:
        out = function(*arrays)
    tape.backward(grads={out: wp.array(seeds, dtype=real)})
    found = sum((a.grad.numpy() * w).sum() for a, w in zip(arrays, ways, strict=True))
    np.testing.assert_allclose(found, (seeds[:, :8] * expected).sum(), rtol=1e-6)


# ---- segments ----


@pytest.mark.parametrize("name", list(TYPES))
def test_the_numbers_of_two_segments_belong_together(name):
    """The third is the distance of the points that the first two name, and no other points are closer."""
    real, vec = TYPES[name]

    @wp.kernel(module="unique")
    def closest(ends: wp.array2d(dtype=vec), out: wp.array(dtype=vec)):
        i = wp.tid()
        out[i] = wp.closest_point_edge_edge(ends[i, 0], ends[i, 1], ends[i, 2], ends[i, 3], real(1e-12))

    rng = np.random.default_rng(10)
    n = 300
    ends = rng.uniform(-1, 1, (n, 4, 3))
    ends[:50, 3] = ends[:50, 2] + (ends[:50, 1] - ends[:50, 0]) * rng.uniform(-2, 2, (50, 1))  # parallel
    ends = ends.astype(np.float32).astype(np.float64)
    out = wp.zeros(n, dtype=vec)
    wp.launch(closest, dim=n, inputs=[wp.array(ends, dtype=vec), out])
    s, t, distance = out.numpy().astype(np.float64).T
    assert min(s.min(), t.min()) >= 0 and max(s.max(), t.max()) <= 1

    def between(s, t):
        first = ends[:, 0] + s[:, None] * (ends[:, 1] - ends[:, 0])
        second = ends[:, 2] + t[:, None] * (ends[:, 3] - ends[:, 2])
        return np.linalg.norm(first - second, axis=1)

    np.testing.assert_allclose(distance, between(s, t), atol=ROUNDING[name])
    for step in (0.1, 0.003):
        for ds in (-step, 0, step):
            for dt in (-step, 0, step):
                assert (between(np.clip(s + ds, 0, 1), np.clip(t + dt, 0, 1)) >= distance - ROUNDING[name]).all()
    assert (np.abs(s - t) > 0.1).mean() > 0.5

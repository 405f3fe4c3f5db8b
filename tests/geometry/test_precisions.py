"""Meshes and BVHs of float32 and of float64, each asked in float32 and in float64: the answers are those of brute
force, and derivatives go to the arrays of both types."""

import numpy as np
import pytest
import warp as wp
from brute_force import closest_in_triangle, sphere

TYPES = {"float32": (wp.float32, wp.vec3f), "float64": (wp.float64, wp.vec3d)}
kinds = pytest.mark.parametrize("of", TYPES)
queries = pytest.mark.parametrize("asked", TYPES)
POINTS, FACES = sphere()
POINTS = POINTS.astype(np.float32).astype(np.float64)  # the same in both types
CORNERS = POINTS[FACES]
NORMALS = np.cross(CORNERS[:, 1] - CORNERS[:, 0], CORNERS[:, 2] - CORNERS[:, 0])
NORMALS /= np.linalg.norm(NORMALS, axis=1, keepdims=True)


def places(count=200, seed=0, scale=1.5):
    return (scale * np.random.default_rng(seed).uniform(-1, 1, (count, 3))).astype(np.float32)


def mesh_of(of, **options):
    points = wp.array(POINTS, dtype=TYPES[of][1], requires_grad=True)
    velocities = wp.array(2.0 * POINTS + 1.0, dtype=TYPES[of][1], requires_grad=True)
    return wp.Mesh(points, wp.array(FACES.reshape(-1), dtype=int), velocities=velocities, **options)


def at(weights, faces, values=POINTS):
    """On these faces, with weights (n, 2) of the first two corners."""
    u, v = weights.T[..., None]
    a, b, c = values[FACES[faces]].transpose(1, 0, 2)
    return u * a + v * b + (1 - u - v) * c


# ---- meshes ----


@queries
@kinds
def test_closest_and_furthest_points(of, asked):
    F, V = TYPES[asked]

    @wp.kernel(module="unique")
    def ask(mesh: wp.uint64, x: wp.array(dtype=V), faces: wp.array2d(dtype=int), numbers: wp.array3d(dtype=F)):
        i = wp.tid()
        for which in range(wp.static(6)):
            q = wp.mesh_query_point_no_sign(mesh, x[i], F(10.0))
            if which == 1:
                q = wp.mesh_query_point_sign_normal(mesh, x[i], F(10.0))
            if which == 2:
                q = wp.mesh_query_point_sign_parity(mesh, x[i], F(10.0))
            if which == 3:
                q = wp.mesh_query_point_sign_winding_number(mesh, x[i], F(10.0))
            if which == 4:
                q = wp.mesh_query_furthest_point_no_sign(mesh, x[i], F(0.0))
            if which == 5:
                q = wp.mesh_query_point(mesh, x[i], F(10.0))
            faces[i, which] = wp.where(q.result, q.face, -1)
            numbers[i, which, 0] = q.u
            numbers[i, which, 1] = q.v
            numbers[i, which, 2] = q.sign

    x = places()
    faces, numbers = wp.empty((len(x), 6), dtype=int), wp.empty((len(x), 6, 3), dtype=F)
    mesh = mesh_of(of, support_winding_number=True)
    wp.launch(ask, len(x), [mesh.id, wp.array(x, dtype=V), faces, numbers])
    faces, numbers = faces.numpy(), numbers.numpy().astype(np.float64)
    squared = closest_in_triangle(x[:, None].astype(np.float64), *CORNERS[None].transpose(2, 0, 1, 3))
    furthest = np.linalg.norm(x[:, None] - POINTS, axis=2).max(1)
    inside = ((x[:, None] - CORNERS[:, 0]) * NORMALS).sum(2).max(1) < 0  # the sphere is convex
    for which in range(6):
        assert (faces[:, which] >= 0).all()
        distance = np.linalg.norm(at(numbers[:, which, :2], faces[:, which]) - x, axis=1)
        np.testing.assert_allclose(distance, furthest if which == 4 else np.sqrt(squared.min(1)), rtol=0, atol=1e-6)
        if which not in (0, 4):
            np.testing.assert_array_equal(numbers[:, which, 2], np.where(inside, -1, 1))


@queries
@kinds
def test_rays_are_asked_in_both_precisions(of, asked):
    F, V = TYPES[asked]

    @wp.kernel(module="unique")
    def ask(
        mesh: wp.uint64,
        x: wp.array(dtype=V),
        d: wp.array(dtype=V),
        found: wp.array2d(dtype=int),
        t: wp.array2d(dtype=F),
    ):
        i = wp.tid()
        q = wp.mesh_query_ray(mesh, x[i], d[i], F(100.0))
        found[i, 0] = wp.where(q.result, q.face, -1)
        found[i, 1] = int(wp.mesh_query_ray_anyhit(mesh, x[i], d[i], F(100.0)))
        found[i, 2] = wp.mesh_query_ray_count_intersections(mesh, x[i], d[i])
        t[i, 0], t[i, 1], t[i, 2], t[i, 3] = q.t, q.u, q.v, q.sign
        t[i, 4], t[i, 5], t[i, 6] = q.normal[0], q.normal[1], q.normal[2]

    x, d = places(seed=1), places(seed=2)
    found, t = wp.empty((len(x), 3), dtype=int), wp.empty((len(x), 7), dtype=F)
    mesh = mesh_of(of)
    wp.launch(ask, len(x), [mesh.id, wp.array(x, dtype=V), wp.array(d, dtype=V), found, t])
    found, t = found.numpy(), t.numpy().astype(np.float64)
    # Into which faces of a convex surface a ray goes: it crosses their planes, and lies behind all others there.
    along, height = d.astype(np.float64) @ NORMALS.T, ((CORNERS[:, 0] - x[:, None]) * NORMALS).sum(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = height / along
    enter = np.where(along < 0, crossing, -np.inf).max(1)
    leave = np.where(along > 0, crossing, np.inf).min(1)
    meets = (enter <= leave) & (leave >= 0)
    first = np.where(enter >= 0, enter, leave)
    assert 40 < meets.sum() < 190
    np.testing.assert_array_equal(found[:, 0] >= 0, meets)
    np.testing.assert_array_equal(found[:, 1], meets)
    np.testing.assert_array_equal(found[:, 2], np.where(meets, np.where(enter >= 0, 2, 1), 0))
    np.testing.assert_allclose(t[meets, 0], first[meets], rtol=1e-5, atol=1e-6)
    faces = found[meets, 0]
    hit = x[meets] + first[meets, None] * d[meets]
    np.testing.assert_allclose(at(t[meets, 1:3], faces), hit, rtol=0, atol=5e-6)
    np.testing.assert_array_equal(t[meets, 3], np.where(enter[meets] >= 0, 1, -1))
    np.testing.assert_allclose(t[meets, 4:], NORMALS[faces], rtol=0, atol=1e-6)


@queries
@kinds
def test_what_a_face_has(of, asked):
    F, V = TYPES[asked]

    @wp.kernel(module="unique")
    def ask(mesh: wp.uint64, u: wp.array2d(dtype=F), out: wp.array2d(dtype=V), index: wp.array(dtype=int)):
        face = wp.tid()
        out[face, 0] = wp.mesh_eval_position(mesh, face, u[face, 0], u[face, 1])
        out[face, 1] = wp.mesh_eval_velocity(mesh, face, u[face, 0], u[face, 1])
        out[face, 2] = wp.mesh_eval_face_normal(mesh, face, dtype=F)
        out[face, 3] = wp.mesh_get_point(mesh, 3 * face + 1, dtype=F)
        out[face, 4] = wp.mesh_get_velocity(mesh, 3 * face + 1, dtype=F)
        out[face, 5] = V(wp.mesh_get_point(mesh, 3 * face + 2))
        out[face, 6] = V(wp.mesh_eval_face_normal(mesh, face))
        index[face] = wp.mesh_get_index(mesh, 3 * face + 2)

    weights = np.random.default_rng(3).random((len(FACES), 2)).astype(np.float32)
    out, index = wp.empty((len(FACES), 7), dtype=V), wp.empty(len(FACES), dtype=int)
    mesh = mesh_of(of)
    wp.launch(ask, len(FACES), [mesh.id, wp.array(weights, dtype=F), out, index])
    every = np.arange(len(FACES))
    weights = weights.astype(np.float64)
    # Values that are float64 all the way are exact to their last digits.
    exact = 1e-14 if (of, asked) == ("float64", "float64") else 1e-6
    for n, (expected, allowed) in enumerate(
        [
            (at(weights, every), exact),
            (at(weights, every, 2 * POINTS + 1), exact),
            (NORMALS, 1e-14 if asked == "float64" else 1e-6),
            (CORNERS[:, 1], 0),
            (2 * CORNERS[:, 1] + 1, exact),
            (CORNERS[:, 2], 0),
            (NORMALS, 1e-6),
        ]
    ):
        np.testing.assert_allclose(out.numpy()[:, n], expected, rtol=0, atol=allowed, err_msg=str(n))
    np.testing.assert_array_equal(index.numpy(), FACES[:, 2])


@queries
@kinds
def test_derivatives_towards_places_and_points(of, asked):
    """The distance grows along the line from the surface; the corners of the face move against it, by their weights."""
    F, V = TYPES[asked]

    @wp.kernel(module="unique")
    def distance(mesh: wp.uint64, x: wp.array(dtype=V), out: wp.array(dtype=F)):
        i = wp.tid()
        q = wp.mesh_query_point_no_sign(mesh, x[i], F(10.0))
        out[i] = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - x[i])

    mesh = mesh_of(of)
    x = wp.array(places(seed=4), dtype=V, requires_grad=True)
    out = wp.zeros(len(x), dtype=F, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(distance, len(x), [mesh.id, x, out])
    tape.backward(grads={out: wp.ones_like(out)})

    p = x.numpy().astype(np.float64)
    squared = closest_in_triangle(p[:, None], *CORNERS[None].transpose(2, 0, 1, 3))
    faces, step = squared.argmin(1), 1e-6
    towards = np.stack(
        [
            np.sqrt(closest_in_triangle(p + shift, *CORNERS[faces].transpose(1, 0, 2)))
            - np.sqrt(closest_in_triangle(p - shift, *CORNERS[faces].transpose(1, 0, 2)))
            for shift in step * np.eye(3)
        ],
        axis=1,
    ) / (2 * step)
    np.testing.assert_allclose(x.grad.numpy(), towards, rtol=0, atol=1e-4)
    moved = mesh.points.grad.numpy()
    assert moved.dtype == np.dtype(of)
    np.testing.assert_allclose(moved.sum(0), -towards.sum(0), rtol=0, atol=1e-3)
    along = np.random.default_rng(5).standard_normal(POINTS.shape)

    def total(points):
        return np.sqrt(closest_in_triangle(p[:, None], *points[FACES][None].transpose(2, 0, 1, 3)).min(1)).sum()

    slope = (total(POINTS + step * along) - total(POINTS - step * along)) / (2 * step)
    np.testing.assert_allclose((moved * along).sum(), slope, rtol=1e-4)


@queries
@kinds
def test_forward_mode_with_moving_points(of, asked):
    F, V = TYPES[asked]
    V_of = TYPES[of][1]

    @wp.kernel(module="unique")
    def hit(mesh: wp.uint64, p: wp.array(dtype=V_of), x: wp.array(dtype=V), out: wp.array(dtype=F)):
        i = wp.tid()
        out[i] = wp.mesh_query_ray(mesh, x[i], V(F(0.0), F(0.0), F(-1.0)), F(100.0)).t

    mesh = mesh_of(of)
    start = np.array([[0.1, 0.2, 3.0], [-0.3, 0.15, 4.0]])
    x, out = wp.array(start, dtype=V), wp.zeros(2, dtype=F)
    up = wp.array(np.full(POINTS.shape, (0.0, 0.0, 2.0)), dtype=V_of)
    moved = wp.array(np.full((2, 3), (0.0, 0.0, 5.0)), dtype=V)
    tangent = wp.zeros(2, dtype=F)
    forward = {"dim": 2, "outputs": [out], "output_tangents": [tangent]}
    wp.jvp(hit, inputs=[mesh.id, mesh.points, x], input_tangents=[None, up, moved], **forward)
    np.testing.assert_allclose(tangent.numpy(), 3.0, rtol=1e-6)


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_the_arrays_of_a_mesh_of_float64_are_refused_with_another_way(mode):
    @wp.kernel(module="unique", module_options={"mode": mode})
    def first(mesh: wp.uint64, out: wp.array(dtype=wp.vec3)):
        out[0] = wp.mesh_get(mesh).points[0]

    out = wp.zeros(1, dtype=wp.vec3)
    meshes = [mesh_of(of) for of in TYPES]
    wp.launch(first, 1, [meshes[0].id, out])
    np.testing.assert_array_equal(out.numpy()[0], POINTS[0])
    with pytest.raises(RuntimeError) as error:
        wp.launch(first, 1, [meshes[1].id, out])
        wp.synchronize()
    text = str(error.value)
    assert "mesh_get() gives arrays of vec3f, and this mesh is of vec3d" in text
    assert "mesh_get_point(mesh, index, dtype=wp.float64)" in text
    assert "kernel 'first'" in text and "out[0] = wp.mesh_get(mesh).points[0]" in text


def test_results_of_other_types_are_refused():
    @wp.kernel(module="unique")
    def ask(mesh: wp.uint64, out: wp.array(dtype=wp.vec3h)):
        out[0] = wp.mesh_get_point(mesh, 0, dtype=wp.float16)

    with pytest.raises(TypeError, match="argument 'dtype' is float16, expected float32 or float64"):
        wp.launch(ask, 1, [wp.uint64(0), wp.zeros(1, dtype=wp.vec3h)])


# ---- boxes ----


def boxes(seed=6, count=300):
    low = places(count, seed).astype(np.float64)
    return low, low + np.random.default_rng(seed).uniform(0, 0.25, (count, 3)).astype(np.float32).astype(np.float64)


def outside(x, low, high):
    """How far each place is from each box along each axis."""
    return np.maximum(np.maximum(low - x[:, None], x[:, None] - high), 0)


@queries
@kinds
@pytest.mark.parametrize("loop", ["for", "while"])
def test_boxes_that_meet_a_shape(of, asked, loop):
    F, V = TYPES[asked]

    @wp.kernel(module="unique")
    def in_for(bvh: wp.uint64, x: wp.array(dtype=V), d: wp.array(dtype=V), reach: F, n: wp.array3d(dtype=int)):
        i = wp.tid()
        for k in wp.bvh_query_aabb(bvh, x[i] - V(reach), x[i] + V(reach)):
            n[0, i, k] += 1
        for k in wp.bvh_query_sphere(bvh, x[i], reach):
            n[1, i, k] += 1
        for k in wp.bvh_query_ray(bvh, x[i], d[i]):
            n[2, i, k] += 1
        for k in wp.bvh_query_capsule(bvh, x[i], d[i], reach):
            n[3, i, k] += 1

    @wp.kernel(module="unique")
    def in_while(bvh: wp.uint64, x: wp.array(dtype=V), d: wp.array(dtype=V), reach: F, n: wp.array3d(dtype=int)):
        i = wp.tid()
        k = int(0)
        box = wp.bvh_query_aabb(bvh, x[i] - V(reach), x[i] + V(reach))
        while wp.bvh_query_next(box, k):
            n[0, i, k] += 1
        ball = wp.bvh_query_sphere(bvh, x[i], reach)
        while wp.bvh_query_next(ball, k):
            n[1, i, k] += 1
        ray = wp.bvh_query_ray(bvh, x[i], d[i])
        while wp.bvh_query_next(ray, k, F(2.0)):
            n[2, i, k] += 1
        capsule = wp.bvh_query_capsule(bvh, x[i], d[i], reach)
        while wp.bvh_query_next(capsule, k, F(2.0)):
            n[3, i, k] += 1

    low, high = boxes()
    bvh = wp.Bvh(*(wp.array(corner, dtype=TYPES[of][1]) for corner in (low, high)))
    x, d, reach = places(100, 7).astype(np.float64), places(100, 8).astype(np.float64), 0.25
    n = wp.zeros((4, len(x), len(low)), dtype=int)
    kernel = in_for if loop == "for" else in_while
    wp.launch(kernel, len(x), [bvh.id, wp.array(x, dtype=V), wp.array(d, dtype=V), reach, n])
    found = n.numpy()
    assert found.max() == 1
    away = outside(x, low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        near, far = (low - x[:, None]) / d[:, None], (high - x[:, None]) / d[:, None]
    enter = np.maximum(np.minimum(near, far).max(2), 0)
    leave = np.minimum(np.maximum(near, far).min(2), np.inf if loop == "for" else 2.0)
    np.testing.assert_array_equal(found[0], (away <= reach).all(2))
    np.testing.assert_array_equal(found[1], np.linalg.norm(away, axis=2) <= reach)
    np.testing.assert_array_equal(found[2], enter <= leave)
    assert (found[3] >= found[1]).all() and (found[3] >= found[2]).all()
    assert found[3].mean() < 0.5


@kinds
def test_queries_in_float64_are_exact(of):
    """Boxes 10^-12 apart do not meet, for trees of each type."""

    @wp.kernel(module="unique")
    def ask(bvh: wp.uint64, mesh: wp.uint64, gap: wp.float64, n: wp.array(dtype=int)):
        one, z = wp.float64(1.0), wp.float64(0.0)
        for _ in wp.bvh_query_aabb(bvh, wp.vec3d(one + gap, z, z), wp.vec3d(one + one, one, one)):
            n[0] += 1
        for _ in wp.bvh_query_sphere(bvh, wp.vec3d(one + one + gap, z, z), one):
            n[1] += 1
        for _ in wp.bvh_query_ray(bvh, wp.vec3d(one + gap, -one, z), wp.vec3d(z, one, z)):
            n[2] += 1
        for _ in wp.mesh_query_aabb(mesh, wp.vec3d(one + gap, z, z), wp.vec3d(one + one, one, one)):
            n[3] += 1

    V = TYPES[of][1]
    bvh = wp.Bvh(*(wp.array([[x, x, x]], dtype=V) for x in (0.0, 1.0)))
    mesh = wp.Mesh(wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=V), wp.array([0, 1, 2], dtype=int))
    for gap, expected in ((0.0, [1, 1, 1, 1]), (1e-12, [0, 0, 0, 0])):
        n = wp.zeros(4, dtype=int)
        wp.launch(ask, 1, [bvh.id, mesh.id, gap, n])
        assert n.list() == expected


@queries
@kinds
def test_faces_near_a_place(of, asked):
    F, V = TYPES[asked]

    @wp.func
    def count(query: wp.types.Any, i: int, n: wp.array2d(dtype=int)):
        face = int(0)
        while wp.mesh_query_next(query, face):
            n[i, face] += 1

    @wp.kernel(module="unique")
    def ask(mesh: wp.uint64, x: wp.array(dtype=V), reach: F, n: wp.array2d(dtype=int), near: wp.array2d(dtype=int)):
        i = wp.tid()
        count(wp.mesh_query_aabb(mesh, x[i] - V(reach), x[i] + V(reach)), i, n)
        for face in wp.bvh_query_aabb(wp.mesh_get_bvh(mesh), x[i] - V(reach), x[i] + V(reach)):
            n[i, face] += 1
        count(wp.mesh_query_sphere(mesh, x[i], reach), i, near)

    x, reach = places(50, 9).astype(np.float64), 0.25
    n, near = (wp.zeros((len(x), len(FACES)), dtype=int) for _ in range(2))
    mesh = mesh_of(of)
    wp.launch(ask, len(x), [mesh.id, wp.array(x, dtype=V), reach, n, near])
    away = outside(x, CORNERS.min(1), CORNERS.max(1))
    np.testing.assert_array_equal(n.numpy(), 2 * (away <= reach).all(2))
    squared = closest_in_triangle(x[:, None], *CORNERS[None].transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(near.numpy(), squared <= reach**2)


@queries
@kinds
def test_groups_are_asked_in_both_precisions(of, asked):
    F, V = TYPES[asked]

    @wp.kernel(module="unique")
    def ask(bvh: wp.uint64, mesh: wp.uint64, n: wp.array2d(dtype=int)):
        group = wp.tid()
        low, high = V(F(-9.0)), V(F(9.0))
        for k in wp.bvh_query_aabb(bvh, low, high, wp.bvh_get_group_root(bvh, group)):
            n[group, k] += 1
        d = V(F(0.0), F(0.0), F(-1.0))
        root = wp.mesh_get_group_root(mesh, group)
        q = wp.mesh_query_ray(mesh, V(F(0.25), F(0.25), F(5.0)), d, F(10.0), root)
        n[group, 12] = wp.where(q.result, q.face, -1)

    V_of = TYPES[of][1]
    low, high = boxes(count=12)
    groups = np.arange(12, dtype=np.int32) % 3
    bvh = wp.Bvh(wp.array(low, dtype=V_of), wp.array(high, dtype=V_of), groups=wp.array(groups))
    stack = np.array([[[0, 0, z], [1, 0, z], [0, 1, z]] for z in range(3)], dtype=np.float64).reshape(-1, 3)
    mesh = wp.Mesh(
        wp.array(stack, dtype=V_of), wp.array(np.arange(9, dtype=np.int32)), groups=wp.array([2, 0, 1], dtype=int)
    )
    n = wp.zeros((3, 13), dtype=int)
    wp.launch(ask, 3, [bvh.id, mesh.id, n])
    np.testing.assert_array_equal(n.numpy()[:, :12], groups == np.arange(3)[:, None])
    assert n.numpy()[:, 12].tolist() == [1, 2, 0]

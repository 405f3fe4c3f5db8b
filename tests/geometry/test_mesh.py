"""Meshes: rays and closest points against brute force in float64, signs against winding numbers, derivatives."""

import math

import numpy as np
import pytest
import warp as wp
from brute_force import closest_in_triangle, make, ray_hits, soup, sphere, tetrahedron, winding_number
from hypothesis import given, settings
from hypothesis import strategies as st
from mesh_kernels import nearest


@wp.kernel
def rays(
    mesh: wp.uint64,
    start: wp.array(dtype=wp.vec3),
    direction: wp.array(dtype=wp.vec3),
    limit: float,
    face: wp.array(dtype=int),
    numbers: wp.array2d(dtype=float),
    any_hit: wp.array(dtype=int),
):
    i = wp.tid()
    q = wp.mesh_query_ray(mesh, start[i], direction[i], limit)
    face[i] = wp.where(q.result, q.face, -1)
    numbers[i, 0] = q.t
    numbers[i, 1] = q.u
    numbers[i, 2] = q.v
    numbers[i, 3] = q.sign
    numbers[i, 4] = wp.length(q.normal)
    if q.result:
        there = wp.mesh_eval_position(mesh, q.face, q.u, q.v)
        numbers[i, 5] = wp.length(there - (start[i] + q.t * direction[i]))
    if wp.mesh_query_ray_anyhit(mesh, start[i], direction[i], limit):
        any_hit[i] = 1


MESHES = {
    "sphere": lambda rng: sphere(),
    "tetrahedron": lambda rng: tetrahedron(),
    "soup": lambda rng: soup(rng, 200),
    "thin": lambda rng: (soup(rng, 100)[0] * [1.0, 1e-4, 1.0], soup(rng, 100)[1]),
    "degenerate": lambda rng: (np.repeat(rng.standard_normal((40, 3)), 3, axis=0), np.arange(120).reshape(-1, 3)),
    "duplicate": lambda rng: (sphere(6, 8)[0], np.concatenate([sphere(6, 8)[1]] * 3)),
    "open": lambda rng: (sphere()[0], sphere()[1][::2]),
    "one": lambda rng: soup(rng, 1),
}


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(sorted(MESHES)),
    scale=st.sampled_from([1e-6, 1.0, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 0.0, 100.0]),
    constructor=st.sampled_from([None, "sah", "median", "lbvh"]),
)
def test_rays_hit_what_brute_force_says(seed, kind, scale, offset, constructor):
    rng = np.random.default_rng(seed)
    points, faces = MESHES[kind](rng)
    points = ((points + offset) * scale).astype(np.float32)
    corners = points[faces].astype(np.float64)
    n = 64
    start = ((rng.standard_normal((n, 3)) * 2 + offset) * scale).astype(np.float32)
    target = corners[rng.integers(len(faces), size=n)].mean(axis=1) + rng.standard_normal((n, 3)) * 0.2 * scale
    direction = ((target - start) / scale).astype(np.float32)
    mesh = make(points, faces, bvh_constructor=constructor)
    face, numbers, hit = wp.zeros(n, dtype=int), wp.zeros((n, 6)), wp.zeros(n, dtype=int)
    limit = 1e30
    inputs = [mesh.id, wp.array(start, dtype=wp.vec3), wp.array(direction, dtype=wp.vec3), limit]
    wp.launch(rays, dim=n, inputs=inputs, outputs=[face, numbers, hit])
    face, numbers = face.numpy(), numbers.numpy()
    t, rim = ray_hits(start.astype(np.float64), direction.astype(np.float64), corners)
    # A ray within the band of an edge may hit either side of it; where everything is, rounding of the points decides.
    band = 1e-5 + 1e-6 * offset * (1e4 if kind == "thin" else 1)
    clear = (np.abs(rim) > band).all(axis=1) | (kind == "sphere")
    first = t.min(axis=1)
    for i in np.flatnonzero(clear):
        if not np.isfinite(first[i]):
            assert face[i] == -1
            continue
        assert face[i] >= 0
        # The face that was found is as near as the nearest.
        assert abs(t[i, face[i]] - first[i]) <= 1e-5 * first[i] + 1e-6 * (1 + offset) or kind == "sphere"
        assert abs(numbers[i, 0] - first[i]) <= 1e-4 * first[i] + 1e-5 * (1 + offset)
    np.testing.assert_array_equal(hit.numpy()[clear], face[clear] >= 0)


@pytest.mark.seed("S-MSH-007")
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(sorted(MESHES)),
    scale=st.sampled_from([1e-6, 1.0, 1.0, 1e6]),
    offset=st.sampled_from([0.0, 0.0, 100.0]),
)
def test_closest_points_are_those_of_brute_force(seed, kind, scale, offset):
    rng = np.random.default_rng(seed)
    points, faces = MESHES[kind](rng)
    points = ((points + offset) * scale).astype(np.float32)
    corners = points[faces].astype(np.float64)
    n = 80
    place = ((rng.standard_normal((n, 3)) * 1.3 + offset) * scale).astype(np.float32)
    mesh = make(points, faces, support_winding_number=True)
    face, out = wp.zeros(n, dtype=int), wp.zeros((n, 6))
    wp.launch(nearest, dim=n, inputs=[mesh.id, wp.array(place, dtype=wp.vec3), 1e30], outputs=[face, out])
    out = out.numpy()
    wide = place[:, None].astype(np.float64)
    expected = np.sqrt(closest_in_triangle(wide, *(corners[None, :, k] for k in range(3))).min(axis=1))
    ulps = 8 * np.spacing(np.abs(points).max())
    assert (face.numpy() >= 0).all()
    np.testing.assert_allclose(out[:, 0], expected, rtol=1e-5, atol=ulps)
    np.testing.assert_allclose(out[:, 4], expected, rtol=1e-5, atol=ulps)
    furthest = np.linalg.norm(corners.reshape(1, -1, 3) - wide, axis=2).max(axis=1)
    np.testing.assert_allclose(out[:, 5], furthest, rtol=1e-5, atol=ulps)
    if kind in ("sphere", "tetrahedron"):
        side = np.where(winding_number(place.astype(np.float64), corners) > 0.5, -1, 1)
        clear = expected > 1e-5 * scale * (1 + offset)
        for column in (1, 2, 3):
            np.testing.assert_array_equal(out[clear, column], side[clear])


@pytest.mark.seed("S-MSH-005", "S-MSH-006", "S-BLT-005", "P-81", "P-82")
def test_a_ray_with_six_outputs():
    @wp.kernel(module="unique")
    def draw(
        mesh: wp.uint64, start: wp.array(dtype=wp.vec3), pixels: wp.array(dtype=wp.vec3), seen: wp.array2d(dtype=float)
    ):
        i = wp.tid()
        t = float(-7.0)
        u = float(-7.0)
        v = float(-7.0)
        sign = float(-7.0)
        n = wp.vec3()
        f = int(-7)
        color = wp.vec3()
        if wp.mesh_query_ray(mesh, start[i], wp.vec3(0.0, 0.0, -1.0), 1.0e6, t, u, v, sign, n, f):
            color = n * 0.5 + wp.vec3(0.5, 0.5, 0.5)
        pixels[i] = color
        seen[i, 0] = t
        seen[i, 1] = sign
        seen[i, 2] = float(f)

    points = wp.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
    indices = wp.array([0, 1, 2], dtype=int)
    velocities = wp.zeros(3, dtype=wp.vec3)
    mesh = wp.Mesh(points, indices, velocities)
    start = wp.array([[0.2, 0.2, 3.0], [0.9, 0.9, 3.0]], dtype=wp.vec3)
    pixels, seen = wp.zeros(2, dtype=wp.vec3), wp.zeros((2, 3))
    wp.launch(draw, dim=2, inputs=[mesh.id, start, pixels, seen])
    np.testing.assert_allclose(pixels.numpy(), [[0.5, 0.5, 1.0], [0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(seen.numpy(), [[3, 1, 0], [-7, -7, -7]])
    # From behind.
    back = make(points.numpy(), np.array([[0, 2, 1]]))
    wp.launch(draw, dim=2, inputs=[back.id, start, pixels, seen])
    np.testing.assert_allclose(seen.numpy()[0], [3, -1, 0])


@pytest.mark.seed("S-MSH-007", "D-09")
def test_closest_points_in_both_forms():
    @wp.kernel(module="unique")
    def both(mesh: wp.uint64, p: wp.vec3, out: wp.array(dtype=float)):
        inside = float(0.0)
        face = int(0)
        u = float(0.0)
        v = float(0.0)
        if wp.mesh_query_point(mesh, p, 10.0, inside, face, u, v):
            out[0] = wp.length(p - wp.mesh_eval_position(mesh, face, u, v))
            out[1] = inside
        if wp.mesh_query_point_sign_normal(mesh, p, 10.0, inside, face, u, v, 1e-3):
            out[2] = inside
        if wp.mesh_query_point_sign_winding_number(mesh, p, 10.0, inside, face, u, v, 2.0, 0.5):
            out[3] = inside
        if wp.mesh_query_point_no_sign(mesh, p, 10.0, face, u, v):
            out[4] = wp.length(p - wp.mesh_eval_position(mesh, face, u, v))
        q = wp.mesh_query_point(mesh, p, 10.0)
        out[5] = wp.length(p - wp.mesh_eval_position(mesh, q.face, q.u, q.v))
        out[6] = q.sign

    points, faces = tetrahedron()
    mesh = make(points, faces, support_winding_number=True)
    out = wp.zeros(7)
    wp.launch(both, dim=1, inputs=[mesh.id, wp.vec3(0.1, 0.2, 0.3), out])
    np.testing.assert_allclose(out.numpy(), [0.1, -1, -1, -1, 0.1, 0.1, -1], rtol=1e-6)
    wp.launch(both, dim=1, inputs=[mesh.id, wp.vec3(-0.1, 0.2, 0.3), out])
    np.testing.assert_allclose(out.numpy(), [0.1, 1, 1, 1, 0.1, 0.1, 1], rtol=1e-6)


@pytest.mark.seed("S-MSH-008", "P-94")
def test_points_that_moved_count_after_refit():
    points, faces = sphere()
    mesh = make(points, faces)
    place = wp.array([[0.0, 0.0, 3.0]], dtype=wp.vec3)
    face, out = wp.zeros(1, dtype=int), wp.zeros((1, 6))
    wp.launch(nearest, dim=1, inputs=[mesh.id, place, 100.0, face, out])
    assert abs(out.numpy()[0, 0] - 2.0) < 1e-5
    mesh.points.assign((points + [0, 0, 1]).astype(np.float32))
    mesh.refit()
    wp.launch(nearest, dim=1, inputs=[mesh.id, place, 100.0, face, out])
    assert abs(out.numpy()[0, 0] - 1.0) < 1e-5
    mesh.points = wp.array(points, dtype=wp.vec3)
    wp.launch(nearest, dim=1, inputs=[mesh.id, place, 100.0, face, out])
    assert abs(out.numpy()[0, 0] - 2.0) < 1e-5


@pytest.mark.seed("S-MSH-001", "S-MSH-003", "S-MSH-004", "S-MSH-009", "S-MSH-010")
def test_members_of_a_mesh():
    points = wp.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]], dtype=wp.vec3)
    indices = wp.array([0, 1, 2, 1, 3, 2], dtype=int)
    velocities = wp.array([[1.0, 2, 3]] * 4, dtype=wp.vec3)
    mesh = wp.Mesh(points, indices, velocities)
    assert mesh.points is points and mesh.indices is indices and mesh.velocities is velocities
    assert mesh.device == points.device and isinstance(mesh.id, int)
    assert wp.Mesh(points, indices).velocities is None
    assert wp.Mesh(points, indices).id != mesh.id

    @wp.func
    def first(m: wp.Mesh):
        return m.points[m.indices[0]]

    @wp.kernel(module="unique")
    def look(mesh: wp.uint64, out: wp.array(dtype=float)):
        m = wp.mesh_get(mesh)
        out[0] = float(m.indices.shape[0])
        out[1] = first(m)[0]
        out[2] = float(wp.mesh_get_index(mesh, 4))
        out[3] = wp.mesh_get_point(mesh, 4)[2]
        out[4] = wp.mesh_get_velocity(mesh, 1)[1]
        out[5] = wp.mesh_eval_velocity(mesh, 1, 0.25, 0.5)[2]
        out[6] = wp.mesh_eval_face_normal(mesh, 0)[2]
        out[7] = wp.length(wp.mesh_eval_position(mesh, 99, 0.1, 0.1)) + wp.length(wp.mesh_get_point(mesh, -1))

    out = wp.zeros(8)
    wp.launch(look, dim=1, inputs=[mesh.id, out])
    np.testing.assert_allclose(out.numpy(), [6, 0, 3, 1, 2, 3, 1, 0], rtol=1e-6)
    del points, indices
    wp.launch(look, dim=1, inputs=[mesh.id, out])
    np.testing.assert_allclose(out.numpy()[:4], [6, 0, 3, 1])


@pytest.mark.seed("D-25")
def test_three_arguments_and_more_options_make_the_same_mesh():
    points, faces = sphere()
    p, i = wp.array(points, dtype=wp.vec3), wp.array(faces.reshape(-1), dtype=int)
    velocities = wp.array(points * 2.0, dtype=wp.vec3)
    newer = wp.Mesh(
        points=p,
        indices=i,
        velocities=velocities,
        support_winding_number=True,
        bvh_constructor="lbvh",
        bvh_leaf_size=2,
        groups=wp.zeros(len(faces), dtype=int),
    )
    place = wp.array(np.random.default_rng(0).standard_normal((50, 3)), dtype=wp.vec3)
    found = []
    for mesh in (wp.Mesh(p, i, velocities), newer):
        assert mesh.velocities is velocities
        face, out = wp.zeros(50, dtype=int), wp.zeros((50, 6))
        wp.launch(nearest, dim=50, inputs=[mesh.id, place, 100.0, face, out])
        found.append(out.numpy()[:, [0, 1, 3, 4, 5]])  # the first has no winding numbers
    np.testing.assert_allclose(*found, rtol=1e-5)
    assert (found[0][:, 0] > 0).all()


@pytest.mark.seed("S-MSH-002")
@pytest.mark.parametrize(
    "arguments, words",
    [
        (lambda p, i: (np.zeros((3, 3)), i), "points"),
        (lambda p, i: (wp.zeros((3, 3)), i), "points"),
        (lambda p, i: (p, wp.zeros((1, 3), dtype=int)), "indices"),
        (lambda p, i: (p, wp.zeros(3, dtype=wp.int64)), "indices"),
        (lambda p, i: (p, wp.zeros(4, dtype=int)), "three for each face"),
        (lambda p, i: (p, wp.array([0, 1, 3], dtype=int)), r"indices\[2\]"),
        (lambda p, i: (p, wp.array([0, -1, 2], dtype=int)), r"indices\[1\]"),
        (lambda p, i: (p, i, wp.zeros(2, dtype=wp.vec3)), "velocities"),
    ],
)
def test_arrays_that_do_not_fit(arguments, words):
    points, indices = wp.zeros(3, dtype=wp.vec3), wp.array([0, 1, 2], dtype=int)
    with pytest.raises((TypeError, ValueError, RuntimeError), match=words):
        wp.Mesh(*arguments(points, indices))


def test_options_that_there_are_not():
    points, indices = wp.zeros(3, dtype=wp.vec3), wp.array([0, 1, 2], dtype=int)
    with pytest.raises(ValueError, match="constructor 'best'"):
        wp.Mesh(points, indices, bvh_constructor="best")
    with pytest.raises(ValueError, match="at least 1"):
        wp.Mesh(points, indices, bvh_leaf_size=0)


def test_ids_of_no_mesh_and_empty_meshes_find_nothing():
    empty = wp.Mesh(wp.zeros(0, dtype=wp.vec3), wp.zeros(0, dtype=int))
    gone = make(*tetrahedron())
    old = gone.id
    del gone
    wp.synchronize()  # a GPU forgets an id when the work before is done
    n = 20
    place = wp.zeros(n, dtype=wp.vec3)
    direction = wp.full(n, wp.vec3(0.3, 0.4, 0.5), dtype=wp.vec3)
    grid = wp.HashGrid(2, 2, 2)
    for number in (empty.id, old, 0, 2**64 - 1, grid.id):
        face, out, hit = wp.zeros(n, dtype=int), wp.zeros((n, 6)), wp.zeros(n, dtype=int)
        wp.launch(nearest, dim=n, inputs=[number, place, 1e30], outputs=[face, out])
        assert (face.numpy() == -1).all()
        wp.launch(rays, dim=n, inputs=[number, place, direction, 1e30], outputs=[face, out, hit])
        assert (face.numpy() == -1).all() and (hit.numpy() == 0).all()


def test_faces_in_a_box_and_in_a_sphere():
    @wp.kernel(module="unique")
    def overlaps(
        mesh: wp.uint64, low: wp.array(dtype=wp.vec3), high: wp.array(dtype=wp.vec3), found: wp.array2d(dtype=int)
    ):
        i = wp.tid()
        query = wp.mesh_query_aabb(mesh, low[i], high[i])
        face = int(0)
        while wp.mesh_query_aabb_next(query, face):
            found[i, face] += 1
        for f in wp.mesh_query_sphere(mesh, low[i], 0.3):
            found[i, f] += 100

    rng = np.random.default_rng(0)
    points, faces = soup(rng, 300)
    points = points.astype(np.float32)
    mesh = make(points, faces)
    low = rng.standard_normal((50, 3)).astype(np.float32)
    high = low + rng.random((50, 3)).astype(np.float32)
    found = wp.zeros((50, 300), dtype=int)
    wp.launch(overlaps, dim=50, inputs=[mesh.id, wp.array(low, dtype=wp.vec3), wp.array(high, dtype=wp.vec3), found])
    lower, upper = points[faces].min(axis=1), points[faces].max(axis=1)
    meets = ((lower[None] <= high[:, None]) & (upper[None] >= low[:, None])).all(axis=2)
    np.testing.assert_array_equal(found.numpy() % 100, meets)
    corners = points[faces].astype(np.float64)
    distance = np.sqrt(closest_in_triangle(low[:, None].astype(np.float64), *(corners[None, :, k] for k in range(3))))
    sure = np.abs(distance - 0.3) > 1e-6
    np.testing.assert_array_equal((found.numpy() // 100)[sure], (distance <= 0.3)[sure])


def test_float64():
    @wp.kernel(module="unique")
    def look(mesh: wp.uint64, p: wp.array(dtype=wp.vec3d), out: wp.array2d(dtype=wp.float64)):
        i = wp.tid()
        q = wp.mesh_query_point(mesh, p[i], wp.float64(1e6))
        out[i, 0] = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - p[i]) * q.sign
        r = wp.mesh_query_ray(mesh, p[i], -p[i], wp.float64(10.0))
        out[i, 1] = r.t

    points, faces = sphere(20, 24)
    rng = np.random.default_rng(1)
    place = rng.standard_normal((100, 3)) * 2
    mesh = make(points, faces, dtype=wp.vec3d)
    out = wp.zeros((100, 2), dtype=wp.float64)
    wp.launch(look, dim=100, inputs=[mesh.id, wp.array(place, dtype=wp.vec3d), out])
    corners = points[faces]
    squared = closest_in_triangle(place[:, None], *(corners[None, :, k] for k in range(3))).min(axis=1)
    sign = np.where(winding_number(place, corners) > 0.5, -1, 1)
    np.testing.assert_allclose(out.numpy()[:, 0], np.sqrt(squared) * sign, rtol=1e-12, atol=1e-14)
    t, _ = ray_hits(place, -place, corners)
    np.testing.assert_allclose(out.numpy()[:, 1], t.min(axis=1), rtol=1e-11)


@pytest.mark.parametrize("real, vec", [(wp.float32, wp.vec3), (wp.float64, wp.vec3d)])
def test_the_closest_point_of_a_face_without_area_or_nearly(real, vec):
    """Long ones, of coordinates that are no short numbers: rounding says that they have an area."""

    @wp.kernel(module="unique")
    def closest(meshes: wp.array(dtype=wp.uint64), p: wp.array(dtype=vec), out: wp.array(dtype=vec)):
        i = wp.tid()
        q = wp.mesh_query_point_no_sign(meshes[i], p[i], real(1e30))
        out[i] = wp.mesh_eval_position(meshes[i], q.face, q.u, q.v)

    rng = np.random.default_rng(5)
    count, dtype = 400, np.float64 if real is wp.float64 else np.float32
    scale = 10.0 ** rng.uniform(-6, 6, (count, 1, 1))
    corners = rng.standard_normal((count, 3, 3)) * scale
    corners[::4, 2] = corners[::4, 1]
    corners[1::4, 1] = corners[1::4, 0]
    corners[2::4, 2] = (0.3 * corners + 0.7 * corners[:, [1, 2, 0]])[2::4, 0]
    corners = corners.astype(dtype)
    t = rng.uniform(-0.2, 1.2, (count, 1))
    near = corners[:, 0] * (1 - t) + corners[:, 1] * t
    p = (near + rng.standard_normal((count, 3)) * scale[:, 0] * 10.0 ** rng.uniform(-8, 0, (count, 1))).astype(dtype)
    meshes = [make(c, np.array([[0, 1, 2]]), dtype=vec) for c in corners]
    out = wp.zeros(count, dtype=vec)
    ids = wp.array([mesh.id for mesh in meshes], dtype=wp.uint64)
    wp.launch(closest, dim=count, inputs=[ids, wp.array(p, dtype=vec), out])
    found = np.linalg.norm(out.numpy().astype(np.float64) - p, axis=1)
    wide, place = corners.astype(np.float64), p.astype(np.float64)
    expected = np.sqrt(closest_in_triangle(place, wide[:, 0], wide[:, 1], wide[:, 2]))
    ulp = np.spacing(np.maximum(np.abs(corners).max(axis=(1, 2)), np.abs(p).max(axis=1)))
    slack = 1e-5 * expected + 4 * ulp + (1e-15 * scale[:, 0, 0] if dtype == np.float64 else 0)
    assert (found <= expected + slack).all()


@wp.kernel
def rays_and_points(
    mesh: wp.array(dtype=wp.uint64),
    start: wp.array(dtype=wp.vec3),
    direction: wp.array(dtype=wp.vec3),
    limit: wp.array(dtype=float),
    face: wp.array(dtype=int),
    crossings: wp.array(dtype=int),
    near: wp.array(dtype=int),
    sign: wp.array(dtype=float),
):
    i = wp.tid()
    hit = wp.mesh_query_ray(mesh[i], start[i], direction[i], limit[i])
    face[i] = hit.face if hit.result else -1
    crossings[i] = wp.mesh_query_ray_count_intersections(mesh[i], start[i], direction[i])
    point = wp.mesh_query_point_sign_normal(mesh[i], start[i], limit[i])
    near[i] = point.face if point.result else -1
    sign[i] = point.sign


@pytest.mark.parametrize("coherent, kinds", [(True, 2), (True, 6), (False, 6)])
def test_a_lane_does_not_change_the_answers_of_the_others(coherent, kinds):
    # Lanes are traced together, or in turns: next to lanes that ask another mesh, ask for nothing or have numbers that
    # are no numbers, each gets what it gets alone.
    rng = np.random.default_rng(12)
    meshes = [make(*sphere(60, 80)), make(*soup(rng, 40)), make(np.zeros((0, 3)), np.zeros(0, dtype=int))]
    count = 64 * 7 + 3
    start = rng.standard_normal((count, 3)) if not coherent else np.tile([0.1, -3.0, 0.2], (count, 1))
    towards = -start + 0.4 * rng.standard_normal((count, 3))
    direction = towards if not coherent else [0.01, 1.0, 0.01] + 0.08 * rng.random((count, 3))
    limit = np.full(count, 1e6)
    ids = np.array([meshes[0].id] * count, dtype=np.uint64)
    odd = rng.choice(8, count) % (8 if kinds == 6 else 2) * (rng.random(count) < 0.5)
    limit[odd == 1] = [[math.nan, -1.0, 0.0, math.inf, 0.5][i] for i in rng.integers(0, 5, (odd == 1).sum())]
    start[odd == 2] = [math.nan, 0.0, 0.0]
    direction[odd == 3] *= 0.0
    direction[(odd == 4) & (rng.random(count) < 0.5)] = [0.0, math.inf, 0.0]
    ids[odd == 5] = [[meshes[1].id, meshes[2].id, 0][i] for i in rng.integers(0, 3, (odd == 5).sum())]

    def answers(some):
        arguments = [
            wp.array(ids[some], dtype=wp.uint64),
            wp.array(start[some], dtype=wp.vec3),
            wp.array(direction[some], dtype=wp.vec3),
            wp.array(limit[some], dtype=float),
        ]
        found = [wp.zeros(len(some), dtype=dtype) for dtype in (int, int, int, float)]
        wp.launch(rays_and_points, dim=len(some), inputs=arguments, outputs=found)
        return np.stack([array.numpy() for array in found], axis=1)

    together = answers(np.arange(count))
    alone = np.concatenate([answers(np.array([i])) for i in range(count)])
    np.testing.assert_array_equal(together, alone)
    assert (together[:, 0] >= 0).sum() > count / 4 and len(set(together[:, 0])) > 10

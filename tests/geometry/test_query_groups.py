"""Queries of one group find what they find in everything, as far as it belongs to the group; in each form."""

import numpy as np
import pytest
import warp as wp
from brute_force import ray_hits, soup

TYPES = {"float32": (wp.float32, wp.vec3), "float64": (wp.float64, wp.vec3d)}


@pytest.mark.parametrize("name", list(TYPES))
def test_rays_to_the_faces_of_a_group(name):
    real, vec = TYPES[name]

    @wp.kernel(module="unique")
    def look(
        mesh: wp.uint64,
        start: wp.array(dtype=vec),
        direction: wp.array(dtype=vec),
        group: wp.array(dtype=int),
        t: wp.array2d(dtype=real),
        found: wp.array2d(dtype=int),
    ):
        i = wp.tid()
        far = real(1e6)
        root = wp.mesh_get_group_root(mesh, group[i])
        q = wp.mesh_query_ray(mesh, start[i], direction[i], far, root)
        found[i, 0] = wp.where(q.result, q.face, -1)
        t[i, 0] = q.t
        distance = real(0.0)
        u = real(0.0)
        v = real(0.0)
        sign = real(0.0)
        normal = vec()
        face = int(-1)
        if wp.mesh_query_ray(mesh, start[i], direction[i], far, distance, u, v, sign, normal, face, root):
            t[i, 1] = distance
        found[i, 1] = face
        if wp.mesh_query_ray_anyhit(mesh, start[i], direction[i], far, root):
            found[i, 2] = 1
        found[i, 3] = wp.mesh_query_ray_count_intersections(mesh, start[i], direction[i], root)

    rng = np.random.default_rng(1)
    points, faces = soup(rng, 120)
    points = points.astype(np.float32).astype(np.float64)
    groups = rng.choice([-3, 2, 7, 900], len(faces)).astype(np.int32)
    n = 200
    start, direction = (rng.standard_normal((n, 3)).astype(np.float32).astype(np.float64) for _ in range(2))
    group = rng.choice([-3, 2, 7, 900, 5], n).astype(np.int32)  # there is no group 5: then it is everything
    mesh = wp.Mesh(wp.array(points, dtype=vec), wp.array(faces.reshape(-1), dtype=int), groups=wp.array(groups))
    t, found = wp.zeros((n, 2), dtype=real), wp.zeros((n, 4), dtype=int)
    inputs = [mesh.id, wp.array(start, dtype=vec), wp.array(direction, dtype=vec), wp.array(group)]
    wp.launch(look, dim=n, inputs=inputs, outputs=[t, found])
    t, found = t.numpy(), found.numpy()
    hits, rim = ray_hits(start, direction, points[faces])
    assert (np.abs(rim) > 1e-6).all()
    hits[(groups[None] != group[:, None]) & (group[:, None] != 5)] = np.inf
    first = hits.argmin(axis=1)
    is_hit = np.isfinite(hits.min(axis=1))
    np.testing.assert_array_equal(found[:, 0], np.where(is_hit, first, -1))
    np.testing.assert_array_equal(found[:, 1], found[:, 0])
    np.testing.assert_array_equal(found[:, 2], is_hit)
    np.testing.assert_array_equal(found[:, 3], np.isfinite(hits).sum(axis=1))
    for k in range(2):
        np.testing.assert_allclose(t[is_hit, k], hits.min(axis=1)[is_hit], rtol=1e-4 if name == "float32" else 1e-11)
    assert 0.2 < is_hit.mean() < 0.95


@pytest.mark.parametrize("name", list(TYPES))
def test_boxes_of_a_group(name):
    real, vec = TYPES[name]

    @wp.kernel(module="unique")
    def overlaps(
        bvh: wp.uint64,
        low: wp.array(dtype=vec),
        way: wp.array(dtype=vec),
        group: wp.array(dtype=int),
        found: wp.array4d(dtype=int),
    ):
        i = wp.tid()
        for which in range(2):
            root = -1 if which == 0 else wp.bvh_get_group_root(bvh, group[i])
            for k in wp.bvh_query_aabb(bvh, low[i], low[i] + vec(real(0.2)), root):
                found[which, 0, i, k] += 1
            for k in wp.bvh_query_sphere(bvh, low[i], real(0.2), root):
                found[which, 1, i, k] += 1
            for k in wp.bvh_query_ray(bvh, low[i], way[i], root):
                found[which, 2, i, k] += 1
            for k in wp.bvh_query_capsule(bvh, low[i], way[i], real(0.1), root):
                found[which, 3, i, k] += 1

    rng = np.random.default_rng(2)
    n, m = 60, 300
    lower, low = rng.random((m, 3)).astype(np.float32), rng.random((n, 3)).astype(np.float32)
    groups = rng.choice([0, 1, 2, 4], m).astype(np.int32)
    group = rng.choice([0, 1, 2, 4], n).astype(np.int32)
    boxes = [wp.array(x, dtype=vec) for x in (lower, lower + np.float32(0.05))]
    bvh = wp.Bvh(*boxes, groups=wp.array(groups))
    found = wp.zeros((2, 4, n, m), dtype=int)
    ways = wp.array(rng.standard_normal((n, 3)), dtype=vec)
    wp.launch(overlaps, dim=n, inputs=[bvh.id, wp.array(low, dtype=vec), ways, wp.array(group), found])
    everything, of_group = found.numpy()
    assert everything.max() == 1 and (everything.sum(axis=(1, 2)) > 30).all()
    np.testing.assert_array_equal(of_group, everything * (groups[None, None] == group[None, :, None]))


@pytest.mark.parametrize("name", list(TYPES))
def test_limits_of_distances(name):
    """The closest point at most so far, the furthest at least so far away, in both forms."""
    real, vec = TYPES[name]

    @wp.kernel(module="unique")
    def look(mesh: wp.uint64, limit: wp.array(dtype=real), out: wp.array2d(dtype=int)):
        i = wp.tid()
        place = vec(real(1.0), real(1.0), real(2.0))
        face = int(-1)
        u = real(0.0)
        v = real(0.0)
        if wp.mesh_query_point_no_sign(mesh, place, limit[i]).result:
            out[i, 0] = 1
        if wp.mesh_query_point_no_sign(mesh, place, limit[i], face, u, v):
            out[i, 1] = 1
        if wp.mesh_query_furthest_point_no_sign(mesh, place, limit[i]).result:
            out[i, 2] = 1
        if wp.mesh_query_furthest_point_no_sign(mesh, place, limit[i], face, u, v):
            out[i, 3] = 1
        if wp.mesh_query_ray(mesh, place, vec(real(0.0), real(0.0), real(-4.0)), limit[i]).result:
            out[i, 4] = 1
        if wp.mesh_query_ray_anyhit(mesh, place, vec(real(0.0), real(0.0), real(-4.0)), limit[i]):
            out[i, 5] = 1

    corners = wp.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]], dtype=vec)  # the furthest corner is sqrt(14) away
    mesh = wp.Mesh(corners, wp.array([0, 1, 2], dtype=int))
    limits = [-1.0, 0.49, 0.51, 1.99, 2.01, 3.74, 3.75]
    out = wp.zeros((len(limits), 6), dtype=int)
    wp.launch(look, dim=len(limits), inputs=[mesh.id, wp.array(limits, dtype=real)], outputs=[out])
    near, far, along = [0, 0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1, 1]
    np.testing.assert_array_equal(out.numpy().T, [near, near, far, far, along, along])

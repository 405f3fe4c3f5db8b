"""Meshes, BVHs and hash grids of arrays on each kind of device."""

import numpy as np
import pytest
import warp as wp


def cloud(count, seed=0):
    return np.random.default_rng(seed).random((count, 3)).astype(np.float32)


@pytest.mark.parametrize("change", ["none", "refit", "points"])
def test_a_mesh_is_queried_where_its_arrays_are(device, change):
    @wp.kernel(module="unique")
    def look(mesh: wp.uint64, start: wp.array(dtype=wp.vec3), out: wp.array2d(dtype=float)):
        i = wp.tid()
        q = wp.mesh_query_ray(mesh, start[i], wp.vec3(0.0, 0.0, -1.0), 10.0)
        out[i, 0] = wp.where(q.result, q.t, -1.0)
        p = wp.mesh_query_point(mesh, start[i], 10.0)
        out[i, 1] = wp.length(wp.mesh_eval_position(mesh, p.face, p.u, p.v) - start[i])
        for face in wp.mesh_query_aabb(mesh, start[i] - wp.vec3(5.0), start[i] + wp.vec3(5.0)):
            out[i, 2] += float(face + 1)

    corners = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0], [4, 4, 0]], np.float32)
    points = wp.array(corners, dtype=wp.vec3, device=device)
    mesh = wp.Mesh(
        points, wp.array([0, 1, 2, 1, 3, 2], dtype=int, device=device), groups=wp.zeros(2, dtype=int, device=device)
    )
    assert mesh.device == device
    if change == "refit":
        wp.copy(points, wp.array(corners + [0, 0, 1], dtype=wp.vec3, device=device))
        mesh.refit()
    elif change == "points":
        mesh.points = wp.array(corners + [0, 0, 1], dtype=wp.vec3, device=device)
    height = 3.0 if change == "none" else 2.0
    start = wp.array([[1, 1, 3], [3.5, 3, 3], [9, 1, 3]], dtype=wp.vec3, device=device)
    out = wp.zeros((3, 3), dtype=float, device=device)
    wp.launch(look, dim=3, inputs=[mesh.id, start, out], device=device)
    expected = [[height, height, 3], [height, height, 3], [-1, np.hypot(5, height), 3]]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_boxes_are_queried_where_their_arrays_are(device):
    @wp.kernel(module="unique")
    def overlaps(bvh: wp.uint64, low: wp.array(dtype=wp.vec3), found: wp.array2d(dtype=int)):
        i = wp.tid()
        for k in wp.bvh_query_aabb(bvh, low[i], low[i] + wp.vec3(0.2)):
            found[i, k] += 1

    lower, low = cloud(100), cloud(20, 1)
    boxes = [wp.array(x, dtype=wp.vec3, device=device) for x in (lower, lower + np.float32(0.1))]
    bvh = wp.Bvh(*boxes)
    meets = ((lower[None] <= low[:, None] + np.float32(0.2)) & (lower[None] + np.float32(0.1) >= low[:, None])).all(2)
    for change in (lambda: None, bvh.refit, bvh.rebuild):
        change()
        found = wp.zeros((20, 100), dtype=int, device=device)
        wp.launch(overlaps, dim=20, inputs=[bvh.id, wp.array(low, dtype=wp.vec3, device=device), found], device=device)
        np.testing.assert_array_equal(found.numpy(), meets)


def test_neighbours_are_found_where_the_points_are(device):
    @wp.kernel(module="unique")
    def count(grid: wp.uint64, p: wp.array(dtype=wp.vec3), group: wp.array(dtype=int), n: wp.array2d(dtype=int)):
        i = wp.tid()
        for j in wp.hash_grid_query(grid, p[i], 0.2):
            if wp.length(p[i] - p[j]) < 0.2:
                n[i, 0] += 1
        for j in wp.hash_grid_query(grid, p[i], 0.2, group[i]):
            if wp.length(p[i] - p[j]) < 0.2:
                n[i, 1] += 1

    points, groups = cloud(300), np.arange(300, dtype=np.int32) % 3
    p, g = wp.array(points, dtype=wp.vec3, device=device), wp.array(groups, device=device)
    if device == "cpu:protected":
        with pytest.raises(RuntimeError, match=r"not on 'cpu:protected'. help: device='cpu', with points.to\('cpu'\)"):
            wp.HashGrid(8, 8, 8, device=device)
        device = "cpu"
        p, g = p.to(device), g.to(device)
    grid = wp.HashGrid(8, 8, 8, device=device)
    assert grid.device == device
    grid.build(p, 0.2, groups=g)
    n = wp.zeros((300, 2), dtype=int, device=device)
    wp.launch(count, dim=300, inputs=[grid.id, p, g, n], device=device)
    near = np.linalg.norm(points[:, None].astype(np.float64) - points[None], axis=2) < 0.2
    expected = np.stack([near.sum(1), (near & (groups[:, None] == groups)).sum(1)], axis=1)
    np.testing.assert_array_equal(n.numpy(), expected)


@pytest.mark.parametrize("device", ["cpu:protected"], indirect=True)
def test_arrays_of_two_devices_are_refused(device):
    here, there = wp.zeros(3, dtype=wp.vec3, device="cpu"), wp.zeros(3, dtype=wp.vec3, device=device)
    indices = wp.array([0, 1, 2], dtype=int, device="cpu")
    with pytest.raises(RuntimeError, match=rf"indices is on 'cpu', and points on '{device}'. help: indices.to"):
        wp.Mesh(there, indices)
    with pytest.raises(RuntimeError, match=rf"uppers is on '{device}', and lowers on 'cpu'. help: uppers.to"):
        wp.Bvh(here, there)
    with pytest.raises(RuntimeError, match=rf"an array on '{device}'. help: array.to\('cpu'\)"):
        wp.HashGrid(4, 4, 4, device="cpu").build(there, 1.0)

"""BVHs, groups of faces, and the tree of a mesh as a BVH."""

import numpy as np
import warp as wp
from brute_force import make, soup
from mesh_kernels import nearest
from run_in_threads import run_in_threads


def test_bvh_queries():
    @wp.kernel(module="unique")
    def all_of_them(
        bvh: wp.uint64,
        low: wp.array(dtype=wp.vec3),
        high: wp.array(dtype=wp.vec3),
        group: wp.array(dtype=int),
        found: wp.array3d(dtype=int),
    ):
        i = wp.tid()
        query = wp.bvh_query_aabb(bvh, low[i], high[i])
        item = int(-1)
        while wp.bvh_query_next(query, item):
            found[0, i, item] += 1
        for k in wp.bvh_query_sphere(bvh, low[i], 0.2):
            found[1, i, k] += 1
        for k in wp.bvh_query_ray(bvh, low[i], high[i] - low[i]):
            found[2, i, k] += 1
        for k in wp.bvh_query_aabb(bvh, low[i], high[i], wp.bvh_get_group_root(bvh, group[i])):
            found[3, i, k] += 1

    rng = np.random.default_rng(4)
    n, m = 60, 400
    lower = rng.random((m, 3)).astype(np.float32)
    upper = lower + rng.random((m, 3)).astype(np.float32) * 0.1
    groups = rng.integers(-2, 4, m).astype(np.int32)
    low = rng.random((n, 3)).astype(np.float32)
    high = low + rng.random((n, 3)).astype(np.float32) * 0.3
    asked = np.arange(n).astype(np.int32) % 7 - 2  # 4 is no group: then everything is asked for
    lo, up = wp.array(lower, dtype=wp.vec3), wp.array(upper, dtype=wp.vec3)
    bvh = wp.Bvh(lo, up, groups=wp.array(groups))
    for change in (lambda: None, bvh.refit, bvh.rebuild, lambda: bvh.rebuild("lbvh"), lambda: bvh.rebuild("median")):
        change()
        found = wp.zeros((4, n, m), dtype=int)
        inputs = [bvh.id, wp.array(low, dtype=wp.vec3), wp.array(high, dtype=wp.vec3), wp.array(asked), found]
        wp.launch(all_of_them, dim=n, inputs=inputs)
        found = found.numpy()
        meets = ((lower[None] <= high[:, None]) & (upper[None] >= low[:, None])).all(axis=2)
        np.testing.assert_array_equal(found[0], meets)
        np.testing.assert_array_equal(found[3], meets & ((groups[None] == asked[:, None]) | (asked[:, None] == 4)))
        outside = np.maximum(np.maximum(lower[None] - low[:, None], low[:, None] - upper[None]), 0).astype(np.float64)
        distance = np.linalg.norm(outside, axis=2)
        sure = np.abs(distance - 0.2) > 1e-6
        np.testing.assert_array_equal(found[1][sure], (distance <= 0.2)[sure])
        d = (high - low)[:, None].astype(np.float64)
        near = (lower[None] - low[:, None]) / d
        far = (upper[None] - low[:, None]) / d
        enter, leave = np.maximum(near.max(axis=2), 0), far.min(axis=2)
        sure = np.abs(enter - leave) > 1e-5
        np.testing.assert_array_equal(found[2][sure], (enter <= leave)[sure])


def test_threads_that_make_query_and_free():
    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(6):
            points, faces = soup(rng, 60)
            mesh = make(points.astype(np.float32), faces)
            place = wp.array(rng.standard_normal((40, 3)), dtype=wp.vec3)
            face, out = wp.zeros(40, dtype=int), wp.zeros((40, 6))
            wp.launch(nearest, dim=40, inputs=[mesh.id, place, 1e30], outputs=[face, out])
            assert (face.numpy() >= 0).all()

    run_in_threads(work, range(8))


def test_faces_of_a_group_and_crossings():
    @wp.kernel(module="unique")
    def look(mesh: wp.uint64, group: wp.array(dtype=int), out: wp.array2d(dtype=int)):
        i = wp.tid()
        root = wp.mesh_get_group_root(mesh, group[i])
        start = wp.vec3(0.2, 0.2, -5.0)
        up = wp.vec3(0.0, 0.0, 1.0)
        q = wp.mesh_query_ray(mesh, start, up, 100.0, root)
        out[i, 0] = wp.where(q.result, q.face, -1)
        out[i, 1] = wp.mesh_query_ray_count_intersections(mesh, start, up, root)
        out[i, 2] = wp.mesh_query_ray_count_intersections(mesh, start, up)
        face = int(0)
        query = wp.mesh_query_aabb(mesh, wp.vec3(-9.0, -9.0, -9.0), wp.vec3(9.0, 9.0, 2.5))
        while wp.mesh_query_next(query, face):
            out[i, 3] += 1

    layer = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    points = np.concatenate([layer + [0, 0, z] for z in range(4)])
    mesh = make(points, np.arange(12).reshape(-1, 3), groups=wp.array([5, 9, 5, 9], dtype=int))
    out = wp.zeros((2, 4), dtype=int)
    wp.launch(look, dim=2, inputs=[mesh.id, wp.array([5, 9], dtype=int), out])
    assert out.numpy().tolist() == [[0, 2, 4, 3], [1, 2, 4, 3]]


def test_the_tree_of_a_mesh_as_a_bvh():
    @wp.kernel(module="unique")
    def overlaps(
        mesh: wp.uint64, low: wp.array(dtype=wp.vec3), high: wp.array(dtype=wp.vec3), found: wp.array3d(dtype=int)
    ):
        i = wp.tid()
        for face in wp.mesh_query_aabb(mesh, low[i], high[i]):
            found[0, i, face] += 1
        bvh = wp.mesh_get_bvh(mesh)
        query = wp.bvh_query_aabb(bvh, low[i], high[i])
        face = int(0)
        while wp.bvh_query_next(query, face):
            found[1, i, face] += 1
        root = wp.bvh_get_group_root(bvh, 7)
        if root == wp.mesh_get_group_root(mesh, 7):
            for face in wp.bvh_query_aabb(bvh, low[i], high[i], root):
                found[2, i, face] += 1

    rng = np.random.default_rng(6)
    points, faces = soup(rng, 200)
    groups = rng.choice([3, 7], 200).astype(np.int32)
    low = rng.standard_normal((40, 3)).astype(np.float32)
    corners = wp.array(low, dtype=wp.vec3), wp.array(low + 0.5, dtype=wp.vec3)
    mesh = make(points, faces, groups=wp.array(groups))
    found = wp.zeros((3, 40, 200), dtype=int)
    wp.launch(overlaps, dim=40, inputs=[mesh.id, *corners, found])
    found = found.numpy()
    assert found[0].sum() > 500
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0] * (groups == 7))
    gone = mesh.id
    del mesh
    for number in (gone, 0):
        found = wp.zeros((3, 40, 200), dtype=int)
        wp.launch(overlaps, dim=40, inputs=[number, *corners, found])
        assert not found.numpy().any()


def test_a_limit_along_rays_says_nothing_of_boxes_and_spheres():
    """As release 1.19 has it."""

    @wp.kernel(module="unique")
    def count(bvh: wp.uint64, limit: float, out: wp.array(dtype=int)):
        i = int(0)
        box = wp.bvh_query_aabb(bvh, wp.vec3(0.0, 0.0, 0.0), wp.vec3(10.0, 10.0, 10.0))
        while wp.bvh_query_next(box, i, limit):
            out[0] += 1
        ball = wp.bvh_query_sphere(bvh, wp.vec3(0.0, 0.0, 0.0), 5.0)
        while wp.bvh_query_next(ball, i, limit):
            out[1] += 1
        ray = wp.bvh_query_ray(bvh, wp.vec3(-1.0, 0.5, 0.5), wp.vec3(1.0, 0.0, 0.0))
        while wp.bvh_query_next(ray, i, limit):
            out[2] += 1

    low = wp.array([[x, 0.0, 0.0] for x in range(10)], dtype=wp.vec3)
    bvh = wp.Bvh(low, wp.array([[x + 1.0, 1.0, 1.0] for x in range(10)], dtype=wp.vec3))
    for limit, along in ((-1.0, 0), (0.5, 0), (3.5, 3), (1e9, 10)):
        out = wp.zeros(3, dtype=int)
        wp.launch(count, dim=1, inputs=[bvh.id, limit, out])
        assert out.numpy().tolist() == [10, 6, along]


def test_boxes_near_a_ray():
    @wp.kernel(module="unique")
    def sweep(
        bvh: wp.uint64, start: wp.array(dtype=wp.vec3), direction: wp.array(dtype=wp.vec3), found: wp.array2d(dtype=int)
    ):
        i = wp.tid()
        for k in wp.bvh_query_capsule(bvh, start[i], direction[i], 0.1):
            found[i, k] += 1
        query = wp.bvh_query_ray(bvh, start[i], direction[i])
        item = int(0)
        while wp.bvh_query_next(query, item, 0.5):
            found[i, item] += 100

    rng = np.random.default_rng(8)
    lower = rng.random((300, 3)).astype(np.float32)
    upper = lower + np.float32(0.02)
    start, direction = (rng.random((40, 3)).astype(np.float32) for _ in range(2))
    bvh = wp.Bvh(wp.array(lower, dtype=wp.vec3), wp.array(upper, dtype=wp.vec3), leaf_size=2)
    found = wp.zeros((40, 300), dtype=int)
    inputs = [bvh.id, wp.array(start, dtype=wp.vec3), wp.array(direction, dtype=wp.vec3), found]
    wp.launch(sweep, dim=40, inputs=inputs)
    found = found.numpy()

    def interval(grow):
        d, s = direction[:, None].astype(np.float64), start[:, None].astype(np.float64)
        near, far = (lower[None] - grow - s) / d, (upper[None] + grow - s) / d
        return np.maximum(near.max(axis=2), 0), far.min(axis=2)

    # Every box that the ball may touch is among them, and none beyond boxes that are larger by the radius.
    enter, leave = interval(0.1)
    sure = np.abs(enter - leave) > 1e-5
    assert (found[sure] % 100 <= (enter <= leave)[sure]).all()
    touched = np.zeros((40, 300), bool)
    for t in np.linspace(0, 3, 400):
        at = start[:, None] + t * direction[:, None]
        outside = np.maximum(np.maximum(lower[None] - at, at - upper[None]), 0)
        touched |= np.linalg.norm(outside, axis=2) < 0.0999
    assert (found % 100)[touched].all()
    enter, leave = interval(0.0)
    sure = (np.abs(enter - leave) > 1e-5) & (np.abs(enter - 0.5) > 1e-5)
    np.testing.assert_array_equal((found // 100)[sure], ((enter <= leave) & (enter <= 0.5))[sure])

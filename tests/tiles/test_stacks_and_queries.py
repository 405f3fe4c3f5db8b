"""Stacks of a block, and queries of trees by a block."""

import numpy as np
import pytest
import warp as wp

RNG = np.random.default_rng(15)


@wp.kernel
def push_and_pop(
    n: int, slots: wp.array2d[int], counts: wp.array2d[int], popped: wp.array2d[int], rest: wp.array2d[int]
):
    i, lane = wp.tid()
    s = wp.tile_stack(capacity=100, dtype=int)
    for first in range(0, n, wp.block_dim()):
        j = first + lane
        slot = wp.tile_stack_push(s, 10 * j, j < n and j % 2 == 0)
        if j < n:
            slots[i, j] = slot
    total = wp.tile_stack_count(s)
    if lane == 0:
        counts[i, 0] = total
    k = int(0)
    while wp.tile_stack_count(s) > 0:
        value, slot = wp.tile_stack_pop(s)
        if slot >= 0:
            popped[i, slot] = value
        k += 1
    value, slot = wp.tile_stack_pop(s)
    rest[i, lane] = slot
    if lane == 0:
        counts[i, 1] = wp.tile_stack_count(s)


def test_pushes_and_pops_with_masks(lanes):
    n = 90
    slots, counts = wp.full((2, n), -7, dtype=int), wp.full((2, 2), -7, dtype=int)
    popped, rest = wp.full((2, 100), -7, dtype=int), wp.full((2, lanes), -7, dtype=int)
    wp.launch_tiled(push_and_pop, dim=[2], inputs=[n, slots, counts, popped, rest], block_dim=lanes)
    assert counts.numpy().tolist() == [[45, 0]] * 2
    assert (rest.numpy() == -1).all()
    for found, values in zip(slots.numpy(), popped.numpy()):
        assert (found[1::2] == -1).all()
        assert sorted(found[::2]) == list(range(45))
        assert sorted(values[:45]) == list(range(0, 900, 20))
        assert (values[45:] == -7).all()


@wp.kernel
def last_in(out: wp.array2d[int]):
    i, lane = wp.tid()
    s = wp.tile_stack(300, wp.int32)
    for k in range(4):
        wp.tile_stack_push(s, k, True)
    for k in range(4):
        value, slot = wp.tile_stack_pop(s)
        out[k, lane] = wp.where(slot >= 0, value, -1)


def test_the_last_pushed_is_popped_first(lanes):
    out = wp.zeros((4, lanes), dtype=int)
    wp.launch_tiled(last_in, dim=[1], inputs=[out], block_dim=lanes)
    np.testing.assert_array_equal(out.numpy(), np.repeat([[3], [2], [1], [0]], lanes, axis=1))


@wp.kernel
def overfill(slots: wp.array2d[int], counts: wp.array[int]):
    i, lane = wp.tid()
    s = wp.tile_stack(capacity=5, dtype=float)
    for k in range(8):
        slot = wp.tile_stack_push(s, float(k), lane == 0)
        if lane == 0:
            slots[0, k] = slot
    if lane == 0:
        counts[0] = wp.tile_stack_count(s)
    wp.tile_stack_clear(s)
    if lane == 0:
        counts[1] = wp.tile_stack_count(s)
    slot = wp.tile_stack_push(s, 1.0, lane == 0)
    if lane == 0:
        slots[1, 0] = slot
        counts[2] = wp.tile_stack_count(s)


def test_a_full_stack_drops_and_a_cleared_one_is_empty(lanes):
    slots, counts = wp.full((2, 8), -7, dtype=int), wp.zeros(3, dtype=int)
    wp.launch_tiled(overfill, dim=[1], inputs=[slots, counts], block_dim=lanes)
    assert slots.numpy()[0].tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
    assert slots.numpy()[1, 0] == 0
    assert counts.numpy().tolist() == [5, 0, 1]


def test_more_lanes_than_a_stack_has_places(blocks):
    @wp.kernel
    def push(slots: wp.array[int], counts: wp.array[int], values: wp.array[int]):
        i, lane = wp.tid()
        s = wp.tile_stack(capacity=10, dtype=int)
        slots[lane] = wp.tile_stack_push(s, lane, lane % 3 != 0)
        counts[lane] = wp.tile_stack_count(s)
        value, slot = wp.tile_stack_pop(s)
        values[lane] = wp.where(slot >= 0, value, -1)

    slots, counts, values = (wp.zeros(32, dtype=int) for _ in range(3))
    wp.launch_tiled(push, dim=[1], inputs=[slots, counts, values], block_dim=32)
    kept = slots.numpy() >= 0
    assert sorted(slots.numpy()[kept]) == list(range(10)) and not kept[::3].any()
    assert (counts.numpy() == 10).all()
    assert sorted(values.numpy()[values.numpy() >= 0]) == list(np.flatnonzero(kept))


@wp.struct
class Node:
    depth: int
    weight: float
    place: wp.vec2


@wp.kernel
def walk(levels: int, leaves: wp.array2d[float], visits: wp.array[int]):
    """A binary tree, walked by all lanes together: each takes a node and pushes its two children."""
    i, lane = wp.tid()
    s = wp.tile_stack(capacity=256, dtype=Node)
    root = Node()
    root.weight = 1.0
    root.place = wp.vec2(0.0, float(i))
    wp.tile_stack_push(s, root, lane == 0)
    seen = int(0)
    while wp.tile_stack_count(s) > 0:
        node, slot = wp.tile_stack_pop(s)
        inner = slot >= 0 and node.depth < levels
        if slot >= 0:
            seen += 1
            if node.depth == levels:
                leaves[i, int(node.place[0])] = node.weight + node.place[1]
        for side in range(2):
            child = Node()
            child.depth = node.depth + 1
            child.weight = node.weight * 0.5
            child.place = wp.vec2(2.0 * node.place[0] + float(side), node.place[1])
            wp.tile_stack_push(s, child, inner)
    total = wp.tile_sum(wp.tile(seen))[0]
    if lane == 0:
        visits[i] = total


def test_a_work_list_of_structs(lanes):
    leaves, visits = wp.zeros((3, 32)), wp.zeros(3, dtype=int)
    wp.launch_tiled(walk, dim=[3], inputs=[5, leaves, visits], block_dim=lanes)
    assert visits.numpy().tolist() == [63] * 3
    np.testing.assert_array_equal(leaves.numpy(), np.repeat(1 / 32 + np.arange(3.0)[:, None], 32, axis=1))


# Queries: boxes and rays against trees, by brute force.


def boxes(n):
    low = RNG.uniform(0.0, 10.0, (n, 3)).astype(np.float32)
    return low, (low + RNG.uniform(0.1, 1.5, (n, 3))).astype(np.float32)


@wp.kernel
def boxes_hit(
    tree: wp.uint64, low: wp.array[wp.vec3], high: wp.array[wp.vec3], hits: wp.array2d[int], n: wp.array[int]
):
    i, lane = wp.tid()
    q = wp.tile_bvh_query_aabb(tree, low[i], high[i])
    count = int(0)
    while wp.tile_query_valid(q):
        r = wp.untile(wp.tile_bvh_query_next(q))
        if r >= 0:
            wp.atomic_add(hits, i, r, 1)
            count += 1
    total = wp.tile_sum(wp.tile(count))[0]
    if lane == 0:
        n[i] = total


@wp.kernel
def boxes_hit_by_old_names(
    tree: wp.uint64, low: wp.array[wp.vec3], high: wp.array[wp.vec3], hits: wp.array2d[int], n: wp.array[int]
):
    i, lane = wp.tid()
    q = wp.bvh_query_aabb_tiled(tree, low[i], high[i])
    r = wp.untile(wp.bvh_query_next_tiled(q))
    while wp.tile_max(wp.tile(r))[0] >= 0:
        if r >= 0:
            wp.atomic_add(hits, i, r, 1)
            wp.atomic_add(n, i, 1)
        r = wp.untile(wp.bvh_query_next_tiled(q))


@pytest.mark.parametrize("kernel", [boxes_hit, boxes_hit_by_old_names], ids=["tile names", "old names"])
def test_a_block_finds_every_box_once(kernel, lanes):
    low, high = boxes(200)
    bvh = wp.Bvh(wp.array(low, dtype=wp.vec3), wp.array(high, dtype=wp.vec3))
    q_low, q_high = boxes(6)
    q_low[0], q_high[0] = -1.0, 20.0
    q_low[1], q_high[1] = 50.0, 51.0
    q_high[2] += 4.0
    hits, n = wp.zeros((6, 200), dtype=int), wp.zeros(6, dtype=int)
    inputs = [bvh.id, wp.array(q_low, dtype=wp.vec3), wp.array(q_high, dtype=wp.vec3), hits, n]
    wp.launch_tiled(kernel, dim=[6], inputs=inputs, block_dim=lanes)
    meets = ((q_low[:, None] <= high) & (q_high[:, None] >= low)).all(axis=2)
    np.testing.assert_array_equal(hits.numpy(), meets)
    np.testing.assert_array_equal(n.numpy(), meets.sum(axis=1))


@wp.kernel
def rays_hit(
    tree: wp.uint64, start: wp.array[wp.vec3], to: wp.array[wp.vec3], hits: wp.array2d[int], old: wp.array2d[int]
):
    i, lane = wp.tid()
    q = wp.tile_bvh_query_ray(tree, start[i], to[i])
    while wp.tile_query_valid(q):
        r = wp.untile(wp.tile_bvh_query_next(q))
        if r >= 0:
            wp.atomic_add(hits, i, r, 1)
    p = wp.bvh_query_ray_tiled(tree, start[i], to[i])
    while wp.tile_query_valid(p):
        r = wp.untile(wp.bvh_query_next_tiled(p))
        if r >= 0:
            wp.atomic_add(old, i, r, 1)


def ray_meets(start, to, low, high):
    with np.errstate(divide="ignore"):
        near, far = (low - start) / to, (high - start) / to
    first, last = np.minimum(near, far).max(axis=1), np.maximum(near, far).min(axis=1)
    return (first <= last) & (last >= 0)


def test_a_block_finds_every_box_that_a_ray_meets(lanes):
    low, high = boxes(200)
    high += 1.0
    bvh = wp.Bvh(wp.array(low, dtype=wp.vec3), wp.array(high, dtype=wp.vec3))
    start = RNG.uniform(-5.0, 15.0, (8, 3)).astype(np.float32)
    to = RNG.standard_normal((8, 3)).astype(np.float32)
    to[:4] = 5.0 - start[:4]
    hits, old = wp.zeros((8, 200), dtype=int), wp.zeros((8, 200), dtype=int)
    inputs = [bvh.id, wp.array(start, dtype=wp.vec3), wp.array(to, dtype=wp.vec3), hits, old]
    wp.launch_tiled(rays_hit, dim=[8], inputs=inputs, block_dim=lanes)
    expected = np.array([ray_meets(s, t, low, high) for s, t in zip(start, to)])
    assert expected.sum() > 8
    np.testing.assert_array_equal(hits.numpy(), expected)
    np.testing.assert_array_equal(old.numpy(), expected)


@wp.kernel
def faces_hit(
    mesh: wp.uint64, low: wp.array[wp.vec3], high: wp.array[wp.vec3], hits: wp.array2d[int], old: wp.array2d[int]
):
    i, lane = wp.tid()
    q = wp.tile_mesh_query_aabb(mesh, low[i], high[i])
    while wp.tile_query_valid(q):
        r = wp.untile(wp.tile_mesh_query_aabb_next(q))
        if r >= 0:
            wp.atomic_add(hits, i, r, 1)
    p = wp.mesh_query_aabb_tiled(mesh, low[i], high[i])
    while wp.tile_query_valid(p):
        r = wp.untile(wp.mesh_query_aabb_next_tiled(p))
        if r >= 0:
            wp.atomic_add(old, i, r, 1)


def test_a_block_finds_every_face_once(lanes):
    points = RNG.uniform(0.0, 10.0, (80, 1, 3)) + RNG.uniform(-1.0, 1.0, (80, 3, 3))
    points = points.astype(np.float32)
    faces = wp.array(np.arange(240), dtype=int)
    mesh = wp.Mesh(points=wp.array(points.reshape(-1, 3), dtype=wp.vec3), indices=faces)
    low, high = boxes(5)
    high[0] += 3.0
    low[1], high[1] = -5.0, 15.0
    hits, old = wp.zeros((5, 80), dtype=int), wp.zeros((5, 80), dtype=int)
    inputs = [mesh.id, wp.array(low, dtype=wp.vec3), wp.array(high, dtype=wp.vec3), hits, old]
    wp.launch_tiled(faces_hit, dim=[5], inputs=inputs, block_dim=lanes)
    lowest, highest = points.min(axis=1), points.max(axis=1)
    meets = ((low[:, None] <= highest) & (high[:, None] >= lowest)).all(axis=2)
    np.testing.assert_array_equal(hits.numpy(), meets)
    np.testing.assert_array_equal(old.numpy(), meets)


def test_types_of_queries_have_names():
    assert wp.BvhQueryTiled.__name__ == "BvhQueryTiled"
    assert wp.MeshQueryAABBTiled.__name__ == "MeshQueryAABBTiled"
    assert wp.tile_stack is not None

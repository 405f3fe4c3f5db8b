"""Meshes and trees on CUDA devices: their order in streams, their lifetime, graphs, and devices that do not fit. Values
of queries are tested by tests/geometry, whose suites run on the emulated device too."""

import gc
import re

import numpy as np
import pytest
import warp as wp

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.own_launches("objects that are freed while launches wait; counts and orders them"),
]

DEVICE = "cuda:0"


@wp.kernel
def height(mesh: wp.uint64, at: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    hit = wp.mesh_query_ray(mesh, at[i], wp.vec3(0.0, 0.0, -1.0), 100.0)
    out[i] = -1.0
    if hit.result:
        out[i] = hit.t


@wp.kernel
def count_boxes(bvh: wp.uint64, low: wp.array[wp.vec3], side: float, out: wp.array[int]):
    i = wp.tid()
    n = int(0)
    for _ in wp.bvh_query_aabb(bvh, low[i], low[i] + wp.vec3(side)):
        n += 1
    out[i] = n


@wp.kernel
def sum_boxes(bvh: wp.uint64, at: wp.array[wp.vec3], low: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    for j in wp.bvh_query_aabb(bvh, at[i], at[i] + wp.vec3(1.0)):
        out[i] += low[j][0] * low[j][0]


def sheet(z, device=DEVICE):
    """A square of two triangles at this height; a ray from z = 10 down meets it at 10 - z."""
    points = np.array([[0, 0, z], [4, 0, z], [0, 4, z], [4, 4, z]], np.float32)
    return wp.Mesh(
        wp.array(points, dtype=wp.vec3, device=device), wp.array([0, 1, 2, 1, 3, 2], dtype=int, device=device)
    )


def look(mesh, places, out):
    wp.launch(height, len(places), inputs=[mesh, places, out], device=DEVICE)
    return out


@pytest.fixture
def places():
    return wp.array(np.tile([1.0, 1.0, 10.0], (3, 1)), dtype=wp.vec3, device=DEVICE)


def out_of(places):
    return wp.full(len(places), 7.0, dtype=float, device=DEVICE)


def test_a_mesh_may_go_while_launches_wait(places):
    mesh, first = sheet(3.0), out_of(places)
    look(mesh.id, places, first)
    stale = mesh.id
    del mesh
    gc.collect()
    others = [sheet(float(z)) for z in range(5)]  # may have its memory, and not its id
    np.testing.assert_array_equal(first.numpy(), [7.0] * 3)
    wp.synchronize()  # until then the launch keeps it
    np.testing.assert_array_equal(look(stale, places, out_of(places)).numpy(), [-1.0] * 3)
    for z, other in enumerate(others):
        assert other.id != stale
        np.testing.assert_array_equal(look(other.id, places, out_of(places)).numpy(), [10.0 - z] * 3)


def test_refits_are_in_the_order_of_the_stream(places):
    mesh, results = sheet(0.0), []
    for z in (1.0, 2.0, 3.0):
        results.append(look(mesh.id, places, out_of(places)))
        mesh.points.assign([[0, 0, z], [4, 0, z], [0, 4, z], [4, 4, z]])
        mesh.refit()
    results.append(look(mesh.id, places, out_of(places)))
    assert [float(each.numpy()[0]) for each in results] == [10.0, 9.0, 8.0, 7.0]


def test_a_graph_refits_and_keeps_its_mesh(places):
    mesh, out = sheet(1.0), out_of(places)
    moved = wp.array(mesh.points.numpy() + [0, 0, 1], dtype=wp.vec3, device=DEVICE)
    with wp.ScopedCapture(DEVICE) as capture:
        wp.copy(mesh.points, moved)
        mesh.refit()
        look(mesh.id, places, out)
    np.testing.assert_array_equal(look(mesh.id, places, out_of(places)).numpy(), [9.0] * 3)
    del mesh
    gc.collect()
    for z in (2.0, 5.0):
        moved.assign([[0, 0, z], [4, 0, z], [0, 4, z], [4, 4, z]])
        wp.capture_launch(capture.graph)
        np.testing.assert_array_equal(out.numpy(), [10.0 - z] * 3)


@pytest.mark.parametrize("constructor", ["lbvh", "sah", "median"])
@pytest.mark.parametrize("groups", [False, True])
def test_a_graph_builds_a_tree_anew(groups, constructor):
    rng = np.random.default_rng(3)
    n = 500
    low = [rng.random((n, 3)).astype(np.float32) for _ in range(3)]
    boxes = [wp.array(low[0] + side, dtype=wp.vec3, device=DEVICE) for side in (0.0, np.float32(0.05))]
    numbers = wp.array(rng.integers(0, 4, n), dtype=int, device=DEVICE) if groups else None
    bvh = wp.Bvh(*boxes, groups=numbers, constructor=constructor)
    id = bvh.id
    at, found = (wp.zeros(20, dtype=dtype, device=DEVICE) for dtype in (wp.vec3, int))
    asked = rng.random((20, 3)).astype(np.float32)
    at.assign(asked)
    arguments = {"inputs": [bvh.id, at, 0.2, found], "device": DEVICE}
    wp.launch(count_boxes, 20, **arguments)
    with wp.ScopedCapture(DEVICE) as capture:
        bvh.rebuild()
        wp.launch(count_boxes, 20, **arguments)
    for now in low:
        boxes[0].assign(now)
        boxes[1].assign(now + np.float32(0.05))
        wp.capture_launch(capture.graph)
        meets = np.all((now[None] <= asked[:, None] + 0.2) & (now[None] + 0.05 >= asked[:, None]), axis=2)
        np.testing.assert_array_equal(found.numpy(), meets.sum(axis=1))
        bvh.refit()
        wp.launch(count_boxes, 20, **arguments)
        np.testing.assert_array_equal(found.numpy(), meets.sum(axis=1))
    assert bvh.id == id


def test_a_graph_does_not_build_a_tree_of_the_host_that_a_tape_keeps():
    boxes, at = (wp.zeros(3, dtype=wp.vec3, device=DEVICE, requires_grad=True) for _ in range(2))
    bvh, sums = wp.Bvh(boxes, boxes, constructor="sah"), wp.zeros(3, dtype=float, device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sum_boxes, 3, [bvh.id, at, boxes, sums], device=DEVICE)
    with wp.ScopedCapture(DEVICE), pytest.raises(RuntimeError, match=r"Bvh.rebuild\(\): .*constructor='lbvh'"):
        bvh.rebuild()
    tape.reset()
    with wp.ScopedCapture(DEVICE):
        bvh.rebuild()


# ---- limits ----


def test_more_than_2_to_the_31_are_refused_before_anything_is_allocated():
    one = wp.zeros(1, dtype=wp.vec3, device=DEVICE)
    faces = wp.zeros(1, dtype=int, device=DEVICE)
    for device, address in (("cpu", 64), (DEVICE, one.ptr)):
        many = wp.array(ptr=address, shape=(2**31,), dtype=wp.vec3, device=device, copy=False)
        indices = wp.array(ptr=address, shape=(3 * 2**31,), dtype=int, device=device, copy=False)
        points = wp.array(ptr=address, shape=(1,), dtype=wp.vec3, device=device, copy=False)
        grid = wp.HashGrid(4, 4, 4, device=device)
        for refused, text in (
            (lambda: wp.Mesh(many, indices), r"Mesh\(\): points: expected at most 2147483647 elements, got 2147483648"),
            (lambda: wp.Mesh(points, indices), r"Mesh\(\): indices: expected at most 2147483647 faces"),
            (lambda: wp.Bvh(many, many), r"Bvh\(\): lowers: expected at most 2147483647 elements, got 2147483648"),
            (lambda: grid.build(many, 1.0), r"HashGrid.build\(\): a grid holds at most 2147483646 points"),
            (
                lambda: wp.Volume.allocate_by_tiles(many, 1.0, device=device),
                r"allocate_by_tiles\(\): a volume is made of at most 2147483647 points, not 2147483648",
            ),
        ):
            with pytest.raises(ValueError, match=text):
                refused()
    assert one.numpy().tolist() == [[0.0] * 3] and faces.list() == [0]


def test_more_objects_than_the_first_table_has(places):
    meshes = [sheet(float(z % 7)) for z in range(1100)]
    for z in (0, 513, 1023, 1024, 1099):
        np.testing.assert_array_equal(look(meshes[z].id, places, out_of(places)).numpy(), [10.0 - z % 7] * 3)


@wp.struct
class Scene:
    scale: float
    mesh: wp.uint64


@wp.kernel
def height_in(scene: Scene, at: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.mesh_query_ray(scene.mesh, at[i], wp.vec3(0.0, 0.0, -1.0), 100.0).t


@pytest.mark.parametrize("adjoint", [False, True])
def test_objects_of_other_devices_are_refused_before_anything_runs(places, adjoint):
    here, on_host = sheet(1.0), sheet(1.0, "cpu")
    host = [places.to("cpu"), wp.zeros(3, dtype=float, device="cpu")]
    there = [places, out_of(places)]
    for id, arrays, device, is_on in ((here.id, host, "cpu", f"'{DEVICE}'"), (on_host.id, there, DEVICE, "a CPU")):
        seeds = [wp.zeros_like(array) for array in arrays]
        how = {"adjoint": True, "adj_inputs": [None, seeds[0]], "adj_outputs": [seeds[1]]} if adjoint else {}
        text = f"'height': argument 'mesh' is the id of a mesh on {is_on}, and the launch is on '{device}'"
        with pytest.raises(RuntimeError, match=re.escape(text)):
            wp.launch(height, 3, inputs=[id, arrays[0]], outputs=[arrays[1]], device=device, **how)
        scene = Scene()
        scene.mesh = id
        with pytest.raises(RuntimeError, match="argument 'scene' is the id of a mesh on"):
            wp.launch(height_in, 3, inputs=[scene, *arrays], device=device)
    np.testing.assert_array_equal(there[1].numpy(), [7.0] * 3)
    np.testing.assert_array_equal(host[1].numpy(), [0.0] * 3)


def test_meshes_of_two_gpus(two_gpus, places):
    other = sheet(1.0, "cuda:1")
    with pytest.raises(RuntimeError, match=r"a mesh on 'cuda:1', and the launch is on 'cuda:0'"):
        look(other.id, places, out_of(places))
    there = [places.to("cuda:1"), wp.zeros(3, dtype=float, device="cuda:1")]
    wp.launch(height, 3, inputs=[other.id, *there], device="cuda:1")
    np.testing.assert_array_equal(there[1].numpy(), [9.0] * 3)


@wp.kernel
def heights_of(ids: wp.array[wp.uint64], at: wp.array[wp.vec3], out: wp.array[float]):
    i = wp.tid()
    out[i] = -1.0
    hit = wp.mesh_query_ray(ids[i], at[i], wp.vec3(0.0, 0.0, -1.0), 100.0)
    if hit.result:
        out[i] = hit.t


def test_ids_in_arrays_find_objects_of_their_device_only(places):
    meshes = [sheet(2.0), sheet(3.0, "cpu"), sheet(4.0)]
    ids = wp.array([mesh.id for mesh in meshes], dtype=wp.uint64, device=DEVICE)
    out = out_of(places)
    wp.launch(heights_of, 3, inputs=[ids, places, out], device=DEVICE)
    np.testing.assert_array_equal(out.numpy(), [8.0, -1.0, 6.0])
    host = [ids.to("cpu"), places.to("cpu"), wp.zeros(3, dtype=float, device="cpu")]
    wp.launch(heights_of, 3, inputs=host, device="cpu")
    np.testing.assert_array_equal(host[2].numpy(), [-1.0, 7.0, -1.0])


def test_debug_mode_names_an_id_without_an_object(places):
    @wp.kernel(module_options={"mode": "debug"}, module="unique")
    def ask(mesh: wp.uint64, at: wp.array[wp.vec3], out: wp.array[float]):
        i = wp.tid()
        out[i] = wp.mesh_query_ray(mesh, at[i], wp.vec3(0.0, 0.0, -1.0), 100.0).t

    bvh = wp.Bvh(places, places)
    for id, text in ((12345, "names no mesh"), (bvh.id, "names a BVH, where that of a mesh is expected")):
        with pytest.raises(RuntimeError, match=text):
            wp.launch(ask, 3, inputs=[id, places, out_of(places)], device=DEVICE)
            wp.synchronize()


@pytest.mark.parametrize("constructor", ["sah", "median", "lbvh"])
def test_wrong_indices_are_named(constructor):
    points = wp.zeros(4, dtype=wp.vec3, device=DEVICE)
    for corners, text in (
        ([0, 1, 2, 1, 4, 9], r"indices\[4\] \(corner 1 of face 1\) is 4, and there are 4 points"),
        ([0, -1, 2], r"indices\[1\] \(corner 1 of face 0\) is -1"),
    ):
        with pytest.raises(ValueError, match=text):
            wp.Mesh(points, wp.array(corners, dtype=int, device=DEVICE), bvh_constructor=constructor)


@pytest.mark.parametrize("constructor", ["sah", "lbvh"])
def test_numbers_that_are_not_finite_do_not_hide_the_rest(constructor):
    rng = np.random.default_rng(0)
    low = rng.random((200, 3)).astype(np.float32)
    low[::7, 1] = np.nan
    high = low + np.float32(0.1)
    low[3], high[3] = -np.inf, np.inf
    low[10] = high[10] + 1  # upside down
    boxes = [wp.array(each, dtype=wp.vec3, device=DEVICE) for each in (low, high)]
    bvh = wp.Bvh(*boxes, constructor=constructor)
    found = wp.zeros(20, dtype=int, device=DEVICE)
    asked = rng.random((20, 3)).astype(np.float32)
    at = wp.array(asked, dtype=wp.vec3, device=DEVICE)
    wp.launch(count_boxes, 20, inputs=[bvh.id, at, 0.3, found], device=DEVICE)
    valid = np.all(low <= high, axis=1)
    meets = np.all((low[None] <= asked[:, None] + np.float32(0.3)) & (high[None] >= asked[:, None]), axis=2) & valid
    np.testing.assert_array_equal(found.numpy(), meets.sum(axis=1))
    assert found.numpy().min() >= 1

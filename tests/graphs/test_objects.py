"""Meshes, BVHs, hash grids and volumes in graphs: they are built, asked and kept."""

import gc

import numpy as np
import pytest
import warp as wp
from graph_kernels import captured

pytestmark = [pytest.mark.protected, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


@pytest.mark.host_memory("has a grid, which is built in the host's memory or on a GPU", on="cpu")
def test_hash_grids_and_meshes_in_a_graph():
    @wp.kernel
    def neighbours(grid: wp.uint64, points: wp.array(dtype=wp.vec3), count: wp.array(dtype=int)):
        i = wp.tid()
        n = int(0)
        for other in wp.hash_grid_query(grid, points[i], 0.2):
            if wp.length(points[other] - points[i]) < 0.2:
                n += 1
        count[i] = n

    @wp.kernel
    def move(points: wp.array(dtype=wp.vec3), by: float):
        i = wp.tid()
        points[i] = points[i] * by

    @wp.kernel
    def height(mesh: wp.uint64, out: wp.array(dtype=float)):
        hit = wp.mesh_query_ray(mesh, wp.vec3(0.2, 0.2, 100.0), wp.vec3(0.0, 0.0, -1.0), 1000.0)
        out[0] = 100.0 - hit.t

    rng = np.random.default_rng(3)
    places = rng.random((300, 3)).astype(np.float32)
    points, count = wp.array(places, dtype=wp.vec3), wp.zeros(300, dtype=int)
    grid = wp.HashGrid(16, 16, 16)
    corners = wp.array([[0, 0, 1], [1, 0, 1], [0, 1, 1]], dtype=wp.vec3)
    mesh, out = wp.Mesh(corners, wp.array([0, 1, 2], dtype=int)), wp.zeros(1)

    def work():
        wp.launch(move, dim=300, inputs=[points, 0.8])
        grid.build(points, 0.2)
        wp.launch(neighbours, dim=300, inputs=[grid.id, points, count])
        wp.launch(move, dim=3, inputs=[corners, 2.0])
        mesh.refit()
        wp.launch(height, dim=1, inputs=[mesh.id, out])

    graph = captured(work)
    for n in range(1, 4):
        wp.capture_launch(graph)
        places = places * np.float32(0.8)
        near = np.linalg.norm(places[:, None] - places[None], axis=2) < 0.2
        assert abs(count.numpy().astype(int) - near.sum(1)).max() <= 1
        np.testing.assert_allclose(out.numpy(), 2.0**n, rtol=1e-5)
    grid = mesh = None
    gc.collect()
    wp.capture_launch(graph)  # they live as long as the graph
    np.testing.assert_allclose(out.numpy(), 16.0, rtol=1e-5)
    with wp.ScopedCapture():
        with pytest.raises(RuntimeError, match="make meshes before the capture"):
            wp.Mesh(corners, wp.array([0, 1, 2], dtype=int))


OBJECTS = {
    "mesh": lambda: wp.Mesh(wp.array([[0, 0, 1], [1, 0, 1], [0, 1, 1]], dtype=wp.vec3), wp.array([0, 1, 2], dtype=int)),
    "bvh": lambda: wp.Bvh(wp.array([[0, 0, 0]], dtype=wp.vec3), wp.array([[1, 1, 1]], dtype=wp.vec3)),
    "grid": lambda: filled_grid(),
    "volume": lambda: wp.Volume.load_from_numpy(np.ones((8, 8, 8), dtype=np.float32), bg_value=0.0),
}


def of_the_host(kind):
    """Grids are built in the host's memory or on a GPU; the others live on all devices."""
    return pytest.mark.host_memory("has a grid, which is not on such a device", on="cpu") if kind == "grid" else ()


def filled_grid():
    grid = wp.HashGrid(8, 8, 8)
    grid.build(wp.array([[0.5, 0.5, 0.5], [0.55, 0.5, 0.5]], dtype=wp.vec3), 0.2)
    return grid


@wp.struct
class Scene:
    number: float
    object: wp.uint64


def asks(kind):
    """Kernels that ask an object of this kind; the answer is not 0 if the object exists."""

    @wp.func
    def ask_mesh(id: wp.uint64):
        return wp.mesh_query_ray(id, wp.vec3(0.2, 0.2, 9.0), wp.vec3(0.0, 0.0, -1.0), 100.0).t

    @wp.func
    def ask_bvh(id: wp.uint64):
        n = float(0.0)
        for _ in wp.bvh_query_aabb(id, wp.vec3(0.2, 0.2, 0.2), wp.vec3(0.3, 0.3, 0.3)):
            n += 1.0
        return n

    @wp.func
    def ask_grid(id: wp.uint64):
        n = float(0.0)
        for _ in wp.hash_grid_query(id, wp.vec3(0.5, 0.5, 0.5), 0.2):
            n += 1.0
        return n

    @wp.func
    def ask_volume(id: wp.uint64):
        return wp.volume_sample_f(id, wp.vec3(3.5, 3.5, 3.5), wp.Volume.LINEAR)

    ask = {"mesh": ask_mesh, "bvh": ask_bvh, "grid": ask_grid, "volume": ask_volume}[kind]

    @wp.kernel(module="unique")
    def by_number(id: wp.uint64, out: wp.array(dtype=float)):
        out[0] = ask(id)

    @wp.kernel(module="unique")
    def by_struct(scene: Scene, out: wp.array(dtype=float)):
        out[0] = ask(scene.object)

    @wp.kernel(module="unique")
    def by_array(ids: wp.array(dtype=wp.uint64), out: wp.array(dtype=float)):
        out[0] = ask(ids[1])

    return by_number, by_struct, by_array


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=of_the_host(kind)) for kind in sorted(OBJECTS)])
def test_a_graph_keeps_the_objects_that_it_only_asks(kind):
    for way, kernel in enumerate(asks(kind)):
        thing, out = OBJECTS[kind](), wp.zeros(1, dtype=float)
        scene = Scene()
        scene.object = thing.id
        argument = [thing.id, scene, wp.array([0, thing.id], dtype=wp.uint64)][way]
        wp.launch(kernel, dim=1, inputs=[argument, out])
        expected = out.list()[0]
        assert expected > 0.0
        graph = captured(lambda kernel=kernel, argument=argument, out=out: wp.launch(kernel, 1, inputs=[argument, out]))
        id = thing.id
        del thing
        gc.collect()
        others = [OBJECTS[kind]() for _ in range(3)]  # may take its memory and its slot
        fresh = [wp.full(1000, 77.0, dtype=float) for _ in range(50)]
        for _ in range(2):
            out.zero_()
            wp.capture_launch(graph)
            assert out.list() == [expected]
        assert all(other.id != id for other in others) and len(fresh) == 50
        del graph
        gc.collect()
        wp.synchronize()  # a GPU forgets it when its work is done
        wp.launch(kernel, dim=1, inputs=[argument, out])  # it has gone with the graph
        assert out.list()[0] < expected


def test_a_mesh_of_a_graph_changes_as_long_as_somebody_has_it():
    by_number = asks("mesh")[0]
    points = wp.array([[0, 0, 1], [1, 0, 1], [0, 1, 1]], dtype=wp.vec3)
    mesh, out = wp.Mesh(points, wp.array([0, 1, 2], dtype=int)), wp.zeros(1, dtype=float)
    id = mesh.id
    first, second = (captured(lambda: wp.launch(by_number, 1, inputs=[id, out])) for _ in range(2))
    points.assign([[0, 0, 3], [1, 0, 3], [0, 1, 3]])
    mesh.refit()
    wp.capture_launch(first)
    assert out.list() == [6.0]
    del mesh, points
    gc.collect()
    for graph in (first, second):
        out.zero_()
        wp.capture_launch(graph)
        assert out.list() == [6.0]
    del first, graph
    gc.collect()
    out.zero_()
    wp.capture_launch(second)
    assert out.list() == [6.0]

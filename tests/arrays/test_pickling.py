"""copy, deepcopy and pickle of arrays and of what is made of arrays; arrays in other processes."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest
import warp as wp


@wp.struct
class Particle:
    mass: float
    position: wp.vec3


@wp.struct
class Chain:
    name: int
    links: wp.array(dtype=float)
    particle: Particle


def through(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


DEEP = {"pickle": through, "deepcopy": copy.deepcopy, "pickle 2": lambda value: through(value, 2)}


@pytest.fixture(params=DEEP)
def deep(request):
    return DEEP[request.param]


def numbers(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def assert_same(found: wp.array, expected: wp.array) -> None:
    assert type(found) is type(expected) and found.dtype is expected.dtype
    assert found.shape == expected.shape and found.device == expected.device
    assert found.list() == expected.list()


# ---- arrays ----

ARRAYS = {
    "floats": lambda: wp.array(numbers(5)),
    "rows": lambda: wp.array(numbers(2, 3)),
    "vectors": lambda: wp.array(numbers(4, 3), dtype=wp.vec3),
    "matrices": lambda: wp.array(numbers(2, 2, 2), dtype=wp.mat22),
    "quaternions": lambda: wp.array(numbers(2, 4), dtype=wp.quat),
    "transforms": lambda: wp.array(numbers(2, 7), dtype=wp.transform),
    "long vectors": lambda: wp.array(numbers(2, 11), dtype=wp.types.vector(11, wp.float32)),
    "bools": lambda: wp.array([True, False, True], dtype=wp.bool),
    "bfloat16": lambda: wp.array(numbers(5)).astype(wp.bfloat16),
    "vectors of float8": lambda: wp.array(numbers(2, 3), dtype=wp.types.vector(3, wp.float8_e5m2)),
    "uint64": lambda: wp.array([0, 2**63], dtype=wp.uint64),
    "none": lambda: wp.zeros((0, 3)),
    "reversed": lambda: wp.array(numbers(5))[::-1],
    "transposed": lambda: wp.array(numbers(2, 3)).T,
    "a part": lambda: wp.array(numbers(100))[10:13],
    "four dimensions": lambda: wp.array(numbers(1, 2, 3, 4))[:, ::-1, :, 1:3],
    "structs": lambda: wp.array([Particle(mass=1.0, position=wp.vec3(1.0, 2.0, 3.0)), Particle()], dtype=Particle),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_come_back_with_their_elements(kind, deep):
    a = ARRAYS[kind]()
    b = deep(a)
    if kind == "structs":
        assert b.dtype is Particle and b.numpy().tobytes() == a.numpy().tobytes()
    else:
        assert_same(b, a)
    assert b.is_contiguous and (a.size == 0 or b.ptr != a.ptr)


def test_a_view_takes_its_elements_along_and_not_its_memory():
    whole = wp.zeros(1_000_000)
    assert len(pickle.dumps(whole[5:8])) < 2000


def test_a_copied_array_has_a_copy_of_its_gradient(deep):
    a = wp.array(numbers(3), requires_grad=True)
    a.grad.assign([4.0, 5.0, 6.0])
    a.retain_grad = True
    b = deep(a)
    assert b.requires_grad and b.retain_grad and b.grad.list() == [4.0, 5.0, 6.0] and b.grad.ptr != a.grad.ptr
    c = deep(wp.zeros(3, requires_grad=True))
    assert c.requires_grad and c.grad.list() == [0.0] * 3
    assert not deep(wp.zeros(3)).requires_grad


def test_a_copy_has_a_gradient_that_tapes_use(deep):
    x = deep(wp.array(numbers(3), requires_grad=True))
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(add_squares, 3, [x], [loss])
    tape.backward(loss)
    assert x.grad.list() == [0.0, 2.0, 4.0]


@wp.kernel
def add_squares(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


def test_a_shallow_copy_is_another_array_over_the_same_memory():
    a = wp.array(numbers(3), requires_grad=True)
    a.label = ["x"]
    b = copy.copy(a)
    assert b is not a and b.ptr == a.ptr and b.grad.ptr == a.grad.ptr and b.label is a.label
    b.label = "other"
    b.strides = (0,)
    assert a.label == ["x"] and a.strides == (4,)
    b.fill_(7.0)
    assert a[0] == 7.0


def test_attributes_of_the_program_come_along(deep):
    a = wp.zeros(2)
    a.label, a.other = ["x"], a
    b = deep(a)
    assert b.label == ["x"] and b.label is not a.label and b.other is b


def test_one_array_in_several_places_stays_one(deep):
    a = wp.array(numbers(3))
    first, second = deep([a, a])
    assert first is second
    state = deep({"a": a, "chain": Chain(links=a)})
    assert state["chain"].links is state["a"]


def test_read_only_memory_comes_back_as_memory_to_write_to(deep):
    x = numbers(3)
    x.flags.writeable = False
    b = deep(wp.array(x, copy=False, device="cpu"))
    b.fill_(1.0)
    assert b.list() == [1.0] * 3 and x.tolist() == [0.0, 1.0, 2.0]


def test_annotations_stay_annotations(deep):
    for annotation in (wp.array(dtype=float), wp.array2d(dtype=wp.vec3), wp.array[Any]):
        assert deep(annotation) == annotation


def test_dtypes_that_no_module_names_come_back():
    made = through(wp.zeros(2, dtype=wp.types.matrix((3, 5), wp.float64)))
    assert made.dtype is wp.types.matrix((3, 5), wp.float64)


def test_an_array_of_a_device_that_is_not_here_says_so():
    data = pickle.dumps(wp.zeros(2, device="cpu"), 0)
    moved = data.replace(b"Vcpu\n", b"Vcuda:77\n")
    assert moved != data
    with pytest.raises(RuntimeError, match=r"the array was on 'cuda:77', which is not here. help: pickle array.to"):
        pickle.loads(moved)


def test_numpy_sees_out_of_band_buffers_of_protocol_5():
    buffers: list = []
    a = wp.array(numbers(1000))
    data = pickle.dumps(a, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and len(data) < 1000
    assert_same(pickle.loads(data, buffers=buffers), a)


def test_files_of_numpy_hold_arrays():
    file = io.BytesIO()
    np.save(file, wp.array(numbers(3)))
    file.seek(0)
    assert np.load(file).tolist() == [0.0, 1.0, 2.0]


# ---- structs, indexed arrays, values ----


def test_structs_come_back_with_their_arrays(deep):
    links = wp.array(numbers(3), requires_grad=True)
    links.grad.fill_(2.0)
    one = Chain(name=3, links=links, particle=Particle(mass=1.5, position=wp.vec3(1.0, 2.0, 3.0)))
    other = deep(one)
    assert type(other) is Chain and other.name == 3 and other.particle.position == wp.vec3(1.0, 2.0, 3.0)
    assert other.links.list() == [0.0, 1.0, 2.0] and other.links.ptr != links.ptr
    assert other.links.grad.list() == [2.0] * 3


def test_structs_in_arrays_come_back_with_theirs_and_share_what_they_shared(deep):
    links = wp.array(numbers(3))
    a = wp.array([Chain(name=1, links=links), Chain(name=2, links=links), Chain(name=3)], dtype=Chain)
    b = deep(a)
    one, two, three = b.list()
    assert (one.name, two.name, three.name) == (1, 2, 3)
    assert one.links.list() == [0.0, 1.0, 2.0] and one.links.ptr == two.links.ptr != links.ptr
    assert three.links is None


def test_indexed_arrays_come_back(deep):
    a = wp.indexedarray(wp.array(numbers(4, 3)), [[3, 0], None])
    b = deep(a)
    assert isinstance(b, wp.indexedarray) and b.numpy().tolist() == a.numpy().tolist() == [[9, 10, 11], [0, 1, 2]]
    b.fill_(5.0)
    assert a.numpy()[0, 0] == 9.0
    c = copy.copy(a)
    c.fill_(6.0)
    assert isinstance(c, wp.indexedarray) and a.numpy()[0, 0] == 6.0


@pytest.mark.parametrize("way", [through, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "value",
    [
        wp.vec3(1.0, 2.0, 3.0),
        wp.mat22(1.0, 2.0, 3.0, 4.0),
        wp.quat(0.0, 0.0, 0.0, 1.0),
        wp.transform((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0)),
        wp.types.vector(7, wp.float64)(1.0),
        wp.float16(1.5),
        wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    ],
)
def test_pickled_values_keep_type_and_value(value, way):
    other = way(value)
    assert type(other) is type(value) and other == value


# ---- spatial objects ----

CORNERS = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]], np.float32)
FACES = np.array([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3], np.int32)


@wp.kernel
def ask_mesh(mesh: wp.uint64, out: wp.array(dtype=float)):
    query = wp.mesh_query_ray(mesh, wp.vec3(1.0, 1.0, -5.0), wp.vec3(0.0, 0.0, 1.0), 100.0)
    if query.result:
        out[0] = query.t


@wp.kernel
def ask_boxes(tree: wp.uint64, found: wp.array(dtype=int)):
    for box in wp.bvh_query_aabb(tree, wp.vec3(0.5, 0.5, 0.5), wp.vec3(0.6, 0.6, 0.6)):
        found[box] += 1


@wp.kernel
def ask_grid(grid: wp.uint64, place: wp.vec3, radius: float, order: wp.array(dtype=int), count: wp.array(dtype=int)):
    for point in wp.hash_grid_query(grid, place, radius):
        order[wp.atomic_add(count, 0, 1)] = point


@wp.kernel
def ask_volume(volume: wp.uint64, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.volume_lookup_f(volume, i, 0, 0)


def test_meshes_come_back_as_their_arrays(deep):
    points = wp.array(CORNERS, dtype=wp.vec3, device="cpu")
    mesh = wp.Mesh(points, wp.array(FACES, device="cpu"), velocities=wp.zeros_like(points), support_winding_number=True)
    other = deep(mesh)
    assert other.id != mesh.id and other.support_winding_number and other.points.ptr != points.ptr
    assert_same(other.velocities, mesh.velocities)
    assert other.groups is None
    out = wp.zeros(1, device="cpu")
    wp.launch(ask_mesh, 1, [other.id], [out], device="cpu")
    assert out[0] == 5.0


def test_trees_of_boxes_come_back_as_their_arrays(deep):
    lowers = wp.array([[0, 0, 0], [5, 5, 5], [0.55, 0, 0]], dtype=wp.vec3, device="cpu")
    tree = wp.Bvh(lowers, wp.array([[1, 1, 1], [6, 6, 6], [1, 1, 1]], dtype=wp.vec3, device="cpu"))
    found = wp.zeros(3, dtype=int, device="cpu")
    other = deep(tree)
    wp.launch(ask_boxes, 1, [other.id], [found], device="cpu")
    assert found.list() == [1, 0, 1]


@pytest.mark.parametrize("with_groups", [False, True])
def test_hash_grids_come_back_with_their_points(with_groups, deep):
    rng = np.random.default_rng(5)
    points = wp.array(rng.normal(size=(300, 3)) * 4, dtype=wp.vec3, device="cpu")
    groups = wp.array(rng.integers(0, 3, 300), dtype=int, device="cpu") if with_groups else None
    grid = wp.HashGrid(11, 7, 5, device="cpu")
    grid.build(points, 0.7, groups)
    other = deep(grid)
    assert (other.dim_x, other.dim_y, other.dim_z) == (11, 7, 5) and other.id != grid.id

    def around(of, place):
        order, count = wp.full(600, -1, dtype=int, device="cpu"), wp.zeros(1, dtype=int, device="cpu")
        wp.launch(ask_grid, 1, [of.id, wp.vec3(*place), 1.3], [order, count], device="cpu")
        return order.list()

    for place in rng.normal(size=(20, 3)) * 4:
        assert around(other, place) == around(grid, place)
    _, cells, found = other._cells()
    np.testing.assert_array_equal(cells, grid._cells()[1])
    assert (found is None) == (groups is None)
    if with_groups:
        np.testing.assert_array_equal(found, groups.numpy())


def test_a_hash_grid_that_was_never_built_comes_back(deep):
    other = deep(wp.HashGrid(4, 5, 6, device="cpu", dtype=wp.float64))
    assert (other.dim_x, other.dim_y, other.dim_z, other.dtype) == (4, 5, 6, wp.float64)


def test_volumes_come_back_with_their_values(deep):
    values = numbers(8, 8, 8)
    volume = wp.Volume.load_from_numpy(values, bg_value=-1.0, device="cpu")
    out = wp.zeros(9, device="cpu")
    other = deep(volume)
    wp.launch(ask_volume, 9, [other.id], [out], device="cpu")
    assert out.list() == [*values[:, 0, 0].tolist(), -1.0]


# ---- programs ----


def doubled(a: wp.array) -> wp.array:
    return wp.array(2.0 * a.numpy(), device=a.device)


def test_arrays_go_to_other_processes_and_back():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        results = pool.map(doubled, [wp.array(numbers(3), device="cpu"), wp.array(numbers(2, 2), device="cpu")[::-1]])
    assert results[0].list() == [0.0, 2.0, 4.0] and results[1].numpy().tolist() == [[4.0, 6.0], [0.0, 2.0]]


def test_matplotlib_draws_arrays():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    (line,) = axes.plot(wp.array(numbers(3), device="cpu"), wp.array([1.0, 4.0, 9.0], device="cpu"))
    assert line.get_ydata(orig=False).tolist() == [1.0, 4.0, 9.0]
    axes.scatter(wp.array(numbers(3), device="cpu"), wp.array([1.0, 4.0, 9.0], device="cpu"))
    axes.imshow(wp.array(numbers(4, 4), device="cpu"))
    figure.canvas.draw()
    pyplot.close(figure)

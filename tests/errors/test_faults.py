"""In debug mode a fault of a kernel is a Python exception that shows the user's line, as a compile error does."""

import linecache
import re

import pytest
import warp as wp


@pytest.fixture(autouse=True)
def debug_mode():
    wp.config.mode = "debug"
    yield
    wp.config.mode = "release"


@wp.func
def shifted(values: wp.array[float], k: int):
    return values[k + 3]


@wp.func
def outer(table: wp.array[float], k: int):
    return shifted(table, k) + 1.0


@wp.kernel
def through_functions(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = outer(x, i)


@wp.kernel
def plain(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def checked(n: int, x: wp.array[int]):
    assert n > 3, "n is too small"
    x[0] = 10 // n


@wp.kernel
def component(n: int, x: wp.array[float]):
    v = wp.vec3(x[0])
    x[0] = v[n]


@wp.struct
class Fields:
    points: wp.array(dtype=float)
    others: wp.array(dtype=float)


@wp.kernel
def of_struct(fields: Fields):
    fields.others[5] = fields.points[0]


def fault(kernel, arguments, kind, dim=1):
    with pytest.raises(kind) as caught:
        wp.launch(kernel, dim=dim, inputs=arguments)
    assert isinstance(caught.value, wp.UsageError)
    return caught.value


def line_of(function, text):
    first = function.func.__code__.co_firstlineno
    return next(n for n in range(first, first + 12) if text in linecache.getline(__file__, n))


def assert_shown(error, function, code, marked):
    """The excerpt of `code`, with the caret and its tail under `marked`."""
    number = line_of(function, code)
    assert error.path == __file__ and error.line == number
    lines = str(error).splitlines()
    assert f"{__file__}:{number}:{error.column}: error: " in lines[0]
    assert lines[1].strip() == code
    start = lines[1].index(marked)
    assert lines[2] == " " * start + "^" + "~" * (len(marked) - 1)


def test_a_line_with_a_caret():
    error = fault(plain, [wp.zeros(2), wp.zeros(4)], IndexError, dim=4)
    assert_shown(error, plain, "y[i] = 2.0 * x[i]", "x[i]")
    assert "index 2 is out of bounds for axis 0 of 'x', which has size 2, in kernel 'plain', thread (2,)" in str(error)


def test_names_and_lines_of_the_function_and_of_its_callers():
    error = fault(through_functions, [wp.zeros(3), wp.zeros(4)], IndexError)
    assert_shown(error, shifted, "return values[k + 3]", "values[k + 3]")
    text = str(error)
    assert "of 'values', which has size 3, in 'shifted', in kernel 'through_functions', thread (0,)" in text
    first, second = line_of(outer, "shifted(table, k)"), line_of(through_functions, "outer(x, i)")
    assert f":{first}:12: note: 'shifted' is called here, with 'table' as 'values'\n    return shifted(" in text
    assert f":{second}:12: note: 'outer' is called here, with 'x' as 'table'\n    y[i] = outer(x, i)" in text


@wp.struct
class Point:
    weight: float


@wp.func
def total(line: wp.array[float]):
    s = float(0.0)
    for k in range(line.shape[0]):
        s += line[k]
    return s


@wp.kernel
def through_a_view(x: wp.array3d[float], points: wp.array2d[Point], n: int, y: wp.array[float]):
    y[0] = total(x[n, 1])


@wp.kernel
def through_a_slice(x: wp.array3d[float], points: wp.array2d[Point], n: int, y: wp.array[float]):
    y[0] = total(x[:, 1, n])


@wp.kernel
def through_a_slice_of_a_view(x: wp.array3d[float], points: wp.array2d[Point], n: int, y: wp.array[float]):
    y[0] = total(x[n][:, 0])


@wp.kernel
def into_a_view(x: wp.array3d[float], points: wp.array2d[Point], n: int, y: wp.array[float]):
    part = x[n]
    part[1, 0] = 2.0
    wp.atomic_add(part, 0, 1, x[0, 0, 0])


@wp.kernel
def through_a_row_of_structs(x: wp.array3d[float], points: wp.array2d[Point], n: int, y: wp.array[float]):
    row = points[n]
    y[0] = row[0].weight
    row[1].weight = x[0, 0, 0]


VIEWS = [through_a_view, through_a_slice, through_a_slice_of_a_view, into_a_view]


@pytest.mark.parametrize("kernel", [*VIEWS, through_a_row_of_structs])
@pytest.mark.parametrize("n", [3, -4, 1 << 20, 2**31 - 1, -(2**31)])
def test_nothing_is_accessed_through_a_view_by_an_index_out_of_range(kernel, n):
    x, y = wp.ones((2, 2, 2), dtype=float, requires_grad=True), wp.ones(1, dtype=float, requires_grad=True)
    points = wp.zeros((2, 2), dtype=Point)
    assert f"index {n} is out of bounds for axis" in str(fault(kernel, [x, points, n, y], IndexError))
    assert (x.numpy() == 1.0).all()
    if kernel in VIEWS:
        with pytest.raises(IndexError, match=f"index {n} is out of bounds for axis"):
            wp.launch(kernel, 1, [x, points, n, y], adj_inputs=[x.grad, None, n, y.grad], adjoint=True)
        assert (x.grad.numpy() == 0.0).all()


def test_none_is_told_from_an_empty_array():
    error = fault(plain, [None, wp.zeros(4)], ValueError)
    assert_shown(error, plain, "y[i] = 2.0 * x[i]", "x[i]")
    assert "the array 'x' is None: it was not passed to the launch, in kernel 'plain'" in str(error)
    assert "has size 0" in str(fault(plain, [wp.zeros(0), wp.zeros(4)], IndexError))


def test_none_inside_a_struct():
    fields = Fields()
    assert "the array 'fields.points' is None" in str(fault(of_struct, [fields], ValueError))
    fields.points = wp.zeros(1)
    assert "the array 'fields.others' is None" in str(fault(of_struct, [fields], ValueError))
    fields.others = wp.zeros(2)
    assert "index 5 is out of bounds for axis 0 of 'fields.others'" in str(fault(of_struct, [fields], IndexError))


def test_division_by_zero():
    @wp.kernel
    def divide(n: int, x: wp.array[int]):
        x[0] = 10 // n

    error = fault(divide, [0, wp.zeros(1, dtype=int)], ZeroDivisionError)
    assert_shown(error, divide, "x[0] = 10 // n", "10 // n")
    assert "integer division by zero, in kernel 'divide', thread (0,)" in str(error)


def test_an_assert_is_an_exception_in_debug_mode_and_nothing_in_release_mode():
    x = wp.zeros(1, dtype=int)
    error = fault(checked, [3, x], AssertionError)
    assert_shown(error, checked, 'assert n > 3, "n is too small"', 'assert n > 3, "n is too small"')
    assert "assertion failed: n is too small, in kernel 'checked', thread (0,)" in str(error)
    wp.launch(checked, dim=1, inputs=[5, x])
    assert x.list() == [2]
    wp.config.mode = "release"
    wp.launch(checked, dim=1, inputs=[2, x])
    assert x.list() == [5]
    assert "assert" not in checked.listing("ir") and "fault" not in checked.listing("llvm")


def test_a_component_out_of_range():
    error = fault(component, [7, wp.zeros(1)], IndexError)
    assert_shown(error, component, "x[0] = v[n]", "v[n]")
    assert "index 7 is out of bounds for axis 0 of 'v' (vec3f), which has size 3" in str(error)


def test_threads_have_as_many_coordinates_as_tid():
    @wp.kernel
    def plane(x: wp.array2d[float]):
        i, j = wp.tid()
        x[i, j] = 1.0

    wp.config.cpu_threads = 1
    try:
        error = fault(plane, [wp.zeros((2, 3))], IndexError, dim=(2, 4))
    finally:
        wp.config.cpu_threads = None
    assert re.search(r"index 3 is out of bounds for axis 1 of 'x', which has size 3, .* thread \(0, 3\)", str(error))


# Without the lines in the machine code, which would make the two differ.
SOURCE = """
import warp as wp

@wp.kernel(module_options={"lineinfo": False, "lanes": 8})
def moved(x: wp.array[float], at: wp.array[int]):
    i = wp.tid()
    x[at[i]] = 1.0
"""


def load(path, text):
    path.write_text(text)
    linecache.checkcache(str(path))
    names = {"__name__": path.stem}
    exec(compile(text, str(path), "exec"), names)
    return names["moved"]


@pytest.mark.parametrize("mode", ["debug", "release"])
def test_a_cached_kernel_that_moved_tells_its_lines_as_they_are_now(tmp_path, mode):
    """Debug sites and remarks come from the disk cache without lines of another day."""
    wp.config.mode = mode
    old = load(tmp_path / "first.py", SOURCE)
    new = load(tmp_path / "second.py", SOURCE.replace("\n@wp", "\n# a comment\n# and another\n@wp").replace("x", "xs"))
    device = "cpu" if mode == "release" else None  # remarks are about lanes, which GPUs have not
    old.compile(device)
    report = new.compile(device)
    assert report["from_cache"]
    if mode == "release":
        assert any(remark.startswith(f"{tmp_path / 'second.py'}:9:") for remark in report["remarks"]), report
        return
    error = fault(new, [wp.zeros(2), wp.array([5], dtype=int)], IndexError)
    assert error.path == str(tmp_path / "second.py") and error.line == 9
    assert "of 'xs'" in str(error) and "xs[at[i]] = 1.0" in str(error)


@wp.kernel
def nearest(mesh: wp.uint64, place: wp.array[wp.vec3], distance: wp.array[float]):
    i = wp.tid()
    found = wp.mesh_query_point(mesh, place[i], 10.0)
    if found.result:
        distance[i] = wp.length(wp.mesh_eval_position(mesh, found.face, found.u, found.v) - place[i])


def triangle():
    points = wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
    return wp.Mesh(points, wp.array([0, 1, 2], dtype=int))


@pytest.mark.host_memory("meshes are for the CPU", on="cuda")
def test_an_id_of_a_mesh_that_is_gone():
    place, distance = wp.array([[0.2, 0.2, 1.0]], dtype=wp.vec3, requires_grad=True), wp.zeros(1, requires_grad=True)
    mesh = triangle()
    wp.launch(nearest, dim=1, inputs=[mesh.id, place, distance])
    assert distance.list() == [1.0]
    gone = mesh.id
    del mesh
    error = fault(nearest, [gone, place, distance], ValueError)
    assert_shown(
        error, nearest, "found = wp.mesh_query_point(mesh, place[i], 10.0)", "wp.mesh_query_point(mesh, place[i], 10.0)"
    )
    assert f"the id 'mesh' ({gone}) names no mesh. help: a mesh has to live as long as kernels use its id" in str(error)
    with pytest.raises(ValueError, match="names no mesh"):
        wp.launch(nearest, 1, [gone, place], [distance], [gone, None], [None], adjoint=True)
    wp.config.mode = "release"
    wp.launch(nearest, dim=1, inputs=[gone, place, distance.zero_() or distance])
    assert distance.list() == [0.0]


@pytest.mark.host_memory("meshes are for the CPU", on="cuda")
def test_ids_of_something_else():
    place, distance = wp.zeros(1, dtype=wp.vec3), wp.zeros(1)
    grid = wp.HashGrid(4, 4, 4)
    error = fault(nearest, [grid.id, place, distance], ValueError)
    assert f"the id 'mesh' ({grid.id}) names a hash grid, where that of a mesh is expected, in kernel" in str(error)
    assert "the id 'mesh' (0) names no mesh" in str(fault(nearest, [0, place, distance], ValueError))


def test_ids_of_every_kind_of_object():
    @wp.kernel
    def boxes(bvh: wp.uint64, out: wp.array[int]):
        for index in wp.bvh_query_aabb(bvh, wp.vec3(0.0), wp.vec3(1.0)):
            out[0] = index

    @wp.kernel
    def neighbours(grid: wp.uint64, out: wp.array[int]):
        for index in wp.hash_grid_query(grid, wp.vec3(0.0), 1.0):
            out[0] = index

    @wp.kernel
    def voxel(volume: wp.uint64, out: wp.array[int]):
        out[0] = wp.volume_lookup_i(volume, 0, 0, 0)

    out = wp.zeros(1, dtype=int)
    assert "(5) names no BVH" in str(fault(boxes, [5, out], ValueError))
    assert "(5) names no hash grid" in str(fault(neighbours, [5, out], ValueError))
    assert "(5) names no volume" in str(fault(voxel, [5, out], ValueError))
    tree = wp.Bvh(wp.zeros(1, dtype=wp.vec3), wp.full(1, wp.vec3(1.0), dtype=wp.vec3))
    wp.launch(boxes, dim=1, inputs=[tree.id, out])


@pytest.mark.host_memory("meshes are for the CPU", on="cuda")
def test_ids_that_no_thread_uses_are_not_looked_at():
    @wp.kernel
    def maybe(meshes: wp.array[wp.uint64], place: wp.array[wp.vec3], found: wp.array[bool]):
        i = wp.tid()
        if meshes[i] != wp.uint64(0):
            found[i] = wp.mesh_query_point(meshes[i], place[i], 10.0).result

    mesh = triangle()
    place, found = wp.zeros(3, dtype=wp.vec3), wp.zeros(3, dtype=bool)
    wp.launch(maybe, dim=3, inputs=[wp.array([0, mesh.id, 0], dtype=wp.uint64), place, found])
    assert found.list() == [False, True, False]
    error = fault(maybe, [wp.array([0, mesh.id, 7], dtype=wp.uint64), place, found], ValueError, dim=3)
    assert "the id 'meshes[...]' (7) names no mesh" in str(error) and "thread (2,)" in str(error)

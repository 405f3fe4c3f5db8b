"""wp.config.mode = "check": launches on the CPU raise if threads race, and if memory is read that was never
written, with the argument, the element and the line of each access."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

pytestmark = [
    pytest.mark.host_memory("accesses are noted on the CPU"),
    pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers"),
]


@pytest.fixture(autouse=True)
def mode(monkeypatch):
    monkeypatch.setattr(wp.config, "mode", "check")


def line_of(text, nth=0):
    """The number of the line of this file that holds the text and is no test's own."""
    lines = Path(__file__).read_text().splitlines()
    return [n for n, line in enumerate(lines, 1) if line.strip() == text][nth]


def found(launch, *expected):
    with pytest.raises(RuntimeError) as error:
        launch()
    assert isinstance(error.value, wp.UsageError)
    text = str(error.value)
    for part in expected:
        assert part in text, text
    return [int(number) for number in re.findall(r"test_check_mode\.py:(\d+):", text)]


@wp.struct
class Bodies:
    x: wp.array[float]
    v: wp.array[float]


@wp.kernel
def shifts(x: wp.array[float]):
    i = wp.tid()
    right = x[(i + 1) % x.shape[0]]
    x[i] = right + 1.0


@wp.kernel
def adds(index: wp.array[int], bodies: Bodies):
    i = wp.tid()
    v = bodies.v[index[i]]
    bodies.v[index[i]] = v + bodies.x[i]


@wp.kernel
def moves(dt: float, bodies: Bodies, total: wp.array[float]):
    i = wp.tid()
    bodies.x[i] += dt * bodies.v[i]
    wp.atomic_add(total, 0, bodies.x[i])


@wp.kernel
def squares(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] * x[i]


def bodies_of(n):
    bodies = Bodies()
    bodies.x, bodies.v = wp.ones(n), wp.full(n, 2.0, dtype=float)
    return bodies


def test_a_race_names_kernel_argument_element_and_both_lines():
    x = wp.array(np.arange(40.0), dtype=float)
    lines = found(
        lambda: wp.launch(shifts, 40, inputs=[x]),
        "race: 'x'[1] is written here, and read by thread (0,), in kernel 'shifts', thread (1,)",
        "note: read by thread (0,) here",
    )
    assert lines == [line_of("x[i] = right + 1.0"), line_of("right = x[(i + 1) % x.shape[0]]")]


def test_a_race_of_an_array_in_a_struct():
    lines = found(
        lambda: wp.launch(adds, 40, inputs=[wp.zeros(40, dtype=int), bodies_of(40)]),
        "race: 'bodies.v'[0] is read here, and written by thread (0,), in kernel 'adds', thread (1,)",
    )
    assert lines == [line_of("v = bodies.v[index[i]]"), line_of("bodies.v[index[i]] = v + bodies.x[i]")]


def test_what_does_not_race_runs_and_gives_its_numbers():
    bodies, total = bodies_of(40), wp.zeros(1)
    wp.launch(moves, 40, inputs=[0.5, bodies, total])
    np.testing.assert_array_equal(bodies.x.numpy(), np.full(40, 2.0))
    assert total.numpy() == [80.0]
    wp.launch(adds, 40, inputs=[wp.array(np.arange(40)[::-1].copy(), dtype=int), bodies])
    np.testing.assert_array_equal(bodies.v.numpy(), np.full(40, 4.0))


def test_an_equal_number_from_many_threads_is_no_race():
    @wp.kernel
    def notes(flag: wp.array[int]):
        flag[0] = 1

    flag = wp.zeros(1, dtype=int)
    wp.launch(notes, 30, inputs=[flag])
    assert flag.numpy() == [1]

    @wp.kernel
    def differs(flag: wp.array[int]):
        flag[0] = wp.tid()

    found(lambda: wp.launch(differs, 30, inputs=[flag]), "race: 'flag'[0] is written here, and written by thread (0,)")


@pytest.mark.parametrize("dtype", [wp.uint8, wp.float16, wp.float64], ids=lambda dtype: dtype.__name__)
def test_neighbours_of_every_size_are_apart(dtype):
    @wp.kernel(module="unique")
    def fills(x: wp.array(dtype=dtype), step: int):
        i = wp.tid()
        x[i / step] = dtype(i + 1)

    x = wp.zeros(64, dtype=dtype)
    wp.launch(fills, 64, inputs=[x, 1])
    np.testing.assert_array_equal(x.numpy(), np.arange(1, 65))
    found(lambda: wp.launch(fills, 64, inputs=[x, 3]), "race: 'x'[0]")


def test_components_of_one_vector_are_apart():
    @wp.kernel
    def components(v: wp.array[wp.vec3], m: wp.array[wp.mat33], out: wp.array[float]):
        i = wp.tid()
        v[0][i] = float(i)
        m[0][i, 1] = 2.0
        if i == 0:
            v[1].x = 5.0
            out[3] = v[1].x
        if i == 1:
            v[1].y = 6.0
            out[4] = v[1].y
        out[i] = v[0][i] + m[0][i, 1] + m[0][i][2]

    out = wp.zeros(5)
    wp.launch(components, 3, inputs=[wp.zeros(2, dtype=wp.vec3), wp.zeros(1, dtype=wp.mat33), out])
    np.testing.assert_array_equal(out.numpy(), [2, 3, 4, 5, 6])

    @wp.kernel
    def neighbours(v: wp.array[wp.vec3], out: wp.array[float]):
        i = wp.tid()
        v[1][i] = float(i + 1)
        out[i] = v[1][(i + 1) % 3]

    v = wp.zeros(2, dtype=wp.vec3)
    found(lambda: wp.launch(neighbours, 3, inputs=[v, wp.zeros(3)]), "race: 'v'[1] is written here, and read by")


def test_threads_of_several_dimensions():
    @wp.kernel
    def columns(a: wp.array2d[float], out: wp.array2d[float]):
        i, j = wp.tid()
        out[j, 0] = a[i, j]

    a = wp.array(np.arange(12.0).reshape(3, 4), dtype=float)
    found(
        lambda: wp.launch(columns, (3, 4), inputs=[a, wp.zeros((4, 2))]),
        "race: 'out'[0, 0] is written here, and written by thread (0, 0), in kernel 'columns', thread (1, 0)",
    )
    wp.launch(columns, (1, 4), inputs=[a, wp.zeros((4, 2))])


def test_functions_rows_and_strided_arrays():
    @wp.func
    def put(a: wp.array[float], i: int, value: float):
        a[i] = value

    @wp.kernel
    def through_function(a: wp.array2d[float]):
        i = wp.tid()
        row = a[i / 2]
        put(row, 1, float(i))

    found(
        lambda: wp.launch(through_function, 4, inputs=[wp.zeros((4, 6))[:, ::-2]]),
        "[0, 1] is written here",
        "in 'put'",
        "'put' is called here",
    )
    found(lambda: wp.launch(shifts, 4, inputs=[wp.zeros(8)[::-2]]), "race: 'x'[1]")
    found(lambda: wp.launch(shifts, 4, inputs=[np.zeros(4, np.float32)]), "race: 'x'[1]")


def test_indexed_arrays():
    @wp.kernel
    def writes(a: wp.indexedarray(dtype=float)):
        i = wp.tid()
        a[i] = float(i)

    data = wp.zeros(8)
    wp.launch(writes, 3, inputs=[wp.indexedarray(data, [wp.array([0, 5, 2], dtype=int)])])
    np.testing.assert_array_equal(data.numpy()[[0, 5, 2]], [0, 1, 2])
    again = wp.indexedarray(data, [wp.array([0, 5, 2, 5], dtype=int)])
    found(lambda: wp.launch(writes, 4, inputs=[again]), "race: 'a.data'[5]", "thread (1,)", "thread (3,)")


@pytest.mark.parametrize("kind", ["mesh", "grid", "volume"])
def test_kernels_with_geometry(kind):
    @wp.kernel
    def of_mesh(id: wp.uint64, out: wp.array[float], step: int):
        i = wp.tid()
        q = wp.mesh_query_point_no_sign(id, wp.vec3(0.2, 0.2, float(i)), 100.0)
        out[i / step] = wp.mesh_eval_position(id, q.face, q.u, q.v)[0] + float(i)

    @wp.kernel
    def of_grid(id: wp.uint64, out: wp.array[float], step: int):
        i = wp.tid()
        s = float(i)
        for j in wp.hash_grid_query(id, wp.vec3(0.0, 0.0, 0.0), 5.0):
            s += float(j)
        out[i / step] = s

    @wp.kernel
    def of_volume(id: wp.uint64, out: wp.array[float], step: int):
        i = wp.tid()
        out[i / step] = wp.volume_lookup_f(id, i, 0, 0) + float(i)

    points = wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
    if kind == "mesh":
        made, kernel = wp.Mesh(points, wp.array([0, 1, 2], dtype=int)), of_mesh
    elif kind == "grid":
        made, kernel = wp.HashGrid(4, 4, 4), of_grid
        made.build(points, 5.0)
    else:
        made, kernel = wp.Volume.load_from_numpy(np.ones((4, 4, 4), np.float32)), of_volume
    out = wp.zeros(4)
    wp.launch(kernel, 4, inputs=[made.id, out, 1])
    assert np.all(np.diff(out.numpy()) == 1.0)
    found(lambda: wp.launch(kernel, 4, inputs=[made.id, out, 2]), "race: 'out'[0]")


def test_graphs_and_recorded_launches():
    x = wp.zeros(40)
    with wp.ScopedCapture() as capture:
        wp.launch(squares, 40, inputs=[x, x])
        wp.launch(shifts, 40, inputs=[x])
    lines = found(lambda: wp.capture_launch(capture.graph), "race: 'x'[1]", "kernel 'shifts'")
    assert lines == [line_of("x[i] = right + 1.0"), line_of("right = x[(i + 1) % x.shape[0]]")]
    command = wp.launch(shifts, 40, inputs=[x], record_cmd=True)
    found(command.launch, "race: 'x'[1]", "kernel 'shifts'")
    command.set_param_at_index(0, wp.zeros(1))
    command.set_dim(1)
    command.launch()


def test_memory_that_was_never_written():
    line = line_of("y[i] = x[i] * x[i]")
    for unwritten in (wp.empty(4), wp.empty_like(wp.zeros(4))):
        with pytest.raises(ValueError, match=r"'x'\[0\] is read, and was never written, in kernel 'squares'") as error:
            wp.launch(squares, 4, inputs=[unwritten, wp.empty(4)])
        assert f"test_check_mode.py:{line}:" in str(error.value)
    y = wp.empty(4)
    wp.launch(squares, 4, inputs=[wp.full(4, 3.0, dtype=float), y])
    np.testing.assert_array_equal(y.numpy(), np.full(4, 9.0))
    partly = wp.empty(4, dtype=wp.float64)
    partly[:2].fill_(1.0)

    @wp.kernel
    def adds_up(x: wp.array[wp.float64], total: wp.array[wp.float64]):
        wp.atomic_add(total, 0, x[wp.tid()])

    total = wp.zeros(1, dtype=wp.float64)
    wp.launch(adds_up, 2, inputs=[partly, total])
    assert total.numpy() == [2.0]
    with pytest.raises(ValueError, match=r"'x'\[2\] is read, and was never written"):
        wp.launch(adds_up, 4, inputs=[partly, total])
    with pytest.raises(ValueError, match=r"'total'\[0\] is read, and was never written"):
        wp.launch(adds_up, 2, inputs=[partly, wp.empty(1, dtype=wp.float64)])


def test_adjoints():
    x, y = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, 3, inputs=[x, y])
    tape.backward(grads={y: wp.ones(3)})
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4, 6])
    with pytest.raises(
        ValueError, match=r"the gradient of 'y'\[0\] is read, and was never written, in kernel 'squares'"
    ):
        wp.launch(
            squares, 3, inputs=[x], outputs=[y], adj_inputs=[wp.zeros(3)], adj_outputs=[wp.empty(3)], adjoint=True
        )


def test_an_adjoint_that_races():
    @wp.kernel
    def gathers(index: wp.array[int], x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[index[i]] = x[i]

    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    same = wp.zeros(3, dtype=int)
    y.grad.fill_(1.0)
    lines = found(
        lambda: wp.launch(
            gathers,
            3,
            inputs=[same, x],
            outputs=[y],
            adj_inputs=[None, x.grad],
            adj_outputs=[y.grad],
            adjoint=True,
        ),
        "race: the gradient of 'y'[0] is read here, and written by thread (0,), in kernel 'gathers', thread (1,)",
    )
    assert set(lines) == {line_of("y[index[i]] = x[i]")}


PROGRAM = """
import warp as wp
wp.set_device("cpu")
wp.config.mode = "check"

@wp.kernel
def shifts(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[(i + 1) % x.shape[0]] + 1.0

try:
    wp.launch(shifts, 8, inputs=[wp.zeros(8)], device="cpu")
except wp.UsageError as error:
    print("found" if "race" in str(error) else error)
wp.config.mode = "release"
wp.launch(shifts, 8, inputs=[wp.zeros(8)], device="cpu")
print("ran")
"""


@pytest.mark.parametrize("driver", [None, "none", "emulated"])
def test_any_process_can_ask_for_it(driver, tmp_path, monkeypatch):
    monkeypatch.delenv("WARP_CUDA_DRIVER", raising=False)
    if driver:
        monkeypatch.setenv("WARP_CUDA_DRIVER", driver)
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "cache"))
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["found", "ran"], done.stdout


def test_the_mode_is_checked(monkeypatch):
    with pytest.raises(ValueError, match='expected "release", "debug" or "check"'):
        wp.config.mode = "checks"

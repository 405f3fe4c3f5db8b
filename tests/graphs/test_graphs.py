"""Graphs: work that is captured once, and run again and again."""

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import warp as wp
from run_in_threads import run_in_threads

pytestmark = [pytest.mark.protected, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


@wp.kernel
def add_one(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] += 1.0


@wp.kernel
def axpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] + a * x[i]


@wp.kernel
def countdown(count: wp.array(dtype=int), steps: wp.array(dtype=int)):
    count[0] = count[0] - 1
    steps[0] = steps[0] + 1


def captured(function, device=None):
    with wp.ScopedCapture(device=device) as capture:
        function()
    return capture.graph


@pytest.mark.seed("S-GRF-001", "S-GRF-002", "S-GRF-003", "S-GRF-004", "S-GRF-009", "P-51", "P-52")
def test_a_hundred_launches_are_captured_and_not_run():
    a = wp.zeros(1024, dtype=float)
    said = []
    wp.capture_begin()
    for step in range(100):
        wp.launch(add_one, inputs=[a])
        said.append(step)
    graph = wp.capture_end()
    assert len(said) == 100 and not a.numpy().any()
    wp.capture_launch(graph)
    assert a.numpy().tolist() == [100.0] * 1024 and len(said) == 100
    wp.capture_launch(graph)
    assert a.numpy().tolist() == [200.0] * 1024


@pytest.mark.seed("S-GRF-005", "S-GRF-006", "S-GRF-007")
def test_arguments_of_capture(device):
    with wp.ScopedDevice(device):
        a = wp.zeros(3)
        stream = wp.get_stream(device)
        wp.capture_begin(device=device, stream=stream, force_module_load=True)
        wp.launch(add_one, dim=3, inputs=[a], device=device)
        graph = wp.capture_end(device=device, stream=stream)
        assert isinstance(graph, wp.Graph) and graph.device == device
        wp.capture_launch(graph, stream=stream)
        assert a.numpy().tolist() == [1.0] * 3


@pytest.mark.seed("S-GRF-010")
def test_copies_and_fills_are_captured_in_order(device):
    with wp.ScopedDevice(device):
        a, b, c = wp.full(4, 7.0, dtype=float), wp.zeros(4), wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)

        def work():
            wp.copy(b, a)
            wp.launch(add_one, dim=4, inputs=[b])
            a.zero_()
            a[1:3].fill_(5.0)
            c.assign([9.0, 8.0, 7.0, 6.0])
            wp.launch(axpy, dim=4, inputs=[2.0, c, a])
            c[0] = 100.0
            c[2:] = np.array([30.0, 40.0], dtype=np.float32)

        graph = captured(work, device)
        assert (a.list(), b.list(), c.list()) == ([7.0] * 4, [0.0] * 4, [1.0, 2.0, 3.0, 4.0])
        for _ in range(3):
            wp.capture_launch(graph)
            assert b.list() == [8.0] * 4
            assert a.list() == [18.0, 21.0, 19.0, 12.0]
            assert c.list() == [100.0, 8.0, 30.0, 40.0]
            a.fill_(7.0)


def test_host_data_are_those_of_the_capture():
    a, host = wp.zeros(3), np.array([1, 2, 3], dtype=np.float32)
    values = [4.0, 5.0, 6.0]

    def work():
        a.assign(host)
        made = wp.array(values, dtype=float)
        from_numpy = wp.array(host, dtype=float)
        wp.launch(axpy, dim=3, inputs=[1.0, made, a])
        wp.launch(axpy, dim=3, inputs=[1.0, from_numpy, a])
        wp.launch(add_one, dim=3, inputs=[made])

    graph = captured(work)
    host[:], values[:] = 50.0, [0.0, 0.0, 0.0]
    for _ in range(2):  # what was made inside begins anew
        wp.capture_launch(graph)
        assert a.list() == [6.0, 9.0, 12.0]


def test_arrays_that_are_made_inside_begin_anew_each_time(device):
    with wp.ScopedDevice(device):
        out = wp.zeros(3)

        def work():
            zeros, full, copied = wp.zeros(3), wp.full(3, 2.0, dtype=float), wp.clone(out)
            wp.launch(add_one, dim=3, inputs=[zeros])
            wp.launch(axpy, dim=3, inputs=[1.0, zeros, full])
            wp.launch(axpy, dim=3, inputs=[1.0, full, copied])
            wp.copy(out, copied)

        graph = captured(work, device)
        gc.collect()
        litter = [wp.full(3, 99.0, dtype=float) for _ in range(50)]
        for n in range(1, 4):
            wp.capture_launch(graph)
            assert out.list() == [3.0 * n] * 3
        assert all(one.list() == [99.0] * 3 for one in litter)


def test_memory_lives_as_long_as_the_graph(device):
    with wp.ScopedDevice(device):
        out = wp.zeros(1000)

        def make():
            x = wp.full(1000, 3.0, dtype=float)
            return captured(lambda: wp.launch(axpy, dim=1000, inputs=[1.0, x, out]), device)

        graph = make()
        gc.collect()
        litter = [wp.full(1000, 99.0, dtype=float) for _ in range(50)]
        wp.capture_launch(graph)
        assert set(out.list()) == {3.0} and all(one.list()[5] == 99.0 for one in litter)
        # The other way: an array outlives its graph.
        y = wp.zeros(1000)
        graph = captured(lambda: wp.launch(add_one, dim=1000, inputs=[y]), device)
        wp.capture_launch(graph)
        del graph
        gc.collect()
        assert set(y.list()) == {1.0}


@pytest.mark.host_memory("launches with the memory of NumPy")
def test_foreign_memory_lives_as_long_as_the_graph_and_no_longer():
    class Owned(np.ndarray):
        pass

    out = wp.zeros(1000)
    x = np.full(1000, 3.0, dtype=np.float32).view(Owned)
    gone = weakref.ref(x)
    graphs = [captured(lambda: wp.launch(axpy, dim=1000, inputs=[1.0, x, out])) for _ in range(2)]  # noqa: F821
    y = wp.array(x, copy=False)
    graphs.append(captured(lambda: wp.launch(axpy, dim=1000, inputs=[1.0, y, out])))  # noqa: F821
    del x, y
    gc.collect()
    assert gone() is not None
    while graphs:
        wp.capture_launch(graphs[0])
        del graphs[0]
        gc.collect()
    assert set(out.list()) == {9.0} and gone() is None


def test_a_kernel_that_is_gone_stays_in_the_graph():
    def make(factor):
        @wp.kernel(module="unique")
        def scaled(a: wp.array(dtype=float)):
            i = wp.tid()
            a[i] = a[i] * factor

        return scaled

    a = wp.full(5, 2.0, dtype=float)
    graph = captured(lambda: wp.launch(make(3.0), dim=5, inputs=[a]))
    gc.collect()
    wp.capture_launch(graph)
    assert a.list() == [6.0] * 5


def test_recorded_launches_and_launches_of_adjoints():
    x, y = wp.full(4, 2.0, dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)
    command = wp.launch(axpy, dim=4, inputs=[3.0, x, y], record_cmd=True)

    def work():
        command.launch()
        y.grad.fill_(1.0)
        wp.launch(axpy, 4, [3.0, x, y], adj_inputs=[None, x.grad, y.grad], adjoint=True)

    graph = captured(work)
    assert y.list() == [0.0] * 4 and x.grad.list() == [0.0] * 4
    command.set_param_at_index(0, 100.0)  # the graph has what was set then
    wp.capture_launch(graph)
    assert y.list() == [6.0] * 4 and x.grad.list() == [3.0] * 4


@wp.kernel
def square(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i] * x[i])


@wp.kernel
def damp(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = wp.sin(x[i]) + 0.5 * x[i]


@wp.kernel
def descend(x: wp.array(dtype=float), gradient: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] - 0.05 * gradient[i]


def test_a_training_step_in_a_graph_is_the_one_outside():
    """Forward, backward and update, with an array that is overwritten on the tape."""
    start = np.linspace(0.1, 1.0, 50).astype(np.float32)

    def run(in_graph):
        x, state = wp.array(start, dtype=float, requires_grad=True), wp.zeros(50, requires_grad=True)
        loss = wp.zeros(1, requires_grad=True)
        tape = wp.Tape()

        def step():
            tape.reset()
            loss.zero_()
            with tape:
                wp.copy(state, x)
                for _ in range(3):
                    wp.launch(damp, dim=50, inputs=[state])
                wp.launch(square, dim=50, inputs=[state, loss])
            tape.backward(loss)
            wp.launch(descend, dim=50, inputs=[x, x.grad])
            tape.zero()

        losses = []
        graph = captured(step) if in_graph else None
        for _ in range(6):
            wp.capture_launch(graph) if in_graph else step()
            losses.append(loss.list()[0])
        return losses, x.list()

    eager, replayed = run(False), run(True)
    assert eager[0][0] > eager[0][-1]
    np.testing.assert_allclose(replayed[0], eager[0], rtol=1e-6)
    np.testing.assert_allclose(replayed[1], eager[1], rtol=1e-6)


def test_a_tape_knows_that_a_graph_has_overwritten_an_array():
    x, y = wp.full(4, 2.0, dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)

    @wp.kernel
    def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i] * x[i]

    graph = captured(lambda: wp.launch(add_one, dim=4, inputs=[x]))
    tape = wp.Tape()
    with tape:
        wp.launch(damp, dim=4, inputs=[x])
        wp.launch(cube, dim=4, inputs=[x, y])
        with pytest.raises(RuntimeError, match="a tape is recording, and cannot record the work of a graph"):
            wp.capture_launch(graph)
    wp.capture_launch(graph)
    y.grad.fill_(1.0)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward()


def test_gradients_that_are_known_to_be_zero_are_cleared_in_a_graph():
    x, y = wp.full(4, 2.0, dtype=float, requires_grad=True), wp.zeros(4, requires_grad=True)
    tape = wp.Tape()

    def step():
        with tape:
            wp.launch(axpy, dim=4, inputs=[3.0, x, y])
        tape.backward(grads={y: wp.ones(4, dtype=float)})
        tape.zero()
        tape.reset()

    graph = captured(step)
    for _ in range(2):
        wp.capture_launch(graph)
        assert x.grad.list() == [0.0] * 4
    x.grad.fill_(5.0)
    tape.zero()
    wp.capture_launch(graph)
    assert x.grad.list() == [0.0] * 4


def test_operations_on_whole_arrays():
    rng = np.random.default_rng(1)
    keys, values = wp.zeros(200, dtype=int), wp.zeros(200, dtype=int)
    sums, total = wp.zeros(100), wp.zeros(1)
    x = wp.array(rng.random(100), dtype=float)
    a, b, c = (wp.array(rng.random((8, 8)), dtype=float) for _ in range(3))
    numbers = rng.integers(0, 50, 100).astype(np.int32)
    source = wp.array(numbers, dtype=int)

    def work():
        wp.copy(keys, source, count=100)
        values.zero_()
        wp.utils.radix_sort_pairs(keys, values, 100)
        wp.utils.array_scan(x, sums, inclusive=True)
        wp.utils.array_sum(x, out=total)
        wp.matmul(a, b, c, c, beta=1.0)
        wp.copy(a, a + b)

    before = [array.numpy().copy() for array in (a, b, c)]
    graph = captured(work)
    assert not sums.numpy().any() and not total.numpy().any()
    np.testing.assert_array_equal(a.numpy(), before[0])
    for n in range(2):
        wp.capture_launch(graph)
        product = before[0] @ before[1] + before[2]
        np.testing.assert_array_equal(keys.numpy()[:100], np.sort(numbers))
        np.testing.assert_allclose(sums.numpy(), np.cumsum(x.numpy()), rtol=1e-5)
        np.testing.assert_allclose(total.numpy(), x.numpy().sum(), rtol=1e-5)
        np.testing.assert_allclose(c.numpy(), product, rtol=1e-4)
        np.testing.assert_allclose(a.numpy(), before[0] + before[1], rtol=1e-6)
        before[0], before[2] = a.numpy().copy(), c.numpy().copy()
        x.fill_(float(n))


def test_what_needs_numbers_at_once_is_an_error(device):
    with wp.ScopedDevice(device):
        a = wp.zeros(3)
        for ask in (
            lambda: a.numpy(),
            lambda: a.list(),
            lambda: a[0],
            lambda: a.__array__(),
            lambda: wp.utils.array_sum(a),
            lambda: wp.utils.array_inner(a, a),
            lambda: wp.synchronize_stream(wp.get_stream()),
        ):
            with wp.ScopedCapture(device=device) as capture:
                with pytest.raises(RuntimeError, match="a graph is being captured, and its launches have not"):
                    ask()
                wp.launch(add_one, dim=3, inputs=[a])
            a.zero_()
            wp.capture_launch(capture.graph)
            assert a.list() == [1.0] * 3


@pytest.mark.host_memory("has a grid, which is built in the host's memory only")
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
    """Grids are built in the host's memory only; the others live on each device whose kernels the host executes."""
    return pytest.mark.host_memory(f"has a {kind}, which is the host's", on="" if kind == "grid" else "cuda")


def filled_grid():
    grid = wp.HashGrid(8, 8, 8)
    grid.build(wp.array([[0.5, 0.5, 0.5], [0.55, 0.5, 0.5]], dtype=wp.vec3), 0.2)
    return grid


@wp.struct
class Scene:
    number: float
    object: wp.uint64


def asks(kind):
    """Kernels that ask an object of this kind; the answer is not 0 where the object is there."""

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
        others = [OBJECTS[kind]() for _ in range(3)]  # where its memory and its place were
        fresh = [wp.full(1000, 77.0, dtype=float) for _ in range(50)]
        for _ in range(2):
            out.zero_()
            wp.capture_launch(graph)
            assert out.list() == [expected]
        assert all(other.id != id for other in others) and len(fresh) == 50
        del graph
        gc.collect()
        wp.launch(kernel, dim=1, inputs=[argument, out])  # it has gone with the graph
        assert out.list()[0] < expected


@pytest.mark.host_memory("has meshes, which are the host's", on="cuda")
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


def test_conditions_are_asked_when_the_graph_runs(device):
    with wp.ScopedDevice(device):
        condition, a, b = wp.array([0], dtype=int), wp.zeros(1), wp.zeros(1)
        count, steps = wp.array([3], dtype=int), wp.zeros(1, dtype=int)
        other = captured(lambda: wp.launch(add_one, dim=1, inputs=[b]), device)

        def work():
            wp.capture_if(condition, lambda x: wp.launch(add_one, dim=1, inputs=[x]), other, x=a)
            wp.capture_while(count, lambda: wp.launch(countdown, dim=1, inputs=[count, steps]))
            count.fill_(2)

        graph = captured(work, device)
        assert a.list() == b.list() == [0.0] and count.list() == [3]
        wp.capture_launch(graph)
        assert (a.list(), b.list(), steps.list(), count.list()) == ([0.0], [1.0], [3], [2])
        condition.fill_(1)
        wp.capture_launch(graph)
        assert (a.list(), b.list(), steps.list()) == ([1.0], [1.0], [5])
        wp.capture_while(count, captured(lambda: wp.launch(countdown, dim=1, inputs=[count, steps]), device))
        assert steps.list() == [7]


def test_a_graph_in_a_graph(device):
    with wp.ScopedDevice(device):
        a = wp.zeros(2)
        inner = captured(lambda: wp.launch(add_one, dim=2, inputs=[a]), device)

        def work():
            for _ in range(3):
                wp.capture_launch(inner)
            wp.launch(axpy, dim=2, inputs=[1.0, a, a])

        outer = captured(work, device)
        inner = None
        gc.collect()
        wp.capture_launch(outer)
        assert a.list() == [6.0, 6.0]


@pytest.mark.seed("S-GRF-008")
def test_mistakes_leave_everything_usable():
    a = wp.zeros(2)
    with pytest.raises(RuntimeError, match=f"nothing is being captured on this stream of '{wp.get_device()}'"):
        wp.capture_end()
    wp.capture_begin()
    with pytest.raises(RuntimeError, match="is being captured already"):
        wp.capture_begin()
    wp.launch(add_one, dim=2, inputs=[a])
    wp.capture_launch(wp.capture_end())
    assert a.list() == [1.0, 1.0]
    with pytest.raises(ZeroDivisionError), wp.ScopedCapture() as capture:
        wp.launch(add_one, dim=2, inputs=[a])
        raise ZeroDivisionError
    assert capture.graph is None and not wp.get_device().is_capturing
    wp.launch(add_one, dim=2, inputs=[a])
    assert a.list() == [2.0, 2.0]
    with pytest.raises(TypeError, match="expected a wp.Graph, got None"):
        wp.capture_launch(None)
    with pytest.raises(RuntimeError, match="graphs come from"):
        wp.Graph()
    with wp.ScopedCapture() as capture:
        with pytest.raises(TypeError):
            wp.launch(add_one, dim=2, inputs=["nothing"])
        wp.launch(add_one, dim=2, inputs=[a])
    wp.capture_launch(capture.graph)
    assert a.list() == [3.0, 3.0]


@pytest.mark.parametrize("condition", [wp.capture_if, wp.capture_while], ids=["if", "while"])
def test_the_body_of_a_condition_leaves_the_capture_as_it_is(condition):
    """It ended the process."""
    n, a = wp.array([1], dtype=int), wp.zeros(2)
    stream = wp.Stream()
    mistakes = [
        (wp.capture_end, "the body of a condition is being captured, which ends with it"),
        (lambda: wp.set_stream(stream), "has made another stream of"),
    ]
    before = wp.get_stream()
    for body, message in mistakes:
        with pytest.raises(RuntimeError, match=message), wp.ScopedCapture() as capture:
            try:
                condition(n, body)
            finally:
                wp.set_stream(before)
        assert capture.graph is None and not wp.get_device().is_capturing
    with wp.ScopedCapture() as capture:
        wp.launch(add_one, dim=2, inputs=[a])
    wp.capture_launch(capture.graph)
    assert a.list() == [1.0, 1.0]


def test_a_graph_on_a_stream_of_another_device_is_an_error():
    from protected_device import NAME, add

    add()
    here, a = wp.get_device(), wp.zeros(1)
    other = "cpu" if here.alias == NAME else NAME
    graph = captured(lambda: wp.launch(add_one, dim=1, inputs=[a]))
    with pytest.raises(RuntimeError, match=f"captured on '{here}', the stream is of '{other}'"):
        wp.capture_launch(graph, stream=wp.Stream(other))
    with pytest.raises(RuntimeError, match="the stream is of"):
        wp.launch(add_one, dim=1, inputs=[a], device=here, stream=wp.Stream(other))
    with pytest.raises(TypeError, match="stream is int 3, expected a wp.Stream or None"):
        wp.launch(add_one, dim=1, inputs=[a], stream=3)


def test_faults_and_prints_come_when_the_graph_runs(capfd):
    @wp.kernel(module_options={"mode": "debug"})
    def reads(a: wp.array(dtype=float), at: wp.array(dtype=int)):
        a[0] = a[at[0]]

    @wp.kernel
    def says(a: wp.array(dtype=float)):
        print(a[0])

    a, at = wp.array([5.0], dtype=float), wp.array([7], dtype=int)
    graph = captured(lambda: wp.launch(reads, dim=1, inputs=[a, at]))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 of 'a', which has size 1") as caught:
        wp.capture_launch(graph)
    assert "a[0] = a[at[0]]" in str(caught.value)
    at.zero_()
    a.fill_(5.0)
    wp.capture_launch(graph)
    graph = captured(lambda: wp.launch(says, dim=1, inputs=[a]))
    assert "5" not in capfd.readouterr().out
    wp.capture_launch(graph)
    wp.synchronize()
    assert capfd.readouterr().out.strip() == "5"


def test_other_threads_go_on_while_one_captures():
    a, b = wp.zeros(1), wp.zeros(1)
    wp.capture_begin()
    wp.launch(add_one, dim=1, inputs=[a])

    def other():
        wp.launch(add_one, dim=1, inputs=[b])
        with pytest.raises(RuntimeError, match="another thread has begun this capture, .*: the thread 'MainThread'"):
            wp.capture_end()
        if wp.get_device().is_cuda:
            with pytest.raises(
                RuntimeError, match="is being captured already, by the thread 'MainThread'. help: capture on"
            ):
                wp.capture_begin()
        results.append(b.list())

    results = []
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    graph = wp.capture_end()
    assert results == [[1.0]] and a.list() == [0.0]
    wp.capture_launch(graph)
    assert a.list() == [1.0] and b.list() == [1.0]


@pytest.mark.host_memory("is about the default stream of the CPU")
def test_threads_capture_at_the_same_time_on_the_cpu():
    """Each has the graph of its own work, without a stream of its own."""
    results, barrier = {}, threading.Barrier(4)

    def work(n):
        x = wp.zeros(8, device="cpu")
        stream = wp.get_stream("cpu")
        for k in range(20):
            barrier.wait(60)
            if k % 2:
                with wp.ScopedCapture(device="cpu") as capture:
                    barrier.wait(60)
                    for _ in range(n + 1):
                        wp.launch(add_one, dim=8, inputs=[x], device="cpu")
                graph = capture.graph
            else:
                wp.capture_begin(device="cpu")
                barrier.wait(60)
                for _ in range(n + 1):
                    wp.launch(add_one, dim=8, inputs=[x], device="cpu")
                graph = wp.capture_end(device="cpu")
            assert wp.get_stream("cpu") == stream
            wp.capture_launch(graph)
        results[n] = set(x.list())

    run_in_threads(work, range(4))
    assert results == {n: {20.0 * (n + 1)} for n in range(4)}


@pytest.mark.host_memory("is about the default stream of the CPU")
def test_a_capture_beside_another_one_ends_after_an_exception():
    x = wp.zeros(1, device="cpu")
    wp.capture_begin(device="cpu")

    def other():
        before = wp.get_stream("cpu")
        with pytest.raises(ValueError, match="mine"), wp.ScopedCapture(device="cpu"):
            raise ValueError("mine")
        assert wp.get_stream("cpu") == before
        with wp.ScopedCapture(device="cpu") as capture:
            wp.launch(add_one, dim=1, inputs=[x], device="cpu")
        wp.capture_launch(capture.graph)
        done.append(x.list())

    done = []
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    wp.launch(add_one, dim=1, inputs=[x], device="cpu")
    graph = wp.capture_end(device="cpu")
    assert done == [[1.0]]
    wp.capture_launch(graph)
    assert x.list() == [2.0]


def test_two_threads_capture_on_streams_of_their_own():
    results, barrier = {}, threading.Barrier(4)

    def work(n):
        x = wp.zeros(64)
        stream = wp.Stream()
        barrier.wait()
        stream.wait_stream(wp.get_stream())
        with wp.ScopedStream(stream, sync_exit=True):
            for _ in range(20):
                with wp.ScopedCapture() as capture:
                    for _ in range(n + 1):
                        wp.launch(add_one, dim=64, inputs=[x])
                wp.capture_launch(capture.graph)
        results[n] = set(x.list())

    run_in_threads(work, range(4))
    assert results == {n: {20.0 * (n + 1)} for n in range(4)}


def test_streams_fork_and_join_in_a_capture():
    a, b = wp.zeros(4), wp.zeros(4)
    first, second = wp.Stream(), wp.Stream()
    wp.capture_begin(stream=first)
    wp.launch(add_one, dim=4, inputs=[a], stream=first)
    second.wait_event(first.record_event())
    assert second.is_capturing
    wp.launch(axpy, dim=4, inputs=[2.0, a, b], stream=second)
    first.wait_stream(second)
    wp.launch(axpy, dim=4, inputs=[1.0, b, a], stream=first)
    graph = wp.capture_end(stream=first)
    assert not second.is_capturing and b.list() == [0.0] * 4
    wp.capture_launch(graph)
    assert (a.list(), b.list()) == ([3.0] * 4, [2.0] * 4)


@pytest.mark.seed("S-STM-007")
def test_streams_and_events_of_the_cpu(device):
    with wp.ScopedDevice(device):
        ours, stream = wp.get_stream(), wp.Stream(device)
        assert ours == wp.get_device(device).stream != stream and stream.device == device
        start, end = (wp.Event(device, enable_timing=True) for _ in range(2))
        a = wp.zeros(1000)
        with wp.ScopedStream(stream, sync_exit=True):
            assert wp.get_stream() == stream
            assert wp.record_event(start).device == device
            wp.launch(add_one, dim=1000, inputs=[a])
            wp.record_event(end)
        assert wp.get_stream() == ours
        assert 0.0 <= wp.get_event_elapsed_time(start, end) < 10_000.0
        wp.wait_event(end)
        wp.wait_stream(stream)
        wp.synchronize_event(end)
        wp.synchronize_stream(stream)
        wp.launch(add_one, dim=1000, inputs=[a], stream=stream)
        wp.wait_stream(stream)
        copy = wp.clone(a)
        stream.wait_stream(ours)
        wp.copy(a, copy, stream=stream)
        wp.synchronize_stream(stream)
        assert set(a.list()) == {2.0}
        wp.set_stream(stream)
        assert wp.get_stream() == stream
        wp.set_stream(ours)
        other = wp.Event(device)
        with pytest.raises(RuntimeError, match="does not measure time"):
            wp.get_event_elapsed_time(start, other)
        with pytest.raises(RuntimeError, match="was not recorded"):
            wp.get_event_elapsed_time(start, wp.Event(device, enable_timing=True))
    for ask in (lambda: wp.ScopedStream(3), lambda: wp.synchronize_event(None), lambda: wp.set_stream(None)):
        with pytest.raises(TypeError, match=r"expected a wp.(Stream|Event), got"):
            ask()
    with wp.ScopedStream(None) as nothing:
        assert nothing is None


def test_a_picture_of_a_graph(tmp_path):
    a, count, steps = wp.zeros(3), wp.zeros(1, dtype=int), wp.zeros(1, dtype=int)

    def work():
        wp.launch(add_one, dim=(3,), inputs=[a])
        a.zero_()
        wp.capture_while(count, lambda: wp.launch(countdown, dim=1, inputs=[count, steps]))

    graph = captured(work)
    wp.capture_debug_dot_print(graph, str(tmp_path / "graph.dot"))
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph") and "add_one\\ndim (3)" in text and "countdown" in text and "fill" in text
    wp.capture_debug_dot_print(graph, str(tmp_path / "graph.dot"), verbose=False)
    assert "dim" not in (tmp_path / "graph.dot").read_text()


# ---- chosen elements ----


@wp.func
def three_times(x: float):
    return 3.0 * x


def assigned(a, key, value):
    a[key] = value


def added(a, key, value):
    a[key] += value


# What they do with an array `a`, an indexedarray `i` of it that was made before the capture, and two arrays of three.
OF_CHOSEN_ELEMENTS = {
    "fill_": lambda a, i, b, out: i.fill_(2.0),
    "zero_": lambda a, i, b, out: i.zero_(),
    "assign an array": lambda a, i, b, out: i.assign(b),
    "assign a list": lambda a, i, b, out: i.assign([7.0, 8.0, 9.0]),
    "assign other elements": lambda a, i, b, out: i.assign(a[[0, 1, 2]]),
    "copy into": lambda a, i, b, out: wp.copy(i, b),
    "copy a part into": lambda a, i, b, out: wp.copy(i, b, dest_offset=1, count=2),
    "copy what overlaps": lambda a, i, b, out: wp.copy(i, a[1:4]),
    "copy from": lambda a, i, b, out: wp.copy(out, i),
    "contiguous": lambda a, i, b, out: wp.copy(out, i.contiguous()),
    "clone": lambda a, i, b, out: wp.copy(out, wp.clone(i)),
    "arithmetic": lambda a, i, b, out: wp.copy(out, i + 1.0),
    "map into": lambda a, i, b, out: wp.map(three_times, i, out=i),
    "indices in a list": lambda a, i, b, out: assigned(a, [4, 3, 2], b),
    "indices given twice": lambda a, i, b, out: assigned(a, [4, -2, 0], b),
    "in place": lambda a, i, b, out: added(a, [5, 1, 5], 1.0),
    "a mask": lambda a, i, b, out: assigned(a, np.array([True, False, True, False, False, True]), b),
    "of two dimensions": lambda a, i, b, out: assigned(a.reshape((2, 3)), ([1, 0, 1], [0, 2, 0]), 5.0 * b),
    "indices of a device": lambda a, i, b, out: assigned(a, wp.array([1, -1, 0], dtype=wp.int64), b),
    "a slice": lambda a, i, b, out: i[1:].assign(4.0),
    "a list of a list": lambda a, i, b, out: i[[2, 0]].assign(4.0),
    "an element": lambda a, i, b, out: assigned(i, -2, -4.0),
}


@pytest.mark.parametrize("name", list(OF_CHOSEN_ELEMENTS))
def test_work_with_chosen_elements_is_captured(device, name):
    """What the graph does is what the same calls do outside of it, with the numbers of that moment."""
    with wp.ScopedDevice(device):
        numbers = [np.arange(6.0), np.array([10.0, 20.0, 30.0]), np.zeros(3)]
        a, b, out = (wp.array(data, dtype=float) for data in numbers)
        i = a[[4, 3, 2]]
        graph = captured(lambda: OF_CHOSEN_ELEMENTS[name](a, i, b, out), device)
        assert [one.list() for one in (a, b, out)] == [data.tolist() for data in numbers]
        for factor in (1.0, 2.0):
            given = [factor * data + factor for data in numbers]
            others = [wp.array(data, dtype=float) for data in given]
            OF_CHOSEN_ELEMENTS[name](others[0], others[0][[4, 3, 2]], *others[1:])
            for one, data in zip((a, b, out), given, strict=True):
                one.assign(data)
            wp.capture_launch(graph)
            assert [one.list() for one in (a, b, out)] == [one.list() for one in others]
            assert [one.list() for one in (a, out)] != [given[0].tolist(), given[2].tolist()]


def test_indices_of_a_capture_are_read_when_the_graph_runs(device):
    with wp.ScopedDevice(device):
        a, indices = wp.array(np.arange(6.0), dtype=float), wp.array([4, -6], dtype=int)
        graph = captured(lambda: assigned(a, indices, -1.0), device)
        wp.capture_launch(graph)
        assert a.list() == [-1.0, 1.0, 2.0, 3.0, -1.0, 5.0]
        indices.assign([2, 6])
        with pytest.raises(RuntimeError, match="an index of this graph is out of range"):
            wp.capture_launch(graph)
        assert a.list()[1:4] in ([1.0, 2.0, 3.0], [1.0, -1.0, 3.0])


def test_what_chosen_elements_cannot_do_in_a_capture(device):
    with wp.ScopedDevice(device):
        a = wp.zeros(3)
        i = a[[2, 0]]
        is_chosen, table = wp.array([True, False, True], dtype=bool), wp.zeros((2, 2), dtype=int)
        with wp.ScopedCapture():
            with pytest.raises(RuntimeError, match=r"array\[\]: a graph is being captured"):
                i[0]
            with pytest.raises(TypeError, match="indices of axis 0 are an array of bool.* before the capture"):
                a[is_chosen]
            with pytest.raises(IndexError, match=r"must have one dimension, got the shape \(2, 2\)"):
                a[table]
            with pytest.raises(IndexError, match="index 3 is out of range: axis 0 has 3 elements"):
                a[[3]]


def test_a_long_graph_ends_at_an_interrupt(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
import warp as wp
wp.set_device("cpu")  # nothing stops a GPU

@wp.kernel
def nothing(a: wp.array(dtype=int)):
    a[0] = 1

a = wp.ones(1, dtype=int)
with wp.ScopedCapture() as capture:
    wp.capture_while(a, lambda: wp.launch(nothing, dim=1, inputs=[a]))
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    wp.capture_launch(capture.graph)
except KeyboardInterrupt:
    print("interrupted")
wp.launch(nothing, dim=1, inputs=[a])
print(a.list())
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["interrupted", "[1]"], done.stderr


# ---- what needs numbers on its way ----


def on_cpu(values, dtype=int):
    return wp.array(values, dtype=dtype, device="cpu")


def test_segments_are_those_when_the_graph_runs():
    keys, values = on_cpu([3, 1, 2, 9, 8, 7]), on_cpu([0, 1, 2, 3, 4, 5])
    bounds = on_cpu([0, 6, 6])
    with wp.ScopedCapture(device="cpu") as capture:
        wp.utils.segmented_sort_pairs(keys, values, 6, bounds)
    assert keys.list() == [3, 1, 2, 9, 8, 7]
    bounds.assign([0, 3, 6])
    wp.capture_launch(capture.graph)
    assert keys.list() == [1, 2, 3, 7, 8, 9] and values.list() == [1, 2, 0, 5, 4, 3]
    bounds.assign([0, 3, 77])
    with pytest.raises(ValueError, match=r"segment 1 goes from 3 to 77, expected 0 <= start <= end <= 6"):
        wp.capture_launch(capture.graph)


def test_runs_are_counted_when_the_graph_runs():
    values, found, lengths, count = on_cpu([1, 1, 5, 5]), on_cpu([0] * 4), on_cpu([0] * 4), on_cpu([0])
    with wp.ScopedCapture(device="cpu") as capture:
        assert wp.utils.runlength_encode(values, found, lengths, run_count=count) is count
    assert count.list() == [0]
    wp.capture_launch(capture.graph)
    assert (count.list(), found.list()[:2], lengths.list()[:2]) == ([2], [1, 5], [2, 2])
    values.assign([4, 3, 3, 2])
    wp.capture_launch(capture.graph)
    assert (count.list(), found.list()[:3], lengths.list()[:3]) == ([3], [4, 3, 2], [1, 2, 1])
    with wp.ScopedCapture(device="cpu") as capture, pytest.raises(RuntimeError, match="run_count=..."):
        wp.utils.runlength_encode(values, found, lengths)


@pytest.mark.parametrize("dtype", [wp.int32, wp.float64, wp.float16, wp.bool])
def test_numbers_are_converted_when_the_graph_runs(dtype):
    a = on_cpu([[0.0, 1.0], [2.0, 0.0]], float)
    with wp.ScopedCapture(device="cpu") as capture:
        b = a.astype(dtype)
    a.assign([[5.0, 0.0], [0.0, 7.0]])
    wp.capture_launch(capture.graph)
    assert b.shape == (2, 2) and b.dtype is dtype
    assert b.numpy().tolist() == a.numpy().astype(wp.dtype_to_numpy(dtype)).tolist()


def test_vectors_are_converted_when_the_graph_runs():
    a = on_cpu([[1.0, 2.0, 3.0]], wp.vec3)
    with wp.ScopedCapture(device="cpu") as capture:
        b = a.astype(wp.vec3d)
    a.fill_(4.0)
    wp.capture_launch(capture.graph)
    assert b.dtype is wp.vec3d and b.numpy().tolist() == [[4.0, 4.0, 4.0]]

"""Neighbouring launches of a graph that run piece by piece over large grids: only the time may differ."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

N = (1 << 16) + 77  # the least that is joined, and a rest
NOTE = "piece by piece with the one before"


@wp.kernel
def scale(x: wp.array[float], y: wp.array[float], a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def shift(x: wp.array[float], y: wp.array[float], a: float):
    i = wp.tid()
    if i + 1 < x.shape[0]:
        y[i] = x[i + 1] - a * y[i]


@wp.kernel
def turn(x: wp.array[float], y: wp.array[float], a: float):
    i = wp.tid()
    y[i] = x[x.shape[0] - 1 - i] * a


@wp.kernel
def scatter(x: wp.array[float], y: wp.array[float], a: float):
    i = wp.tid()
    y[(i + 5) % y.shape[0]] = x[i] + a


@wp.kernel
def first(x: wp.array[float], y: wp.array[float], a: float):
    i = wp.tid()
    y[i] = x[0] + a * y[i]


@wp.kernel
def root(x: wp.array[float], y: wp.array[float], a: float):
    i = wp.tid()
    y[i] = wp.sqrt(wp.abs(x[i])) + a


KERNELS = {kernel.key: kernel for kernel in (scale, shift, turn, scatter, first, root)}
# Of one memory of 4 N numbers: parts, and parts that overlap them.
VIEWS = {
    "a": lambda m: m[:N],
    "b": lambda m: m[N : 2 * N],
    "c": lambda m: m[2 * N : 3 * N],
    "later a": lambda m: m[1 : N + 1],
    "every second": lambda m: m[N : 3 * N : 2],
    "a backwards": lambda m: m[:N][::-1],
}


def joined(graph, tmp_path):
    """How many launches of a graph are joined with the one before."""
    path = tmp_path / "graph.dot"
    wp.capture_debug_dot_print(graph, str(path), verbose=True)
    return path.read_text().count(NOTE)


def run(steps, values, graph):
    """The memory after the launches: one by one, or as a graph that is launched twice."""
    memory = wp.array(values, dtype=float, device="cpu")

    def launch():
        for name, x, y, a in steps:
            wp.launch(KERNELS[name], N, inputs=[VIEWS[x](memory), VIEWS[y](memory), a], device="cpu")

    if not graph:
        launch()
        launch()
        return memory.numpy().copy(), None
    with wp.ScopedCapture(device="cpu") as capture:
        launch()
    wp.capture_launch(capture.graph)
    wp.capture_launch(capture.graph)
    return memory.numpy().copy(), capture.graph


def disjoint(step):
    """Threads of one launch must not meet in memory: else the launch itself has no one result."""
    name, x, y, _ = step
    if x == y:
        return name in ("scale", "root")
    own = {"scale", "root"}
    apart = {"a": {"b", "c", "every second"}, "b": {"a", "c"}, "c": {"a", "b", "later a", "a backwards"}}
    apart |= {"later a": {"c"}, "every second": {"a", "a backwards"}, "a backwards": {"c", "every second"}}
    # The first element of "b" is the last of "later a"; "every second" shares elements with "b" and "c".
    return y in apart[x] and (name in own or y != "later a")


STEPS = st.tuples(
    st.sampled_from(sorted(KERNELS)), st.sampled_from(sorted(VIEWS)), st.sampled_from(sorted(VIEWS)), st.floats(-1, 1)
).filter(disjoint)


@settings(max_examples=60)
@given(st.lists(STEPS, min_size=2, max_size=6), st.integers(0, 1000))
def test_graphs_of_any_launches_do_what_the_launches_do(steps, seed):
    values = np.random.default_rng(seed).standard_normal(4 * N).astype(np.float32)
    one_by_one, _ = run(steps, values, graph=False)
    as_graph, _ = run(steps, values, graph=True)
    np.testing.assert_array_equal(as_graph.view(np.uint32), one_by_one.view(np.uint32))


def test_launches_on_elements_of_their_own_are_joined(tmp_path):
    values = np.random.default_rng(0).standard_normal(4 * N).astype(np.float32)
    chain = [("scale", "a", "b", 0.5), ("root", "b", "c", 1.0), ("scale", "c", "a", 2.0), ("scale", "a", "a", 0.1)]
    found, graph = run(chain, values, graph=True)
    assert joined(graph, tmp_path) == 3
    np.testing.assert_array_equal(found, run(chain, values, graph=False)[0])


@pytest.mark.parametrize(
    "steps, count",
    [
        ([("scale", "a", "b", 0.5), ("shift", "b", "c", 1.0)], 0),  # reads the neighbours' writes
        ([("shift", "a", "b", 0.5), ("scale", "b", "c", 1.0)], 1),  # neighbours do not write what it reads
        ([("shift", "a", "b", 0.5), ("scale", "b", "a", 1.0)], 0),
        ([("scatter", "a", "b", 0.5), ("scale", "b", "c", 1.0)], 0),
        ([("scatter", "a", "b", 0.5), ("scale", "a", "c", 1.0)], 1),  # nothing in common but what is read
        ([("scale", "c", "a", 0.5), ("scale", "later a", "c", 1.0)], 0),  # overlaps, and is another array
        ([("scale", "c", "a", 0.5), ("scale", "a backwards", "c", 1.0)], 0),
        ([("scale", "a", "b", 0.5), ("scale", "every second", "a", 1.0)], 0),
        ([("first", "a", "b", 0.5), ("scale", "b", "c", 1.0), ("scale", "b", "a", 1.0)], 1),
        # A third launch is compared with both before it.
        ([("shift", "a", "b", 0.5), ("scale", "b", "c", 1.0), ("scale", "c", "a", 1.0)], 1),
    ],
)
def test_launches_whose_threads_meet_are_not_joined(tmp_path, steps, count):
    values = np.random.default_rng(1).standard_normal(4 * N).astype(np.float32)
    found, graph = run(steps, values, graph=True)
    assert joined(graph, tmp_path) == count
    np.testing.assert_array_equal(found, run(steps, values, graph=False)[0])


def graph_of(launch):
    with wp.ScopedCapture(device="cpu") as capture:
        launch()
    return capture.graph


def test_small_grids_and_grids_of_different_extents_are_not_joined(tmp_path):
    x, y = (wp.zeros(2 * N, dtype=float, device="cpu") for _ in range(2))

    def launches(*dims):
        return lambda: [wp.launch(scale, dim, inputs=[x, y, 1.0], device="cpu") for dim in dims]

    assert joined(graph_of(launches(1000, 1000)), tmp_path) == 0
    assert joined(graph_of(launches(N, N + 1)), tmp_path) == 0
    assert joined(graph_of(launches(N, N)), tmp_path) == 1


def test_rows_and_planes(tmp_path):
    @wp.kernel
    def plane(x: wp.array2d[float], y: wp.array2d[float]):
        i, j = wp.tid()
        y[i, j] = x[i, j] + 0.5 * y[i, j]

    @wp.kernel
    def transposed(x: wp.array2d[float], y: wp.array2d[float]):
        i, j = wp.tid()
        y[j, i] = x[i, j]

    @wp.kernel
    def row(x: wp.array2d[float], y: wp.array2d[float]):
        i = wp.tid()
        for j in range(x.shape[1]):
            y[i, j] = x[i, x.shape[1] - 1 - j]

    values = np.random.default_rng(2).standard_normal((300, 300)).astype(np.float32)
    x, y = wp.array(values, device="cpu"), wp.zeros((300, 300), device="cpu")
    graph = graph_of(lambda: [wp.launch(plane, (300, 300), inputs=a, device="cpu") for a in ([x, y], [y, x], [x, y])])
    assert joined(graph, tmp_path) == 2
    wp.capture_launch(graph)
    expected_x, expected_y = values.copy(), np.zeros_like(values)
    expected_y = expected_x + np.float32(0.5) * expected_y
    expected_x = expected_y + np.float32(0.5) * expected_x
    expected_y = expected_x + np.float32(0.5) * expected_y
    np.testing.assert_allclose(y.numpy(), expected_y, rtol=1e-6)
    np.testing.assert_allclose(x.numpy(), expected_x, rtol=1e-6)
    mixed = graph_of(
        lambda: [wp.launch(k, (300, 300), inputs=a, device="cpu") for k, a in ((plane, [x, y]), (transposed, [y, x]))]
    )
    assert joined(mixed, tmp_path) == 0

    tall, other = wp.array(np.tile(values[0], (N, 1))[:, :8].copy(), device="cpu"), wp.zeros((N, 8), device="cpu")
    rows = graph_of(lambda: [wp.launch(row, N, inputs=a, device="cpu") for a in ([tall, other], [other, tall])])
    assert joined(rows, tmp_path) == 1
    wp.capture_launch(rows)
    np.testing.assert_array_equal(tall.numpy(), np.tile(values[0], (N, 1))[:, :8])


def test_what_else_a_kernel_does_keeps_it_apart(tmp_path, capfd):
    @wp.kernel
    def talk(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = x[i]
        if i == 70000:
            print("here")

    @wp.kernel
    def count(x: wp.array[float], total: wp.array[int]):
        wp.atomic_add(total, wp.int32(x[wp.tid()]) % 2, 1)

    @wp.kernel
    def refuse(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        if x[i] < 0.0:
            raise ValueError("negative")
        y[i] = x[i]

    x, y, total = wp.zeros(N, device="cpu"), wp.zeros(N, device="cpu"), wp.zeros(2, dtype=int, device="cpu")
    for kernel, inputs in ((talk, [x, y]), (count, [x, total]), (refuse, [x, y])):
        graph = graph_of(lambda kernel=kernel, inputs=inputs: [wp.launch(kernel, N, inputs, device="cpu")] * 2)
        assert joined(graph, tmp_path) == 0
    broadcast = wp.array(np.zeros(1, dtype=np.float32), device="cpu")
    wide = wp.array(ptr=broadcast.ptr, dtype=float, shape=N, strides=(0,), device="cpu", copy=False)
    graph = graph_of(lambda: [wp.launch(scale, N, inputs=[x, wide, 0.0], device="cpu") for _ in range(2)])
    assert joined(graph, tmp_path) == 0  # all threads have one element


def test_a_joined_graph_is_what_a_tape_goes_back_through(tmp_path):
    """Adjoints are left apart: the gradient is that of the launches."""
    values = np.random.default_rng(3).uniform(0.5, 1.0, N).astype(np.float32)
    x = wp.array(values, device="cpu", requires_grad=True)
    y, z = (wp.zeros(N, device="cpu", requires_grad=True) for _ in range(2))

    def step():
        with wp.Tape() as tape:
            wp.launch(root, N, inputs=[x, y, 1.0], device="cpu")
            wp.launch(scale, N, inputs=[y, z, 3.0], device="cpu")
        tape.backward(grads={z: ones})

    ones = wp.ones(N, device="cpu")
    with wp.ScopedCapture(device="cpu") as capture:
        step()
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(z.numpy(), 3.0 * (np.sqrt(values) + 1.0), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), 1.5 / np.sqrt(values), rtol=1e-5)

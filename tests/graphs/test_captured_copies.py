"""Copies to the host and operations that count, in graphs: each launch of the graph gives their results anew."""

import gc

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.own_launches("counts launches, orders them or makes them fail")


@wp.kernel
def add_one(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] += 1.0


@wp.kernel
def countdown(count: wp.array(dtype=int)):
    count[0] = count[0] - 1


def captured(function):
    with wp.ScopedCapture() as capture:
        function()
    return capture.graph


def on_host(values, **options):
    return wp.array(np.array(values, dtype=np.float32), device="cpu", **options)


FORMS = {
    "copy": lambda host, a: wp.copy(host, a),
    "assign": lambda host, a: host.assign(a),
    "steps of the host": lambda host, a: wp.copy(host[::2], a[:3]),
    "steps of the device": lambda host, a: wp.copy(host[:3], a[::2]),
    "backwards": lambda host, a: wp.copy(host[::-1], a),
    "a part": lambda host, a: wp.copy(host, a, dest_offset=2, src_offset=1, count=3),
    "rows": lambda host, a: wp.copy(host.reshape((2, 3))[:, :2], a.reshape((3, 2))[:2]),
}


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_each_launch_copies_what_is_there_then(form, pinned):
    a, host = wp.array(np.arange(6.0), dtype=float), on_host(np.zeros(6), pinned=pinned)

    def work():
        wp.launch(add_one, dim=6, inputs=[a])
        FORMS[form](host, a)
        wp.launch(add_one, dim=6, inputs=[a])  # after the copy

    graph = captured(work)
    assert not host.numpy().any()  # nothing was copied while it was captured
    for step in range(3):
        expected = on_host(np.full(6, -1.0))
        host.fill_(-1.0)
        FORMS[form](expected, on_host(np.arange(6.0) + 2.0 * step + 1.0))
        wp.capture_launch(graph)
        if pinned:
            wp.synchronize()
        np.testing.assert_array_equal(host.numpy(), expected.numpy())


def test_a_new_array_of_the_host_is_filled_by_the_graph():
    a, made = wp.zeros(3), []
    graph = captured(lambda: (wp.launch(add_one, dim=3, inputs=[a]), made.append(a.to("cpu"))))
    clone = captured(lambda: made.append(wp.clone(a, device="cpu")))
    for graph_of in (graph, graph, clone):
        wp.capture_launch(graph_of)
    wp.synchronize()
    assert [one.list() for one in made] == [[2.0] * 3] * 2


def test_what_is_gone_stays_for_the_graph():
    a, memory = wp.zeros(3), np.zeros(3, dtype=np.float32)

    def work():
        wp.launch(add_one, dim=3, inputs=[a])
        wp.copy(wp.array(memory, copy=False, device="cpu"), a)
        wp.copy(on_host(np.zeros(3)), a)  # which is held nowhere else

    graph = captured(work)
    gc.collect()
    wp.capture_launch(graph)
    wp.synchronize()
    assert memory.tolist() == [1.0] * 3


@pytest.mark.parametrize("pinned", [False, True])
def test_copies_in_bodies(pinned):
    a, count, host = wp.zeros(3), wp.zeros(1, dtype=int), on_host(np.zeros(3), pinned=pinned)
    other, seen = on_host(np.zeros(3), pinned=pinned), on_host(np.zeros(3), pinned=pinned)

    def body():
        wp.launch(add_one, dim=3, inputs=[a])
        wp.copy(host, a)
        wp.launch(countdown, dim=1, inputs=[count])

    def work():
        wp.capture_while(count, body)
        wp.capture_if(flag, lambda: wp.copy(other, a), lambda: wp.copy(seen, a))

    flag = wp.zeros(1, dtype=int)
    graph = captured(work)
    outer = captured(lambda: (wp.launch(add_one, dim=3, inputs=[a]), wp.capture_launch(graph)))
    for turns, chosen, launched in [(3, 1, graph), (0, 0, graph), (2, 0, outer), (0, 1, outer)]:
        count.fill_(turns)
        flag.fill_(chosen)
        a.zero_()
        for one in (host, other, seen):
            one.fill_(-1.0)
        wp.capture_launch(launched)
        wp.synchronize()
        value = turns + (launched is outer)
        # a body that is not done copies nothing
        assert host.list() == [value if turns else -1.0] * 3
        assert other.list() == [value if chosen else -1.0] * 3
        assert seen.list() == [-1.0 if chosen else value] * 3


def test_a_graph_in_a_graph_copies_too():
    a, host = wp.zeros(3), on_host(np.zeros(3))
    child = captured(lambda: (wp.launch(add_one, dim=3, inputs=[a]), wp.copy(host, a)))
    parent = captured(lambda: [wp.capture_launch(child) for _ in range(2)])
    wp.capture_launch(parent)
    assert host.list() == [2.0] * 3
    wp.capture_launch(child)
    assert host.list() == [3.0] * 3


def test_pinned_memory_is_read_after_it_was_filled():
    a, b, host = wp.zeros(3), wp.zeros(3), on_host(np.zeros(3), pinned=True)
    graph = captured(lambda: (wp.launch(add_one, dim=3, inputs=[a]), wp.copy(host, a), wp.copy(b, host)))
    for step in (1.0, 2.0):
        wp.capture_launch(graph)
        assert b.list() == [step] * 3


def test_a_host_array_that_the_graph_fills_is_not_read_before():
    a, b, host = wp.zeros(3), wp.zeros(3), on_host(np.zeros(3))

    def work():
        wp.launch(add_one, dim=3, inputs=[a])
        wp.copy(host, a)
        wp.copy(b[1:], host[1:])

    if wp.get_device().is_cpu:
        wp.capture_launch(captured(work))
        assert b.list() == [0.0, 1.0, 1.0]
        return
    with (
        wp.ScopedCapture(),
        pytest.raises(RuntimeError, match="is read while the graph is captured, and the graph fills"),
    ):
        work()


def test_looking_at_arrays_in_a_capture_stays_an_error():
    a = wp.zeros(3)
    for look in (a.numpy, a.list, lambda: a[0]):
        with wp.ScopedCapture(), pytest.raises(RuntimeError, match="a graph is being captured"):
            look()


# ---- operations that count ----


def segments(keys, values, begins, ends):
    """By NumPy: stable, each segment by itself, and everything else as it is."""
    keys, values = keys.copy(), values.copy()
    for begin, end in zip(begins, ends):
        order = np.argsort(keys[begin:end], kind="stable") + begin
        keys[begin:end], values[begin:end] = keys[order], values[order]
    return keys, values


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint64])
@pytest.mark.parametrize("shape", [(600,), (30, 20)])
def test_sorts_of_segments_follow_arrays_that_change(dtype, shape):
    random = np.random.default_rng(3)
    keys, values = wp.zeros(shape, dtype=dtype), wp.zeros(shape, dtype=int)
    begins, ends = wp.zeros(40, dtype=int), wp.zeros(40, dtype=int)
    graph = captured(lambda: wp.utils.segmented_sort_pairs(keys, values, 600, begins, ends))
    for _ in range(3):
        data, numbers = random.integers(0, 30, 600).astype(dtype), np.arange(600, dtype=np.int32)
        cuts = np.sort(random.choice(601, 80, replace=False)).astype(np.int32)
        order = random.permutation(40)  # segments need not be in order
        begins.assign(cuts[::2][order])
        ends.assign(cuts[1::2][order])
        keys.assign(data.reshape(shape))
        values.assign(numbers.reshape(shape))
        wp.capture_launch(graph)
        expected = segments(data, numbers, cuts[::2], cuts[1::2])
        np.testing.assert_array_equal(keys.numpy().ravel(), expected[0])
        np.testing.assert_array_equal(values.numpy().ravel(), expected[1])


def test_wrong_segments_are_an_error_of_the_launch():
    keys, values, bounds = (
        wp.array([3, 1, 2, 9, 8, 7], dtype=int),
        wp.zeros(6, dtype=int),
        wp.array([0, 3, 6], dtype=int),
    )
    graph = captured(lambda: wp.utils.segmented_sort_pairs(keys, values, 6, bounds))
    wp.capture_launch(graph)
    assert keys.list() == [1, 2, 3, 7, 8, 9]
    for wrong, text in (
        ([0, 3, 77], "1 goes from 3 to 77"),
        ([-1, 3, 6], "0 goes from -1 to 3"),
        ([0, 3, 2], "1 goes from 3 to 2"),
    ):
        bounds.assign(wrong)
        with pytest.raises(ValueError, match=rf"segment {text}, expected 0 <= start <= end <= 6"):
            wp.capture_launch(graph)
    bounds.assign([0, 0, 6])
    keys.assign([6, 5, 4, 3, 2, 1])
    wp.capture_launch(graph)
    assert keys.list() == [1, 2, 3, 4, 5, 6]


def test_runs_follow_values_that_change():
    random = np.random.default_rng(4)
    values, found, lengths = wp.zeros(5000, dtype=float), wp.zeros(5000, dtype=float), wp.zeros(5000, dtype=int)
    count = wp.zeros(1, dtype=int)
    graph = captured(lambda: wp.utils.runlength_encode(values, found, lengths, run_count=count, value_count=4900))
    for most in (1, 3, 2000):
        data = np.repeat(random.integers(0, 3, 5000), random.integers(1, most + 1, 5000))[:5000].astype(np.float32)
        values.assign(data)
        wp.capture_launch(graph)
        data = data[:4900]
        starts = np.flatnonzero(np.append(True, data[1:] != data[:-1]))
        runs = count.numpy()[0]
        assert runs == len(starts)
        np.testing.assert_array_equal(found.numpy()[:runs], data[starts])
        np.testing.assert_array_equal(lengths.numpy()[:runs], np.diff(np.append(starts, 4900)))


def test_runs_without_room_are_an_error_of_the_launch():
    values, count = wp.array([1, 1, 2, 2], dtype=int), wp.zeros(1, dtype=int)
    lengths = wp.zeros(3, dtype=int)
    beside = wp.zeros(4, dtype=int)
    graph = captured(lambda: wp.utils.runlength_encode(values, beside[:2], lengths, run_count=count))
    wp.capture_launch(graph)
    assert (count.list(), beside.list(), lengths.list()[:2]) == ([2], [1, 2, 0, 0], [2, 2])
    values.assign([1, 2, 3, 4])
    with pytest.raises(ValueError, match="'run_values' has 2 elements, and there are 4 runs"):
        wp.capture_launch(graph)
    assert beside.list()[2:] == [0, 0]
    nothing = captured(lambda: wp.utils.runlength_encode(values, beside, lengths, run_count=count, value_count=0))
    wp.capture_launch(nothing)
    assert count.list() == [0]


def test_counts_in_bodies():
    values, found, lengths = wp.array([1, 1, 2], dtype=int), wp.zeros(3, dtype=int), wp.zeros(3, dtype=int)
    count, turns = wp.zeros(1, dtype=int), wp.array([2], dtype=int)
    keys, order, bounds = wp.array([2, 1, 0], dtype=int), wp.array([0, 1, 2], dtype=int), wp.array([0, 2], dtype=int)

    def body():
        wp.utils.runlength_encode(values, found, lengths, run_count=count)
        wp.utils.segmented_sort_pairs(keys, order, 3, bounds)
        wp.launch(countdown, dim=1, inputs=[turns])

    graph = captured(lambda: wp.capture_while(turns, body))
    wp.capture_launch(graph)
    assert (count.list(), found.list()[:2], lengths.list()[:2]) == ([2], [1, 2], [2, 1])
    assert (keys.list(), order.list()) == ([1, 2, 0], [1, 0, 2])
    turns.fill_(1)
    bounds.assign([0, 9])
    with pytest.raises(ValueError, match="segment 0 goes from 0 to 9"):
        wp.capture_launch(graph)

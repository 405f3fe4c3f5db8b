"""Operations in graphs whose indices, counts and conversions depend on numbers of each launch."""

import numpy as np
import pytest
import warp as wp
from graph_kernels import captured

pytestmark = [pytest.mark.protected, pytest.mark.own_launches("counts launches, orders them or makes them fail")]


# ---- chosen elements ----
@wp.func
def three_times(x: float):
    return 3.0 * x


def assigned(a, key, value):
    a[key] = value


def added(a, key, value):
    a[key] += value


# Operations on an array `a`, an indexedarray `i` of it that was made before the capture, and two arrays of three.
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
    """The graph has the effect of the same calls outside of it, with the numbers of that moment."""
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
            wp.synchronize()
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

"""Memory that several views show: launches must find out, and copies must read before they overwrite.

Two views overlap in many ways besides beginning at one address, and each thread has to see its own stores through
every one of them.
"""

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.protected

# ---- one thread's own stores, seen through another parameter ----


@wp.kernel
def read_write_read(src: wp.array[float], dst: wp.array[float], out: wp.array[float], at: int):
    i = wp.tid()
    first = src[i + at]
    dst[i] = first + 1.0
    out[i] = src[i + at] * 10.0  # the store just made, if both show that element


@pytest.mark.parametrize("shift", [0, 1, 3, 8])
@pytest.mark.parametrize("first", ["source", "destination"])
def test_a_store_is_seen_through_a_view_that_begins_elsewhere(shift, first):
    n = 40
    memory = wp.array(np.arange(2 * n), dtype=float)
    out = wp.zeros(n)
    # The same elements are i + shift of one view and i of the other.
    src, dst = (memory[:], memory[shift:]) if first == "source" else (memory[2 * shift :], memory[3 * shift :])
    before = dst.numpy().copy()
    wp.launch(read_write_read, dim=n, inputs=[src, dst, out, shift])
    assert np.array_equal(out.numpy(), (before[:n] + 1.0) * 10.0)


@wp.kernel
def read_write_read_2d(src: wp.array2d[float], dst: wp.array2d[float], out: wp.array2d[float], row: int, column: int):
    i, j = wp.tid()
    first = src[i + row, j + column]
    dst[i, j] = first + 1.0
    out[i, j] = src[i + row, j + column] * 10.0


@pytest.mark.parametrize(("row", "column"), [(0, 0), (1, 0), (0, 2), (3, 1)])
def test_a_store_is_seen_through_rows_and_columns(row, column):
    memory = wp.array(np.arange(12 * 20).reshape(12, 20), dtype=float)
    dst, out = memory[row:, column:], wp.zeros((8, 16))
    before = dst.numpy()[:8, :16].copy()
    wp.launch(read_write_read_2d, dim=(8, 16), inputs=[memory, dst, out, row, column])
    assert np.array_equal(out.numpy(), (before + 1.0) * 10.0)


@wp.kernel
def from_the_end(src: wp.array[float], dst: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    n = src.shape[0]
    first = src[n - 1 - i]
    dst[i] = first + 1.0
    out[i] = src[n - 1 - i] * 10.0


def test_a_store_is_seen_through_a_reversed_view():
    memory = wp.array(np.arange(30), dtype=float)
    out = wp.zeros(30)
    wp.launch(from_the_end, dim=30, inputs=[memory, memory[::-1], out])
    assert np.array_equal(out.numpy(), (np.arange(30)[::-1] + 1.0) * 10.0)


@wp.struct
class Source:
    values: wp.array[float]


@wp.kernel
def read_write_read_field(src: Source, dst: wp.array[float], out: wp.array[float], at: int):
    i = wp.tid()
    first = src.values[i + at]
    dst[i] = first + 1.0
    out[i] = src.values[i + at] * 10.0


@pytest.mark.parametrize("shift", [0, 5])
def test_a_store_is_seen_through_a_field_of_a_struct(shift):
    memory = wp.array(np.arange(80), dtype=float)
    src, out = Source(), wp.zeros(40)
    src.values, dst = memory, memory[shift:]
    before = dst.numpy().copy()
    wp.launch(read_write_read_field, dim=40, inputs=[src, dst, out, shift])
    assert np.array_equal(out.numpy(), (before[:40] + 1.0) * 10.0)


# ---- copies ----


@st.composite
def two_views(draw):
    """A shape and two index expressions of it that show equally many elements, often the same ones."""
    shape = draw(st.lists(st.integers(2, 7), min_size=1, max_size=3))
    to, source = [], []
    for extent in shape:
        count = draw(st.integers(1, extent))
        for view in (to, source):
            step = draw(st.integers(1, max(1, (extent - 1) // max(1, count - 1))))
            reach = step * (count - 1)
            start = draw(st.integers(0, extent - 1 - reach))
            forward = slice(start, start + reach + 1, step)
            backward = slice(start + reach, start - 1 if start > 0 else None, -step)
            view.append(draw(st.sampled_from([forward, backward])))
    return tuple(shape), tuple(to), tuple(source)


@given(two_views())
@settings(max_examples=300, deadline=None)
def test_copies_between_views_of_one_array(views):
    shape, to, source = views
    expected = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    memory = wp.array(expected, dtype=float)
    expected[to] = expected[source].copy()
    wp.copy(memory[to], memory[source])
    assert np.array_equal(memory.numpy(), expected)


@pytest.mark.parametrize("n", [3, 40, 300])
def test_a_square_array_becomes_its_transpose_in_place(n):
    expected = np.arange(n * n, dtype=np.float32).reshape(n, n)
    memory = wp.array(expected, dtype=float)
    wp.copy(memory, memory.T)
    assert np.array_equal(memory.numpy(), expected.T)

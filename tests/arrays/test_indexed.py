"""Indexing of arrays on the host as NumPy does it, and wp.indexedarray."""

import ctypes
import gc
from typing import Any

import numpy as np
import protected_device
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.protected

random = np.random.default_rng(5)


def basic_keys(shape):
    """NumPy's basic keys for an array of this shape: integers, slices with steps, None and one Ellipsis."""

    def one(size):
        bound = st.none() | st.integers(-size - 2, size + 2)
        step = st.none() | st.integers(-3, 3).filter(bool)
        return st.integers(-size, size - 1) | st.builds(slice, bound, bound, step)

    @st.composite
    def keys(draw):
        used = draw(st.integers(0, len(shape)))
        at = draw(st.integers(0, used))
        has_ellipsis = draw(st.booleans())
        sizes = [*shape[:at], *(shape[len(shape) - used + at :] if has_ellipsis else shape[at:used])]
        items = [draw(one(size)) for size in sizes]
        if has_ellipsis:
            items.insert(at, Ellipsis)
        for _ in range(draw(st.integers(0, 1))):
            items.insert(draw(st.integers(0, len(items))), None)
        return tuple(items)

    return keys()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
def test_basic_indexing_is_numpys(shape, data):
    base = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    key = data.draw(basic_keys(shape))
    expected = base[key]
    array = wp.array(base)
    result = array[key]
    if expected.ndim == 0:
        assert result == expected
    else:
        np.testing.assert_array_equal(result.numpy(), expected)
        assert result.shape == expected.shape
    # Writing through the same key.
    changed = base.copy()
    changed[key] = -1
    array[key] = -1
    np.testing.assert_array_equal(array.numpy(), changed)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 30), st.integers(0, 40), st.integers(-3, 3).filter(bool), st.integers(-3, 3).filter(bool))
def test_slices_are_assigned_to_overlapping_slices(start, count, to_step, from_step):
    base = np.arange(400)
    array = wp.array(base, dtype=wp.int64)
    to = slice(start + 170, start + 170 + count * to_step, to_step)
    source = slice(200, 200 + count * from_step, from_step)
    expected = base.copy()
    expected[to] = base[source]
    array[to] = array[source]
    np.testing.assert_array_equal(array.numpy(), expected)


def test_none_and_dimensions():
    a = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert a[None].shape == (1, 2, 3) and a[:, None].shape == (2, 1, 3) and a[..., None].shape == (2, 3, 1)
    assert a[1, None].shape == (1, 3) and a[1, 2, None].shape == (1,)
    a[1, 2, None].fill_(9.0)
    assert a.numpy()[1, 2] == 9.0
    with pytest.raises(IndexError, match="at most 4"):
        a[None, None, None]
    with pytest.raises(IndexError, match="3 indices for an array of 2 dimensions"):
        a[0, 0, 0]
    with pytest.raises(TypeError, match="an index is an integer, a slice, None"):
        a["x"]
    with pytest.raises(TypeError, match="an index is an integer"):
        a[1.5]


# ---- indexedarray ----


def test_lists_of_indices_choose_elements():
    base = random.standard_normal((5, 6)).astype(np.float32)
    a = wp.array(base)
    chosen = a[[3, 0, -1]]
    assert isinstance(chosen, wp.indexedarray) and chosen.shape == (3, 6) and chosen.dtype is wp.float32
    np.testing.assert_array_equal(chosen.numpy(), base[[3, 0, -1]])
    np.testing.assert_array_equal(a[:, [5, 5, 1]].numpy(), base[:, [5, 5, 1]])
    np.testing.assert_array_equal(a[1:4, wp.array([2, 0], dtype=int)].numpy(), base[1:4, [2, 0]])
    np.testing.assert_array_equal(a[2, np.array([2, 0])].numpy(), base[2, [2, 0]])
    np.testing.assert_array_equal(a[[0, 2], [1, 3]].numpy(), base[np.ix_([0, 2], [1, 3])])
    np.testing.assert_array_equal(a[..., [1]].numpy(), base[..., [1]])
    np.testing.assert_array_equal(a[None, [1, 2]].numpy(), base[None, [1, 2]])
    mask = np.array([True, False, True, False, True])
    np.testing.assert_array_equal(a[mask].numpy(), base[mask])
    assert a[[]].shape == (0, 6) and a[[]].numpy().shape == (0, 6)


def test_the_constructor():
    base = np.arange(24).reshape(2, 3, 4)
    a = wp.array(base, dtype=wp.int32)
    x = wp.indexedarray(a, [None, wp.array([2, 0], dtype=int), np.array([1, 1, 3])])
    assert x.shape == (2, 2, 3) and x.ndim == 3 and x.size == 12 and len(x) == 2
    expected = base[np.ix_([0, 1], [2, 0], [1, 1, 3])]
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(np.asarray(x), expected)
    assert x.contiguous().is_contiguous and x.list() == expected.ravel().tolist()
    assert x[1, 0, 2] == expected[1, 0, 2]
    np.testing.assert_array_equal(x[:, ::-1, [0, 2]].numpy(), expected[:, ::-1, [0, 2]])
    kept = wp.array([1], dtype=int)
    assert wp.indexedarray(a, [kept]).indices0 is kept or wp.indexedarray(a, [kept]).indices[0].ptr == kept.ptr


@pytest.mark.parametrize("dtype", [wp.vec3, wp.mat22, wp.bfloat16, wp.bool, wp.float64])
def test_elements_of_any_type(dtype):
    a = wp.zeros(5, dtype=dtype)
    a[[1, 3]].fill_(1)
    b = wp.zeros(5, dtype=dtype)
    b[1] = wp.full(1, 1, dtype=dtype)[0]
    b[3] = b[1]
    bits = wp.uint16 if dtype is wp.bfloat16 else dtype
    np.testing.assert_array_equal(a.view(bits).numpy(), b.view(bits).numpy())
    assert a[[3, 1, 0]].contiguous().dtype is a.dtype


def test_assignment_through_indices():
    base = np.zeros((4, 5))
    a = wp.array(base, dtype=float)
    a[[1, 3]] = 2.0
    a[:, [0, 4]] = [[1.0, 2.0]] * 4
    base[[1, 3]] = 2.0
    base[:, [0, 4]] = [[1.0, 2.0]] * 4
    np.testing.assert_array_equal(a.numpy(), base)
    a[[0, 1]] = a[[1, 0]]
    base[[0, 1]] = base[[1, 0]]
    np.testing.assert_array_equal(a.numpy(), base)
    with pytest.raises(ValueError, match="cannot store an array of shape"):
        a[[0, 1]] = wp.zeros(3)


@pytest.mark.host_memory('names the device "cpu"')
def test_kernels_read_and_write_through_indices():
    @wp.kernel
    def double(x: wp.indexedarray(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * 2.0
        x[i] = -1.0
        if i == 0:
            x[-1] += float(x.shape[0])

    a = wp.array(np.arange(10.0), dtype=float)
    out = wp.zeros(3)
    wp.launch(double, 3, [a[[7, 2, 4]], out], device="cpu")
    assert out.list() == [14.0, 4.0, 8.0]
    expected = np.arange(10.0)
    expected[[7, 2, 4]] = -1.0
    expected[4] += 3.0
    np.testing.assert_array_equal(a.numpy(), expected)


def test_kernels_with_two_dimensions_and_both_spellings():
    @wp.func
    def get(x: wp.indexedarray[wp.vec3, 2], i: int, j: int):
        return x[i, j][0] * float(type(x[i, j]) == x.dtype)

    @wp.kernel
    def gather(x: wp.indexedarray(dtype=wp.vec3, ndim=2), y: wp.array2d[float]):
        i, j = wp.tid()
        y[i, j] = get(x, i, j) + x[i, j][1]

    base = random.standard_normal((6, 7, 3)).astype(np.float32)
    a = wp.array(base, dtype=wp.vec3)
    out = wp.zeros((2, 3))
    wp.launch(gather, (2, 3), [wp.indexedarray(a, [[5, 1], [0, 6, 6]]), out])
    part = base[np.ix_([5, 1], [0, 6, 6])]
    np.testing.assert_allclose(out.numpy(), part[..., 0] + part[..., 1], rtol=1e-6)


def test_indices_that_are_wrong():
    a = wp.zeros((3, 4))
    with pytest.raises(IndexError, match="index 3 is out of range: axis 0 has 3 elements"):
        a[[0, 3]]
    with pytest.raises(IndexError, match="the mask of axis 0 has 2 elements, and the axis 3"):
        a[np.array([True, False])]
    with pytest.raises(TypeError, match="must be integers or bools, got float64"):
        a[np.array([1.0])]
    with pytest.raises(IndexError, match="must have one dimension"):
        a[np.zeros((2, 2), dtype=int)]
    with pytest.raises(IndexError, match="indices for 3 axes"):
        wp.indexedarray(a, [None, None, None])
    with pytest.raises(TypeError, match="'data' must be a warp.array"):
        wp.indexedarray(np.zeros(3), [[0]])
    with pytest.raises(ValueError, match="1 to 4 dimensions"):
        wp.indexedarray(dtype=float, ndim=5)

    @wp.kernel
    def row(x: wp.indexedarray(dtype=float, ndim=2)):
        x[wp.tid()] = 1.0

    with pytest.raises(wp.CompileError, match="an index is missing"):
        wp.launch(row, 1, [a[[0]]])

    @wp.kernel
    def line(x: wp.indexedarray(dtype=float)):
        x[wp.tid()] = 1.0

    with pytest.raises(TypeError, match="argument 1 'x' of kernel 'line'"):
        wp.launch(line, 1, [wp.zeros(3)])


# ---- wp.copy ----


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_copy_with_offsets_and_counts(to_size, from_size, data):
    to_offset, from_offset = data.draw(st.integers(0, to_size)), data.draw(st.integers(0, from_size))
    count = data.draw(st.integers(0, min(to_size - to_offset, from_size - from_offset)))
    step = data.draw(st.sampled_from([1, 2, -1]))
    to, source = np.arange(to_size * 2), 1000 + np.arange(from_size * 2)
    a, b = wp.array(to, dtype=wp.int64), wp.array(source, dtype=wp.int64)
    expected = to.copy()
    if count == 0 and from_size - from_offset > to_size - to_offset:
        with pytest.raises(wp.UsageError, match="elements, of which"):
            wp.copy(a[::step][:to_size], b[:from_size], to_offset, from_offset, count)
        return
    wp.copy(a[::step][:to_size], b[:from_size], dest_offset=to_offset, src_offset=from_offset, count=count)
    count = count or from_size - from_offset
    expected[::step][:to_size][to_offset : to_offset + count] = source[:from_size][from_offset : from_offset + count]
    np.testing.assert_array_equal(a.numpy(), expected)


@settings(max_examples=150, deadline=None)
@given(st.permutations([0, 1, 2]), st.lists(st.integers(1, 6), min_size=3, max_size=3), st.data())
def test_copy_between_strided_views(order, shape, data):
    def strided(permutation):
        steps = [data.draw(st.sampled_from([1, 2, -1, -3])) for _ in shape]
        key = tuple(slice(None, None, step) for step in steps)
        base = np.zeros([abs(steps[axis]) * shape[axis] for axis in permutation], dtype=np.float32)
        return base, np.argsort(permutation), key

    base, axes, key = strided(order)
    array = wp.array(base)
    part = tuple(slice(0, n) for n in shape)
    source = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    wp.copy(array.transpose(tuple(int(i) for i in axes))[key][part], wp.array(source))
    base.transpose(axes)[key][part] = source
    np.testing.assert_array_equal(array.numpy(), base)


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
def test_memory_at_an_address_with_strides_and_capacity():
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    freed = []
    view = wp.array(ptr=base.ctypes.data + 4, dtype=int, shape=(4, 2), strides=(24, 8), capacity=92,
                    deleter=lambda address, size: freed.append((address, size)))  # fmt: skip
    np.testing.assert_array_equal(view.numpy(), base[:, 1:5:2])
    assert view.capacity == 92 and view.strides == (24, 8) and not view.is_contiguous
    row = view[1]
    del view
    assert not freed and row.list() == [7, 9]
    del row
    assert freed == [(base.ctypes.data + 4, 92)]
    with pytest.raises(ValueError, match="'capacity' is 10 bytes"):
        wp.array(ptr=base.ctypes.data, dtype=int, shape=4, capacity=10)


# ---- functions that take arrays ----


def test_atomics_count_through_indices():
    @wp.kernel
    def count(x: wp.indexedarray(dtype=int), y: wp.indexedarray(dtype=float, ndim=2), old: wp.array[int]):
        i = wp.tid()
        old[i] = wp.atomic_add(x, i % 2, 1)
        wp.atomic_max(y, i % 2, wp.int64(i) % wp.int64(3), float(i))
        old[i] += 0 * len(x)

    x, y, old = wp.zeros(6, dtype=int), wp.zeros((4, 5)), wp.zeros(600, dtype=int)
    wp.launch(count, 600, [x[[5, 2]], wp.indexedarray(y, [[3, 0], [4, 0, 2]]), old])
    assert x.list() == [0, 0, 300, 0, 0, 300]
    expected = np.zeros((4, 5))
    for i in range(600):
        expected[[3, 0][i % 2], [4, 0, 2][i % 3]] = i
    np.testing.assert_array_equal(y.numpy(), expected)
    assert sorted(old.list()) == sorted([*range(300), *range(300)])


def test_atomics_of_an_indexedarray_that_are_wrong():
    @wp.kernel
    def one_index(y: wp.indexedarray(dtype=float, ndim=2)):
        wp.atomic_add(y, 0, 1.0)

    with pytest.raises(wp.CompileError, match=r"takes \(indexedarray2d_float32, the int literal 0, the float"):
        wp.launch(one_index, 1, [wp.indexedarray(wp.zeros((2, 2)), [[0], [1]])])


def test_copies_from_and_into_chosen_elements():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    a = wp.array(base)
    rows = a[[3, 1]]
    np.testing.assert_array_equal(wp.clone(rows).numpy(), base[[3, 1]])
    assert wp.zeros_like(rows).shape == (2, 6) and wp.full_like(rows, 2.0).shape == (2, 6)
    out = wp.zeros((2, 6))
    wp.copy(out, rows)
    np.testing.assert_array_equal(out.numpy(), base[[3, 1]])
    wp.copy(a[[0, 2]], rows)
    base[[0, 2]] = base[[3, 1]]
    np.testing.assert_array_equal(a.numpy(), base)
    line = wp.array(np.arange(8.0), dtype=float)
    wp.copy(line[[1, 1, 6]], wp.array([10.0, 20.0, 30.0], dtype=float), dest_offset=1, src_offset=1)
    assert line.list() == [0, 20, 2, 3, 4, 5, 30, 7]
    wp.copy(line, line[[6, 1]], dest_offset=2, count=1)
    assert line.list() == [0, 20, 30, 3, 4, 5, 30, 7]
    with pytest.raises(ValueError, match="the destination has 2 elements, of which 3 from 0 on are asked for"):
        wp.copy(line[[0, 1]], wp.zeros(3))
    with pytest.raises(ValueError, match=r"a part of an indexedarray of shape \(2, 6\) cannot be copied"):
        wp.copy(rows, wp.zeros(12))
    with pytest.raises(TypeError, match="'src' must be an array"):
        wp.copy(rows, np.zeros((2, 6)))


PAIRS = [
    pytest.param((home, away), id=f"{home}-{away}", marks=[pytest.mark.gpu] if "cuda" in home + away else [])
    for home, away in [
        ("cpu", protected_device.NAME),
        (protected_device.NAME, "cpu"),
        ("cpu", "cuda:0"),
        ("cuda:0", "cpu"),
        ("cuda:0", "cuda:1"),
    ]
]


@pytest.fixture
def pair(request):
    """Two devices; the test is about arrays of the first."""
    if protected_device.NAME in request.param:
        protected_device.add()
    if "cuda:1" in request.param:
        request.getfixturevalue("two_gpus")
    return request.param


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_copies_into_chosen_elements_from_another_device(pair):
    home, away = pair
    base = np.zeros((4, 4), dtype=np.float32)
    a = wp.array(base, device=home)
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    there = wp.array(rows, device=away)
    wp.copy(a[[2, 0]], there)
    base[[2, 0]] = rows
    np.testing.assert_array_equal(a.numpy(), base)
    a[[3, 1]].assign(there[:, ::-1])
    base[[3, 1]] = rows[:, ::-1]
    np.testing.assert_array_equal(a.numpy(), base)
    a[[1, 2]] = there[[1, 0]]
    base[[1, 2]] = rows[[1, 0]]
    np.testing.assert_array_equal(a.numpy(), base)
    a[[0, 3]].assign(wp.array([[1, 2, 3, 4]], dtype=int, device=away))
    base[[0, 3]] = [1, 2, 3, 4]
    np.testing.assert_array_equal(a.numpy(), base)
    wp.copy(a[1][[3, 0]], there[0], dest_offset=1, count=1)
    base[1, 0] = rows[0, 0]
    np.testing.assert_array_equal(a.numpy(), base)


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_gradients_go_to_another_device_from_chosen_elements(pair):
    home, away = pair
    a = wp.zeros(4, device=home, requires_grad=True)
    there = wp.array([2.0, 3.0], dtype=float, device=away, requires_grad=True)
    with wp.Tape() as tape:
        a[[3, 3]] = there
    tape.backward(grads={a: wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, device=home)})
    assert a.list() == [0.0, 0.0, 0.0, 3.0] and there.grad.list() == [0.0, 4.0]


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_indices_of_another_device_are_moved(pair):
    home, away = pair
    a = wp.array([5.0, 6.0, 7.0], dtype=float, device=home)
    for dtype in (int, wp.int64):
        chosen = a[wp.array([1, 0], dtype=dtype, device=away)]
        assert [part.device for part in chosen.indices] == [home] and chosen.list() == [6.0, 5.0]
        chosen.assign([8.0, 9.0])
        assert a.list() == [9.0, 8.0, 7.0] and chosen[wp.array([1], dtype=dtype, device=away)].list() == [9.0]
        a.assign([5.0, 6.0, 7.0])
    assert wp.indexedarray(a, [wp.array([True, False, True], dtype=bool, device=away)]).list() == [5.0, 7.0]
    here = wp.array([2, 0], dtype=int, device=home)
    assert a[here].indices[0] is here


@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_chosen_elements_go_to_another_device(pair):
    home, away = pair
    chosen = wp.array([5.0, 6.0, 7.0], dtype=float, device=home)[[2, 0]]
    there = chosen.to(away)
    assert there.device == away and there.list() == [7.0, 5.0]
    assert chosen.to(home) is chosen


def test_a_generic_kernel_takes_every_indexedarray():
    @wp.kernel
    def double(x: Any):
        i = wp.tid()
        x[i] = x[i] * x.dtype(2)

    for dtype in (wp.float64, wp.int16):
        a = wp.array(np.arange(4), dtype=dtype)
        wp.launch(double, 2, [a[[3, 1]]])
        assert a.list() == [0, 2, 2, 6]


@pytest.mark.host_memory("looks at addresses")
def test_the_structure_of_ctypes_has_the_addresses():
    data = wp.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    rows = wp.array([2, 0], dtype=int)
    one = wp.indexedarray(data, [rows, None])
    view = one.__ctype__()
    assert (view.data.data, list(view.data.shape)) == (data.ptr, [3, 4, 0, 0])
    assert view.indices[0] == rows.ptr and view.indices[1] == one.indices[1].ptr and list(view.indices[2:]) == [0, 0]
    assert list(view.shape) == [2, 4, 0, 0]
    first = ctypes.cast(view.indices[0], ctypes.POINTER(ctypes.c_int32))
    del one, rows
    gc.collect()
    assert (first[0], first[1]) == (2, 0)

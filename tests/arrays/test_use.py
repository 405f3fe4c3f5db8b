"""Use of arrays on the host, against NumPy."""

import ctypes
import gc
import io
import reprlib
import weakref

import numpy as np
import pytest
import warp as wp
from _pytest._io.saferepr import saferepr
from hypothesis import given, settings
from hypothesis import strategies as st
from run_in_threads import run_in_threads

pytestmark = pytest.mark.protected


def counting(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


@pytest.mark.seed("S-USE-001")
@pytest.mark.seed("S-NPY-001")
@pytest.mark.seed("S-NPY-003")
@pytest.mark.host_memory("writes through NumPy")
def test_numpy_is_a_writable_view_that_keeps_the_memory():
    a = wp.zeros(4)
    view = a.numpy()
    view[1] = 5
    assert a.list() == [0, 5, 0, 0]
    del a
    gc.collect()
    wp.full(4, 9.0)
    assert view.tolist() == [0, 5, 0, 0]
    assert view.flags.writeable and view.flags.aligned and view.flags.c_contiguous


@pytest.mark.seed("S-USE-002")
def test_gradient_can_be_set():
    a = wp.zeros(3)
    gradient = wp.ones(3)
    a.grad = gradient
    assert a.grad is gradient and a.requires_grad
    a.requires_grad = False
    assert a.grad is None
    a.requires_grad = True
    assert a.grad.list() == [0, 0, 0]
    a.grad = None
    assert not a.requires_grad
    for wrong in (wp.zeros(4), wp.zeros(3, dtype=int), np.zeros(3), wp.zeros(6)[::2]):
        with pytest.raises(RuntimeError):
            a.grad = wrong


def test_views_carry_their_part_of_the_gradient():
    a = wp.zeros((4, 3), requires_grad=True)
    a[1:3].grad.fill_(2.0)
    a.T[0].grad.fill_(5.0)
    expected = np.zeros((4, 3))
    expected[1:3] = 2
    expected[:, 0] = 5
    assert np.array_equal(a.grad.numpy(), expected)
    assert a.reshape(12).grad.shape == (12,)
    assert not a.view(wp.int32).requires_grad
    assert wp.clone(a).grad.numpy().tolist() == expected.tolist()


def test_gradient_of_an_array_with_gaps_has_its_strides():
    r = np.zeros((4, 6), np.float32)
    a = wp.array(r[::-1, ::2], copy=False, requires_grad=True)
    assert a.grad.strides == a.strides and a.grad.shape == a.shape
    a.grad.fill_(1.0)
    assert a.grad.numpy().sum() == 12


@pytest.mark.seed("S-USE-003")
def test_len_is_the_first_dimension():
    assert len(wp.zeros((5, 2))) == 5
    assert wp.zeros((5, 2)).length == 5


@pytest.mark.seed("S-USE-004")
@pytest.mark.host_memory("wraps the memory of NumPy arrays")
def test_zero_clears_foreign_memory_too():
    r = np.ones(5, np.float32)
    wp.array(r, copy=False).zero_()
    assert r.tolist() == [0] * 5


@pytest.mark.seed("S-USE-005")
@pytest.mark.host_memory('names the device "cpu"')
def test_to_the_same_device_is_the_array_itself():
    a = wp.zeros(3)
    assert a.to("cpu") is a and a.to(a.device) is a
    with pytest.raises(RuntimeError, match="cuda"):
        a.to("cuda")


@pytest.mark.seed("S-USE-006", "S-USE-007")
def test_copy_takes_counts_and_offsets():
    source = wp.array(counting(10))
    target = wp.zeros(12)
    wp.copy(target, source)
    assert target.list() == [*range(10), 0, 0]
    target.zero_()
    wp.copy(target, source, dest_offset=3, src_offset=5, count=2)
    assert target.list() == [0, 0, 0, 5, 6] + [0] * 7
    wp.copy(target, source, 0, 8)
    assert target.list()[:2] == [8, 9]
    for arguments in ((11, 0, 0), (0, 9, 2), (-1, 0, 1), (0, 0, -1), (0, 11, 1)):
        with pytest.raises(RuntimeError):
            wp.copy(target, source, *arguments)
    with pytest.raises(RuntimeError):
        wp.copy(wp.zeros(9), source)
    with pytest.raises(TypeError, match="astype"):
        wp.copy(wp.zeros(10, dtype=wp.float64), source)


def test_copy_between_strides_and_of_gradients():
    r = counting(6, 8)
    a = wp.array(r, requires_grad=True)
    a.grad.fill_(3.0)
    b = wp.zeros((8, 6), requires_grad=True)
    wp.copy(b, a.T)
    assert np.array_equal(b.numpy(), r.T) and b.grad.numpy().min() == 3
    wp.copy(a[:, ::2], a[:, 1::2])
    r[:, ::2] = r[:, 1::2]
    assert np.array_equal(a.numpy(), r)


def test_overlapping_copy():
    r = counting(20)
    a = wp.array(r)
    wp.copy(a[3:], a[:17])
    r[3:] = r[:17].copy()
    assert np.array_equal(a.numpy(), r)
    wp.copy(a, a[::-1])
    assert np.array_equal(a.numpy(), r[::-1])


@pytest.mark.seed("S-USE-008")
@pytest.mark.seed("S-USE-009")
@pytest.mark.host_memory("compares addresses with NumPy")
def test_attributes_of_an_array_are_those_of_numpy():
    a = wp.array(counting(2, 3), requires_grad=True)
    assert (a.shape, a.strides, a.ndim, a.size) == ((2, 3), (12, 4), 2, 6)
    assert a.capacity >= 24 and a.ptr == a.numpy().ctypes.data and a.is_contiguous and not a.pinned
    assert a.device == "cpu" and a.vars == {} and a.dtype is wp.float32
    assert a.flatten().shape == (6,) and a.T.shape == (3, 2)
    assert a.contiguous() is a and a.T.contiguous().is_contiguous and not a.T.is_contiguous
    assert a.astype(int).list() == [0, 1, 2, 3, 4, 5]
    assert a.T.list() == [0, 3, 1, 4, 2, 5]
    assert wp.array([wp.vec2(1.0, 2.0)], dtype=wp.vec2).list() == [wp.vec2(1.0, 2.0)]
    a.note = "programs may hang things on arrays"
    assert weakref.ref(a)() is a


@pytest.mark.seed("S-USE-008")
@pytest.mark.host_memory('names the device "cpu"')
def test_methods_and_properties_one_by_one():
    values = counting(2, 3)
    a = wp.array(values, device="cpu")
    assert len(a) == 2 and str(a) == str(values) and a.list() == values.ravel().tolist()
    assert np.shares_memory(a.numpy(), a[1].numpy()) and a.cptr()[4] == 4.0
    assert a.to("cpu") is a and a.flatten().ptr == a.ptr and a.flatten().shape == (6,)
    assert a.reshape((3, 2)).numpy().tolist() == values.reshape(3, 2).tolist() and a.reshape((3, 2)).ptr == a.ptr
    assert a.view(wp.int32).numpy().tolist() == values.view(np.int32).tolist()
    assert a.transpose().numpy().tolist() == a.T.numpy().tolist() == values.T.tolist()
    assert a.transpose((1, 0)).strides == (4, 12) and a.transpose().contiguous().strides == (8, 4)
    assert a[1, 1:].list() == [4.0, 5.0] and a[:, 0].list() == [0.0, 3.0]
    assert a.fill_(2.5) is a and a.list() == [2.5] * 6
    a.assign(values)
    assert a.list() == values.ravel().tolist()
    a.zero_()
    assert a.list() == [0.0] * 6
    assert a.grad is None and not a.requires_grad
    a.requires_grad = True
    assert a.grad.shape == (2, 3)
    s = wp.zeros(1, dtype=wp.vec3)
    assert (s.dtype, s.shape, s.strides, s.ndim, s.size, s.capacity) == (wp.vec3, (1,), (12,), 1, 1, 12)
    assert s.pinned is False and s.is_contiguous and s.device == "cpu" and s.ptr == s.numpy().ctypes.data


def test_view_reinterprets():
    a = wp.array(counting(2, 3))
    assert a.view(wp.uint32).numpy().tolist() == counting(2, 3).view(np.uint32).tolist()
    assert a.view(wp.vec3).shape == (2,) and a.view(dtype=wp.vec3).view(dtype=float).shape == (2, 3)
    a.view(wp.vec3)[0] = (9, 8, 7)
    assert a.numpy()[0].tolist() == [9, 8, 7]
    assert wp.zeros(3, dtype=wp.vec4).view(wp.mat22).shape == (3,)
    assert wp.zeros(3, dtype=wp.vec4).view(wp.int32).shape == (3, 4)
    assert wp.zeros((2, 7)).view(wp.transform).shape == (2,) and wp.zeros(4).view(wp.vec4).shape == (1,)
    rows = wp.zeros((3, 4), requires_grad=True)[:, :3].view(wp.vec3)
    assert rows.shape == (3,) and rows.strides == (16,) and rows.grad.dtype is wp.vec3
    for misfit in (wp.vec4, wp.vec2, wp.mat22, wp.quat):
        with pytest.raises(RuntimeError, match="last dimensions must be"):
            a.view(misfit)
    with pytest.raises(RuntimeError, match="contiguous"):
        a.T.view(wp.vec2)
    with pytest.raises(RuntimeError, match="at most 4"):
        wp.zeros((1, 1, 1), dtype=wp.mat22).view(float)
    for dtype, other in ((float, wp.float64), (float, wp.vec2d), (wp.vec4, wp.float64), (wp.vec4, wp.vec2),
                         (wp.vec4, wp.uint8), (wp.vec2, wp.mat22)):  # fmt: skip
        with pytest.raises(TypeError, match="bytes"):
            wp.zeros((4, 4), dtype=dtype).view(other)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple),
    st.sampled_from([wp.vec2, wp.vec3i, wp.quat, wp.transform, wp.mat22, wp.types.matrix((2, 3), wp.float32)]),
)
def test_views_keep_the_outer_shape(shape, dtype):
    scalar, inner = dtype._wp_scalar_type_, dtype._shape_
    if len(shape) + len(inner) > 4:
        return
    numbers = np.arange(np.prod(shape + inner)).reshape(shape + inner)
    a = wp.array(numbers, dtype=dtype, shape=shape)
    split = a.view(scalar)
    assert split.shape == shape + inner and np.array_equal(split.numpy(), numbers)
    joined = split.view(dtype)
    assert joined.shape == shape and joined.strides == a.strides and joined.ptr == a.ptr


def test_fill_and_assign():
    a = wp.zeros((2, 3), dtype=wp.vec2)
    assert a.fill_(wp.vec2(1.0, 2.0)) is a
    assert a.numpy().reshape(-1, 2).tolist() == [[1, 2]] * 6
    a[:, 1].fill_(7.0)
    assert a.numpy()[:, 1].tolist() == [[7, 7]] * 2
    with pytest.raises(ValueError):
        a.fill_("x")
    b = wp.zeros(3)
    b.assign([1, 2, 3])
    assert b.list() == [1, 2, 3]
    b.assign(np.array([4.0, 5.0, 6.0]))
    assert b.list() == [4, 5, 6]
    b.assign(wp.array([7, 8, 9]))
    assert b.list() == [7, 8, 9]
    a.assign(np.arange(12.0).reshape(2, 3, 2))
    assert a.numpy().ravel().tolist() == list(range(12))
    with pytest.raises(RuntimeError):
        b.assign([1, 2, 3, 4])
    with pytest.raises(TypeError, match="fill_"):
        b.assign(1.0)


@pytest.mark.host_memory("looks at an address")
def test_cptr_points_to_the_elements_and_keeps_them():
    pointer = wp.array(counting(4)).cptr()
    gc.collect()
    assert pointer[2] == 2.0
    assert list(wp.array([(1, 2, 3)], dtype=wp.vec3).cptr()[0]) == [1, 2, 3]
    assert isinstance(wp.zeros(1, dtype=wp.int64).cptr().contents, ctypes.c_int64)


@pytest.mark.seed("S-USE-010")
@pytest.mark.host_memory("is about what only host memory has")
def test_array_interface():
    a = wp.array(counting(3, 4))
    interface = a.T.__array_interface__
    assert interface["shape"] == (4, 3) and interface["strides"] == (4, 16) and interface["typestr"] == "<f4"
    assert interface["data"] == (a.ptr, False) and a.__array_interface__["strides"] is None
    with pytest.raises(AttributeError, match="cpu"):
        a.__cuda_array_interface__
    assert not hasattr(wp.array(dtype=float), "__array_interface__")
    assert np.shares_memory(np.asarray(a), a.numpy())
    assert np.array(a, dtype=np.int64).tolist() == counting(3, 4).tolist()
    assert a.__array__(np.float64).dtype == np.float64
    assert not np.shares_memory(a.__array__(copy=True), a.numpy())


@pytest.mark.seed("S-USE-011")
def test_an_array_prints_as_numpy_does(capsys):
    print(np.array(wp.array([1.0, 2.0, 3.0])))
    print(wp.array([1.0, 2.0, 3.0]))
    assert capsys.readouterr().out == "[1. 2. 3.]\n[1. 2. 3.]\n"


def test_reprlib_and_pytest_show_arrays_with_their_elements():
    # Before Python 3.12 reprlib takes a class of that name for array.array.
    for a, element in ((wp.array([1.5, 2.5], dtype=float), "1.5"), (wp.full(2, wp.vec2(7.5), dtype=wp.vec2), "7.5")):
        for shown in (reprlib.repr(a), saferepr(a)):
            assert shown.startswith("array(") and element in shown
    assert "2.5" in reprlib.repr(wp.array([[1.5, 2.5], [3.5, 4.5]], dtype=float))


@pytest.mark.seed("S-USE-014")
@pytest.mark.parametrize("dtype", [wp.int8, wp.float64, wp.bool, wp.vec3, wp.mat22d, wp.quat])
def test_printing_is_numpys_for_every_dtype(dtype, capsys):
    inner = np.asarray(wp.zeros(1, dtype=dtype).numpy()).shape[1:]
    values = np.random.default_rng(0).integers(0, 2, (3, 40, *inner))  # long enough for lines and for dots
    a = wp.array(values, dtype=dtype)
    print(a)
    print(a[1, ::-2])
    assert capsys.readouterr().out == f"{a.numpy()}\n{a.numpy()[1, ::-2]}\n"
    large = wp.zeros((100, 100), dtype=dtype)
    assert str(large) == str(large.numpy()) and "..." in str(large)


@pytest.mark.seed("S-USE-014")
def test_arrays_are_keys_by_identity():
    a, b = wp.array([1.0, 2.0]), wp.array([1.0, 2.0])
    names = {a: "a", b: "b"}
    assert (names[a], names[b], len({a, b, a})) == ("a", "b", 2)
    assert a[:] not in names and wp.clone(a) not in names
    a.fill_(9.0)
    assert names[a] == "a"


@pytest.mark.seed("S-USE-015")
@pytest.mark.host_memory("is about views of NumPy")
def test_what_an_array_gives_out_keeps_its_memory():
    given = {
        "numpy": wp.full(9, 3.0, device="cpu").numpy(),
        "asarray": np.asarray(wp.full(9, 3.0, device="cpu")),
        "memoryview": memoryview(wp.full(9, 3.0, device="cpu")),
        "view": wp.full(9, 3.0, device="cpu")[2:],
        "flat": wp.full((3, 3), 3.0, device="cpu").flatten(),
        "view of a view": wp.full((3, 3), 3.0, device="cpu").T[1].numpy(),
    }
    source = np.full(9, 3.0, np.float32)
    given["copy=False"] = wp.array(source, copy=False)
    alive = weakref.ref(source)
    del source
    gc.collect()
    taken = [wp.full(9, -1.0, device="cpu") for _ in range(200)]  # would take the place of memory that was freed
    assert alive() is not None and len(taken) == 200
    for name, one in given.items():
        assert (np.asarray(one) == 3.0).all(), name
    del given, one
    gc.collect()
    assert alive() is None


@pytest.mark.host_memory("is about what only host memory has")
def test_buffer_protocol():
    a = wp.array(counting(2, 3))
    view = memoryview(a)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 3), (12, 4), "f", False)
    assert bytes(view) == counting(2, 3).tobytes()
    assert memoryview(wp.zeros(2, dtype=wp.mat22)).shape == (2, 2, 2)
    with pytest.raises(BufferError):
        io.BytesIO().write(a.T)
    with pytest.raises(BufferError, match="the elements are bfloat16"):
        memoryview(wp.zeros(2, dtype=wp.bfloat16))


@pytest.mark.host_memory("passes addresses without a device")
def test_the_structure_of_ctypes_stands_for_the_array():
    a = wp.array(counting(2, 3), requires_grad=True)
    view = a.__ctype__()
    assert (view.data, view.grad, view.ndim) == (a.ptr, a.grad.ptr, 2)
    assert (list(view.shape), list(view.strides)) == ([2, 3, 0, 0], [12, 4, 0, 0])
    assert wp.zeros(0).__ctype__().data == 0

    @wp.kernel
    def increase(x: wp.array2d[float], by: float):
        i, j = wp.tid()
        x[i, j] += by

    wp.launch(increase, dim=(3, 2), inputs=[a.T.__ctype__(), 2.0])
    np.testing.assert_array_equal(a.numpy(), counting(2, 3) + 2)
    command = wp.launch(increase, dim=(2, 3), inputs=[wp.zeros((2, 3)), 1.0], record_cmd=True)
    command.set_params_from_ctypes([view, ctypes.c_float(3.0)])
    command.launch()
    np.testing.assert_array_equal(a.numpy(), counting(2, 3) + 5)
    with pytest.raises(TypeError, match="it has 1 dimensions, expected 2"):
        wp.launch(increase, dim=(2, 3), inputs=[a.flatten().__ctype__(), 2.0])
    address = a.ptr
    del a
    gc.collect()
    assert np.ctypeslib.as_array((ctypes.c_float * 6).from_address(address)).tolist() == [5, 6, 7, 8, 9, 10]
    assert view.data == address


def test_copies_between_dtypes_of_one_size_are_bytes():
    numbers = np.array([[1.0, -2.5], [np.inf, 3.0]], np.float32)
    a = wp.array(numbers, requires_grad=True)
    b = wp.zeros((2, 2), dtype=int)
    wp.copy(b, a)
    np.testing.assert_array_equal(b.numpy(), numbers.view(np.int32))
    c = wp.zeros((2, 2), dtype=wp.uint32)
    wp.copy(c.T, a)
    np.testing.assert_array_equal(c.numpy(), numbers.T.copy().view(np.uint32))
    d = wp.zeros(5, dtype=int)
    wp.copy(d, a, dest_offset=1, src_offset=2, count=2)
    np.testing.assert_array_equal(d.numpy(), [0, *numbers[1].view(np.int32), 0, 0])
    pairs = wp.zeros(2, dtype=wp.vec2)
    wp.copy(pairs, wp.array([1.0, 2.0], dtype=wp.float64))
    np.testing.assert_array_equal(pairs.numpy().view(np.float64).ravel(), [1.0, 2.0])
    chosen = wp.indexedarray(a.flatten(), [[3, 0]])
    wp.copy(chosen, wp.array([5, 6], dtype=int))
    assert a.numpy().ravel().view(np.int32)[[3, 0]].tolist() == [5, 6]
    for other in (wp.zeros(4, dtype=wp.float64), wp.zeros(4, dtype=wp.vec3), wp.zeros(4, dtype=wp.uint8)):
        with pytest.raises(TypeError, match="as many bytes"):
            wp.copy(other, a)


def test_a_copy_of_bytes_ends_the_gradient():
    x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
    y = wp.zeros(2, dtype=wp.vec2, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
    tape.backward(grads={y: wp.ones(2, dtype=wp.vec2)})
    assert x.grad.list() == [0.0, 0.0]


def test_iterating_gives_elements_or_rows():
    assert list(wp.array([1, 2, 3])) == [1, 2, 3]
    assert [row.list() for row in wp.array(counting(2, 2))] == [[0, 1], [2, 3]]


def test_index_errors():
    a = wp.array(counting(3, 4))
    for key in (3, -4, (0, 4), (0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            a[key]
    for key in (1.0, "x", True, [0.5], np.array([0, 3]), np.array([True, False]), wp.array([0.0, 1.0])):
        with pytest.raises((TypeError, IndexError)):
            a[key]
    with pytest.raises(IndexError, match="out of range: dimension 1 has 4"):
        a[0, 7] = 1.0
    with pytest.raises(TypeError):
        a[0, 0] = "x"
    with pytest.raises(TypeError):
        del a[0]
    with pytest.raises(ValueError):
        a[::0]


def indices(size):
    return st.one_of(st.integers(-size, size - 1), st.slices(size))


@st.composite
def array_and_key(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    count = draw(st.integers(1, len(shape)))
    key = [draw(indices(n)) for n in shape[:count]]
    if draw(st.booleans()):
        split = draw(st.integers(0, count))
        tail = len(key) - split
        key = [draw(indices(n)) for n in shape[:split]] + [...] + [draw(indices(n)) for n in shape[len(shape) - tail :]]
    return shape, key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)


@settings(deadline=None, max_examples=300)
@given(array_and_key())
def test_indexing_reads_as_numpy_does(case):
    shape, key = case
    r = counting(*shape)
    got, expected = wp.array(r)[key], r[key]
    if expected.ndim == 0:
        assert got == expected
    else:
        assert got.shape == expected.shape
        assert np.array_equal(got.numpy(), expected)
        assert np.array_equal(wp.clone(got).numpy(), expected)


@settings(deadline=None, max_examples=200)
@given(array_and_key(), st.integers(0, 4))
def test_indexing_writes_as_numpy_does(case, kind):
    shape, key = case
    r = counting(*shape)
    a = wp.array(r)
    part = r[key]
    if kind == 0 or part.ndim == 0:
        value = 99.0
    elif kind == 1:
        value = np.random.default_rng(0).random(part.shape).astype(np.float32)
    elif kind == 2:
        value = wp.array(np.full(part.shape, 7, np.float32))
    elif kind == 3:
        value = np.arange(part.shape[-1])
    else:
        value = np.ones(part.shape, np.float64).tolist() if part.size > 0 else 1
    a[key] = value
    r[key] = value.numpy() if isinstance(value, wp.array) else value
    assert np.array_equal(a.numpy(), r)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.randoms())
def test_transpose_and_reshape_as_numpy_does(shape, random):
    r = counting(*shape)
    a = wp.array(r)
    axes = list(range(len(shape)))
    random.shuffle(axes)
    assert np.array_equal(a.transpose(axes).numpy(), r.transpose(axes))
    assert np.array_equal(a.T.numpy(), r.T)
    assert np.array_equal(a.transpose(axes).contiguous().numpy(), r.transpose(axes))
    assert np.array_equal(a.reshape((-1, shape[-1])).numpy(), r.reshape(-1, shape[-1]))
    assert np.array_equal(a.reshape(-1).numpy(), r.reshape(-1))


def test_reshape_errors():
    a = wp.zeros((2, 3))
    assert a.reshape(shape=(3, 2)).shape == a.reshape(3, -1).shape == a.reshape((-1, 2)).shape == (3, 2)
    for shape in ((4, 2), (-1, 4), (-1, -1), (2, 3, 1, 1, 1), "x", (2.0, 3)):
        with pytest.raises(RuntimeError):
            a.reshape(shape)
    with pytest.raises(RuntimeError, match="contiguous"):
        a.T.reshape(6)
    with pytest.raises(RuntimeError, match="contiguous"):
        a.T.flatten()
    with pytest.raises(ValueError):
        a.transpose((0, 0))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
def test_large_transposes_and_fills(dtype):
    r = np.random.default_rng(0).integers(0, 100, (1200, 900)).astype(dtype)
    a = wp.array(r)
    assert np.array_equal(a.T.contiguous().numpy(), r.T)
    a[::3, ::-2].fill_(1)
    r[::3, ::-2] = 1
    assert np.array_equal(a.numpy(), r)


def test_arrays_are_made_and_freed_on_many_threads():
    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(300):
            n = int(random.integers(1, 200000))
            a = wp.full(n, float(seed))
            assert a[n // 2] == seed and a.numpy()[-1] == seed

    run_in_threads(work, range(8))


def test_gradient_cycles_are_collected():
    a = wp.zeros(3)
    b = wp.zeros(3)
    a.grad, b.grad = b, a
    gone = weakref.ref(a)
    del a, b
    gc.collect()
    assert gone() is None


def test_results_of_a_subclass_have_its_class():
    class Tagged(wp.array):
        pass

    a = Tagged([1.0, 2.0], dtype=float)
    assert type(a) is Tagged and a.list() == [1, 2] and a[0:1].shape == (1,)

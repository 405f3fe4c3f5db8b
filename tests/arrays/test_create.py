"""Making arrays: from sizes, lists, NumPy, other arrays and addresses."""

import ctypes
import enum
import gc
import typing

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected

SCALARS = {
    "bool": np.bool_, "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
    "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64, "float16": np.float16, "float32": np.float32,
    "float64": np.float64,
}  # fmt: skip


@pytest.mark.seed("S-ARR-001")
@pytest.mark.seed("D-03")
def test_n_and_length_name_the_size():
    assert wp.empty(n=1024, dtype=wp.vec3, device="cpu").shape == (1024,)
    assert wp.zeros(n=3, dtype=float).shape == (3,)
    assert wp.zeros(length=3).shape == (3,)
    assert wp.ones(n=3).list() == [1.0, 1.0, 1.0]
    assert wp.full(n=2, value=4).list() == [4, 4]
    with pytest.raises(RuntimeError, match="give one"):
        wp.zeros(3, n=3)


@pytest.mark.seed("S-ARR-002")
@pytest.mark.seed("D-03")
def test_shape_is_an_int_or_a_tuple():
    assert wp.zeros(shape=1024).shape == (1024,)
    assert wp.zeros(shape=(1024, 16)).shape == (1024, 16)
    assert wp.zeros([2, 3]).shape == (2, 3)
    assert wp.zeros(np.int64(4)).shape == (4,)
    assert wp.zeros(10, dtype=wp.types.vector(5, wp.float64)).numpy().shape == (10, 5)


@pytest.mark.seed("S-ARR-003")
@pytest.mark.seed("S-ARR-019")
def test_requires_grad_allocates_zero_gradients():
    a = wp.zeros(7, requires_grad=True)
    assert a.dtype is wp.float32
    assert a.requires_grad
    assert a.grad.shape == a.shape and a.grad.dtype is a.dtype
    assert a.grad.numpy().tolist() == [0.0] * 7
    assert wp.zeros(7).grad is None


@pytest.mark.parametrize(
    "make", [wp.zeros, lambda n: wp.zeros_like(wp.empty(n)), lambda n: wp.zeros(n, requires_grad=True).grad]
)
@pytest.mark.host_memory("dirties memory through NumPy")
def test_zeros_are_zeros_in_memory_that_was_used_before(make):
    used_again = 0
    for n in (1, 7, 100, 1000, 30_000, 300_000):
        used = wp.full(n, 7.0)
        places = {used.ptr}
        more = [wp.full(n, 7.0) for _ in range(3)]
        places |= {a.ptr for a in more}
        del used, more
        made = make(n)
        used_again += made.ptr in places
        assert not made.numpy().any()
    assert used_again > 0


@pytest.mark.seed("S-ARR-004")
def test_positional_order_of_zeros():
    a = wp.zeros((2, 2), wp.int32, "cpu", False, True)
    assert a.dtype is wp.int32 and a.pinned and not a.requires_grad


@pytest.mark.seed("S-ARR-005")
def test_like_functions_take_unset_options_from_the_source():
    source = wp.full((2, 3), 5.0, requires_grad=True, pinned=True)
    for like in (wp.zeros_like, wp.empty_like, wp.ones_like, wp.clone, lambda a: wp.full_like(a, 2.0)):
        made = like(source)
        assert made.shape == (2, 3) and made.dtype is wp.float32
        # Pinned memory is the CPU's; elsewhere the word means nothing.
        assert made.requires_grad and made.pinned == source.device.is_cpu and made.ptr != source.ptr
    assert not wp.zeros_like(source, requires_grad=False).requires_grad
    plain = wp.full((2, 3), 5.0)
    assert not wp.empty_like(plain).requires_grad and wp.clone(plain, requires_grad=True).requires_grad
    assert wp.full_like(source, 2).list() == [2.0] * 6
    with pytest.raises(RuntimeError, match="must be an array"):
        wp.zeros_like(np.zeros(3))


@pytest.mark.seed("S-ARR-005")
@pytest.mark.parametrize("dtype", [float, wp.int8, wp.vec3d, wp.mat22h])
def test_like_functions_make_memory_of_their_own(dtype):
    source = wp.full((2, 3), 5, dtype=dtype)
    values = source.numpy().copy()
    zeros, empty, clone = wp.zeros_like(source), wp.empty_like(source), wp.clone(source)
    assert not zeros.numpy().any() and zeros.numpy().shape == empty.numpy().shape == values.shape
    np.testing.assert_array_equal(clone.numpy(), values)
    source.fill_(7)
    for made, expected in ((zeros, 0), (clone, 5)):
        assert (made.numpy() == expected).all()
    for made in (zeros, empty, clone):
        made.fill_(9)
        assert (source.numpy() == 7).all()
    part = source[:, ::2]
    assert wp.clone(part).is_contiguous and (wp.clone(part).numpy() == 7).all()


@pytest.mark.seed("S-ARR-020")
@pytest.mark.seed("D-31")
@pytest.mark.parametrize("make", [wp.zeros_like, wp.empty_like])
def test_a_bool_in_the_place_of_the_device_means_requires_grad(make):
    plain, source = wp.ones(3), wp.ones(3, requires_grad=True)
    assert make(plain, True).requires_grad and not make(source, False).requires_grad
    assert make(plain, True).grad.numpy().tolist() == [0.0] * 3
    assert not make(plain, "cpu", False).requires_grad and make(plain, wp.get_device("cpu"), True).requires_grad
    assert make(source, None).requires_grad and make(source, "cpu").requires_grad
    with pytest.raises(TypeError, match="'requires_grad' is given twice"):
        make(source, True, False)
    with pytest.raises(RuntimeError, match="a device is a name"):
        make(source, device=True)


@pytest.mark.seed("S-ARR-020")
@pytest.mark.parametrize("make", [wp.zeros, wp.empty])
def test_the_positional_order_of_2021(make):
    a = make(3, float, "cpu", True)
    assert a.shape == (3,) and a.dtype is wp.float32 and a.device == "cpu" and a.requires_grad
    assert not make(3, float, "cpu", False).requires_grad


@pytest.mark.seed("S-ARR-006")
def test_numpy_data_is_copied_and_converted():
    r = np.random.default_rng(0).random(10)
    a = wp.array(r, dtype=float, device="cpu")
    b = wp.array(data=r, dtype=float)
    r0 = r.astype(np.float32)
    assert r.dtype == np.float64 and a.dtype is b.dtype is wp.float32
    r[:] = 0
    assert np.array_equal(a.numpy(), r0) and np.array_equal(b.numpy(), r0)
    same = wp.array(r0, dtype=float)  # a copy too if nothing is converted
    r0[:] = 0
    assert np.array_equal(same.numpy(), a.numpy())


@pytest.mark.seed("S-ARR-007")
@pytest.mark.host_memory("shares the memory of NumPy arrays")
def test_copy_false_aliases_where_the_memory_fits():
    r = np.arange(6, dtype=np.float32)
    a = wp.array(r, dtype=float, copy=False)
    r[2] = 77
    assert a.list()[2] == 77
    converted = wp.array(r.astype(np.float64), dtype=float, copy=False)
    assert converted.dtype is wp.float32
    every_second = wp.array(r[::2], dtype=float, copy=False)
    assert every_second.ptr == r.ctypes.data and every_second.strides == (8,)
    vectors = wp.array(r.reshape(2, 3), dtype=wp.vec3, copy=False)
    vectors[1] = wp.vec3(1.0, 2.0, 3.0)
    assert r.tolist()[3:] == [1, 2, 3]


def test_copy_false_copies_where_components_are_apart():
    r = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    a = wp.array(r, dtype=wp.vec3, copy=False)
    assert np.array_equal(a.numpy(), r)
    assert a.ptr != r.ctypes.data


@pytest.mark.host_memory("shares the memory of NumPy arrays")
@pytest.mark.host_memory("shares memory of NumPy")
def test_read_only_memory_is_shared_to_be_read():
    @wp.kernel
    def double(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = 2.0 * x[i]

    r = np.array([1, 2, 3], np.float32)
    r.flags.writeable = False
    a, out = wp.array(r, copy=False), wp.zeros(3)
    assert a.ptr == r.ctypes.data and not a.numpy().flags.writeable and memoryview(a).readonly
    assert a.__array_interface__["data"] == (a.ptr, True) and not a[1:].numpy().flags.writeable
    wp.launch(double, dim=3, inputs=[a, out])
    assert out.list() == [2, 4, 6]
    command = wp.launch(double, dim=3, inputs=[out, out], record_cmd=True)
    for write in (
        lambda: wp.launch(double, dim=3, inputs=[out, a]),
        lambda: wp.launch(double, dim=2, inputs=[out, a[1:]]),
        lambda: command.set_param_at_index(1, a),
        lambda: a.fill_(1.0),
        lambda: a.zero_(),
        lambda: a.assign([4, 5, 6]),
        lambda: a.__setitem__(0, 1.0),
        lambda: a.__setitem__(slice(None), 1.0),
        lambda: wp.copy(a, out),
    ):
        with pytest.raises(ValueError, match="read.only"):
            write()
    assert r.tolist() == [1, 2, 3]
    assert wp.clone(a).fill_(7.0).list() == [7, 7, 7] and wp.array(r).fill_(7.0).list() == [7, 7, 7]


def test_alias_keeps_the_numpy_array_alive():
    a = wp.array(np.arange(1000.0), copy=False)
    gc.collect()
    assert a[5:7].numpy().tolist() == [5, 6]


@pytest.mark.seed("S-ARR-009")
def test_inner_dimensions_become_components():
    r = np.random.default_rng(0).random((1024, 3))
    a = wp.array(r, dtype=wp.vec3)
    assert a.shape == (1024,)
    assert np.array_equal(a.numpy(), r.astype(np.float32))
    m = wp.array(np.arange(16.0).reshape(4, 2, 2), dtype=wp.mat22)
    assert m.shape == (4,) and m.numpy().shape == (4, 2, 2)
    assert wp.array(np.arange(3.0), dtype=wp.vec3).shape == (1,)


@pytest.mark.seed("S-ARR-009")
def test_without_a_dtype_scalars_stay_scalars():
    for shape in ((5, 3), (5, 2, 2), (3,)):
        for scalar in (np.float32, np.int8):
            a = wp.array(np.ones(shape, scalar))
            assert a.shape == shape and a.dtype is wp.dtype_from_numpy(scalar)


@pytest.mark.seed("S-ARR-010")
@pytest.mark.parametrize("shape", [(1024, 4), (3, 1024, 2), (7,)])
def test_misfit_names_the_inner_size(shape):
    with pytest.raises(RuntimeError, match=r"\(3,\)"):
        wp.array(np.zeros(shape), dtype=wp.vec3)


def test_misfit_of_a_matrix_names_its_shape():
    with pytest.raises(RuntimeError, match=r"\(2, 2\)"):
        wp.array(np.zeros((5, 3)), dtype=wp.mat22)


@pytest.mark.seed("S-ARR-011")
def test_multiples_of_the_inner_size_are_split():
    r = np.arange(30.0).reshape(5, 6)
    a = wp.array(r, dtype=wp.vec3)
    assert a.shape == (5, 2)
    assert np.array_equal(a.numpy(), r.reshape(5, 2, 3))
    assert wp.array(np.arange(12.0), dtype=wp.vec3).shape == (4,)
    assert wp.array(np.arange(36.0).reshape(9, 4), dtype=wp.mat22).shape == (9,)
    assert wp.array(np.zeros((0, 3)), dtype=wp.vec3).shape == (0,)
    assert wp.array([], dtype=wp.vec3).shape == (0,)


@pytest.mark.seed("S-ARR-012")
def test_lists_and_tuples():
    for data in ([1.0, 2.0, 3.0], (1.0, 2.0, 3.0), [1, 2, 3]):
        assert wp.array(data, dtype=float, device="cpu").list() == [1.0, 2.0, 3.0]
    assert wp.array([[1, 2], [3, 4]]).shape == (2, 2)
    assert wp.array([(1, 2, 3), (4, 5, 6)], dtype=wp.vec3).shape == (2,)


def test_lists_of_vectors():
    data = [wp.vec3(1.0, 2.0, 3.0), wp.vec3(4.0, 5.0, 6.0)]
    a = wp.array(data, dtype=wp.vec3)
    assert a.dtype is wp.vec3 and a.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert wp.array(data, dtype=float).shape == (2, 3)
    assert wp.array([data, data], dtype=wp.vec3).shape == (2, 2)
    with pytest.raises(ValueError, match="lengths"):
        wp.array([data, data[:1]], dtype=wp.vec3)
    with pytest.raises(TypeError, match="vec3"):
        wp.array([data[0], "x"], dtype=wp.vec3)


@pytest.mark.seed("S-ARR-013")
def test_two_dimensions_stay_two():
    a = wp.array(np.random.randn(100, 2), dtype=wp.float32, requires_grad=True)
    assert a.shape == (100, 2) and a.grad.shape == (100, 2)


@pytest.mark.seed("S-ARR-014")
def test_arrays_from_arrays():
    a = wp.array([[1, 2, 3], [4, 5, 6]], dtype=wp.vec3)
    b = wp.array(a, dtype=float, device="cpu")
    assert b.shape == (2, 3) and b.dtype is wp.float32
    assert wp.array(a, dtype=wp.vec3d).numpy().tolist() == a.numpy().tolist()
    same = wp.array(a, dtype=wp.vec3)
    assert same.dtype is wp.vec3 and same.ptr != a.ptr
    assert wp.array(a, copy=False).ptr == a.ptr


@pytest.mark.seed("S-ARR-015")
def test_constructor_rules():
    with pytest.raises(RuntimeError, match="exclude"):
        wp.array(data=[1.0], ptr=64, dtype=float, shape=1)
    with pytest.raises(TypeError, match="dtype"):
        wp.array(shape=3)
    assert wp.array(shape=(2, 3), dtype=float).shape == (2, 3)
    assert wp.array(np.zeros(4, np.int16)).dtype is wp.int16
    assert wp.array(np.arange(6.0), shape=(2, 3)).shape == (2, 3)
    assert wp.array([1, 2, 3, 4, 5, 6], dtype=wp.vec3, shape=(2, 1)).shape == (2, 1)
    with pytest.raises(ValueError, match="does not fill"):
        wp.array(np.arange(6.0), shape=(2, 4))
    assert wp.array(np.arange(6.0), shape=(-1, 2)).shape == (3, 2)
    with pytest.raises(ValueError):
        wp.array(np.arange(6.0), shape=(-1, 4))
    with pytest.raises(ValueError):
        wp.array(np.arange(6.0), shape=(-1, -1))
    with pytest.raises(TypeError, match="did you mean"):
        wp.array([1.0], dtyp=float)
    gradient = wp.zeros(3)
    assert wp.array([1.0, 2.0, 3.0], dtype=float, grad=gradient).grad is gradient


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
def test_memory_at_an_address():
    memory = (ctypes.c_float * 6)(*range(6))
    address = ctypes.addressof(memory)
    a = wp.array(ptr=address, dtype=float, shape=(2, 3))
    assert a.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert wp.array(ptr=address, dtype=float, shape=3, strides=(8,)).list() == [0, 2, 4]
    with pytest.raises(ValueError, match="capacity"):
        wp.array(ptr=address, dtype=float, shape=6, capacity=20)
    with pytest.raises(TypeError, match="shape"):
        wp.array(ptr=address, dtype=float)
    with pytest.raises(ValueError, match="'ptr' is 0"):
        wp.array(ptr=0, dtype=float, shape=2)
    with pytest.raises(ValueError, match="expected a multiple of 4, the alignment of float32"):
        wp.array(ptr=address + 1, dtype=float, shape=2)
    with pytest.raises(ValueError, match="expected multiples of 4"):
        wp.array(ptr=address, dtype=float, shape=2, strides=6)


def test_deleter_runs_when_the_last_view_is_gone():
    memory = (ctypes.c_float * 6)()
    calls = []
    a = wp.array(ptr=ctypes.addressof(memory), dtype=float, shape=6, deleter=lambda *call: calls.append(call))
    view = a[2:4]
    del a
    assert calls == []
    del view
    assert calls == [(ctypes.addressof(memory), 24)]


@pytest.mark.parametrize("wrong", [{"grad": wp.zeros(3)}, {"strides": (4, 4)}, {"deleter": 3}])
def test_memory_stays_the_callers_where_the_constructor_fails(wrong):
    memory = (ctypes.c_float * 6)(*range(6))
    calls = []
    keywords = {"dtype": float, "shape": 6, "deleter": lambda *call: calls.append(call), **wrong}
    with pytest.raises(wp.UsageError, match=r"array\(\)"):
        wp.array(ptr=ctypes.addressof(memory), **keywords)
    assert calls == []
    # It is not the pool's either: no new array lies there.
    arrays = [wp.full(6, -1.0) for _ in range(50)]
    assert list(memory) == [0, 1, 2, 3, 4, 5] and len(arrays) == 50


def test_deleters_need_an_address_and_an_owner():
    with pytest.raises(ValueError, match="'deleter' frees the memory at 'ptr'"):
        wp.array(np.zeros(3), deleter=print)
    memory = (ctypes.c_float * 2)()
    calls = []
    wp.array(ptr=ctypes.addressof(memory), dtype=float, shape=2, owner=False, deleter=lambda *call: calls.append(call))
    assert calls == []


@pytest.mark.parametrize("value, dtype", [(300, wp.int8), (-1, wp.uint32), (2**31, wp.int32), (256, wp.vec3ub)])
def test_whole_numbers_in_lists_are_not_wrapped(value, dtype):
    with pytest.raises(OverflowError, match=f"{value} does not fit"):
        wp.array([[value, 0, 0]], dtype=dtype)
    for wrong in [2**63, -(2**63) - 1]:
        with pytest.raises(OverflowError, match=f"{wrong} does not fit int64"):
            wp.array([[wrong, 0, 0]], dtype=wp.int64)
    assert wp.array([2**64 - 1, 0], dtype=wp.uint64).list() == [2**64 - 1, 0]
    assert wp.array([2**63 - 1, 0.5], dtype=wp.int64).size == 2
    assert wp.array(np.array([300]), dtype=wp.int8).list() == [44]  # NumPy's arrays are converted as NumPy does it


@pytest.mark.parametrize("data", [(i for i in range(3)), "abc", {1: 2}, b"abc"])
def test_what_is_no_data_is_named(data):
    with pytest.raises(TypeError, match=f"data is {type(data).__name__}, expected an array, numbers, lists"):
        wp.array(data)


def test_an_array_is_no_size():
    with pytest.raises(TypeError, match=r"zeros\(\): 'shape' must be an integer, got numpy.ndarray of shape"):
        wp.zeros(np.zeros((2, 2)))
    assert wp.zeros(np.array([2, 3])).shape == (2, 3)


def test_lists_of_different_lengths():
    with pytest.raises(ValueError, match=r"array\(\): the lists have different lengths"):
        wp.array([[1.0, 2.0], [3.0]])


@pytest.mark.seed("S-ARR-017")
@pytest.mark.seed("D-21")
def test_from_numpy():
    assert wp.from_numpy(np.zeros(3, np.int16)).dtype is wp.int16
    assert wp.from_numpy(np.zeros((3, 3)), wp.vec3).shape == (3,)
    rows, planes = np.arange(15.0).reshape(5, 3), np.arange(20.0).reshape(5, 2, 2)
    vectors, matrices = wp.from_numpy(rows), wp.from_numpy(planes)
    assert (vectors.shape, vectors.dtype, matrices.shape, matrices.dtype) == ((5,), wp.vec3d, (5,), wp.mat22d)
    assert np.array_equal(vectors.numpy(), rows) and np.array_equal(matrices.numpy(), planes)
    assert wp.array(data=rows).shape == (5, 3) and wp.array(data=planes).shape == (5, 2, 2)
    scalars = wp.from_numpy(rows, float)
    assert scalars.shape == (5, 3) and scalars.dtype is wp.float32
    a = wp.from_numpy(np.arange(6.0), dtype=wp.float32, shape=(3, 2), requires_grad=True)
    assert a.shape == (3, 2) and a.requires_grad
    with pytest.raises(TypeError, match="NumPy"):
        wp.from_numpy([1, 2])


@pytest.mark.seed("S-ARR-018")
def test_cuda_memory_is_a_clear_error():
    class OnCuda:
        __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (64, False), "version": 3}

    with pytest.raises(RuntimeError, match="CUDA"):
        wp.array(OnCuda())


@pytest.mark.parametrize("name", SCALARS)
def test_every_scalar_type_from_and_to_numpy(name):
    r = np.array([0, 1, 1, 0, 1]).astype(SCALARS[name])
    a = wp.array(r)
    assert a.dtype is getattr(wp, name)
    assert a.numpy().dtype == r.dtype
    assert np.array_equal(a.numpy(), r)
    assert np.array_equal(np.array(a), r)
    b = wp.array(np.array([1, 0, 1], np.float64), dtype=getattr(wp, name))
    assert b.numpy().tolist() == [1, 0, 1]


@pytest.mark.parametrize("data", [np.array(["a"]), np.array([object()]), [None]])
def test_data_without_an_element_type_is_an_error(data):
    with pytest.raises(TypeError, match="no element type"):
        wp.array(data)


def test_foreign_byte_order_is_converted_when_dtype_is_given():
    r = np.arange(3, dtype=">f4")
    assert wp.array(r, dtype=float).list() == [0, 1, 2]


def test_non_contiguous_data():
    r = np.arange(24.0).reshape(4, 6)
    assert np.array_equal(wp.array(r.T).numpy(), r.T)
    assert np.array_equal(wp.array(r[::-1, ::2]).numpy(), r[::-1, ::2])
    assert np.array_equal(wp.array(r[::2].astype(np.float32), dtype=wp.vec2).numpy().reshape(2, 6), r[::2])


def test_buffers_and_array_interfaces():
    import array as stdlib_array

    class Wrapped:
        def __init__(self, inner):
            self.__array_interface__ = inner.__array_interface__

    assert wp.array(stdlib_array.array("f", [1, 2])).list() == [1, 2]
    assert wp.array(memoryview(b"\x01\x02")).list() == [1, 2]
    r = np.arange(3.0)
    assert wp.array(Wrapped(r)).list() == [0, 1, 2]


@pytest.mark.seed("S-USE-012")
@pytest.mark.seed("S-USE-013")
def test_five_dimensions_are_an_error_that_says_so():
    assert wp.zeros((1, 2, 3, 4), dtype=wp.mat22).numpy().shape == (1, 2, 3, 4, 2, 2)
    with pytest.raises(RuntimeError, match="at most 4 dimensions"):
        wp.zeros((1, 1, 1, 1, 1))
    with pytest.raises(RuntimeError, match="at most 4 dimensions"):
        wp.array(np.zeros((1, 1, 1, 1, 1)))
    with pytest.raises(RuntimeError, match="at most 4 dimensions"):
        wp.array(dtype=float, ndim=5)


@pytest.mark.parametrize("shape", [-1, (3, -2), 1 << 62, (1 << 40, 1 << 40), (0, -1), 2**70, "3", 2.5, True, ()])
def test_impossible_sizes_are_errors(shape):
    with pytest.raises(RuntimeError):
        wp.zeros(shape)


def test_more_memory_than_there_is():
    with pytest.raises(MemoryError):
        wp.empty(1 << 58)


def test_empty_arrays():
    a = wp.zeros((3, 0, 2), requires_grad=True)
    assert a.size == 0 and a.ptr is None and a.numpy().shape == (3, 0, 2)
    assert a.list() == [] and wp.clone(a).shape == a.shape
    a.fill_(1.0)
    assert a[1:].shape == (2, 0, 2)


def test_full_infers_its_dtype():
    assert wp.full(2, 1).dtype is wp.int32
    assert wp.full(2, 1.0).dtype is wp.float32
    assert wp.full(2, True).dtype is wp.bool
    assert wp.full(2, np.float64(1)).dtype is wp.float64
    assert wp.full(2, wp.vec3(1.0, 2.0, 3.0)).numpy().tolist() == [[1, 2, 3]] * 2
    assert wp.full(2, (1.0, 2.0)).dtype is wp.vec2d
    assert wp.full(2, [1, 2, 3]).dtype is wp.vec3l
    assert wp.full(2, ((1, 2), (3, 4))).dtype is wp.types.matrix((2, 2), wp.int64)
    assert wp.full(2, (True, False)).dtype is wp.types.vector(2, wp.bool)
    assert wp.full(2, np.array([1.0, 2.0], np.float32)).dtype is wp.vec2
    assert wp.full(2, wp.float16(2.0)).dtype is wp.float16
    assert wp.full(2, enum.IntEnum("Level", "LOW HIGH").HIGH).list() == [2, 2]
    assert wp.full(2, 2**40).dtype is wp.int32
    assert wp.full(2, 3, dtype=float).list() == [3.0, 3.0]
    assert wp.full(1, 2.0, dtype=wp.vec3).numpy().tolist() == [[2, 2, 2]]
    assert wp.ones(1, dtype=wp.mat22).numpy().tolist() == [[[1, 1], [1, 1]]]
    for value, dtype in ((1.5, int), (np.float32(2.0), int), ("x", int), (None, float), ((1, 2), wp.vec3),
                         ((1.5, 2, 3), wp.vec3i), (wp.vec3(), float)):  # fmt: skip
        with pytest.raises(ValueError, match="cannot fill"):
            wp.full(2, value, dtype=dtype)


@pytest.mark.seed("D-01", "D-02")
@pytest.mark.seed("S-ANN-001")
@pytest.mark.seed("S-ANN-002")
@pytest.mark.seed("S-ANN-003")
@pytest.mark.seed("S-ANN-004")
@pytest.mark.seed("S-ANN-005")
@pytest.mark.seed("S-ANN-008")
def test_spellings_of_an_annotation_are_equal():
    one = [
        wp.array(dtype=float),
        wp.array[float],
        wp.array1d(dtype=float),
        wp.array1d[wp.float32],
        wp.array(dtype=wp.float32, ndim=1),
    ]
    two = [wp.array(dtype=float, ndim=2), wp.array2d(dtype=wp.float32), wp.array2d[float], wp.array[float, 2]]
    for group in (one, two):
        assert len(set(group)) == 1 and all(a == group[0] for a in group)
    assert one[0] != two[0] and wp.array[float] != wp.array[int]
    assert wp.array4d[wp.vec3].ndim == 4 and wp.array3d[wp.vec3].dtype is wp.vec3
    assert str(wp.array2d[wp.vec3]) == "array2d[vec3f]"


def test_generic_annotations():
    assert wp.array(dtype=typing.Any).dtype is typing.Any
    assert wp.array2d[typing.Any] == wp.array(dtype=typing.Any, ndim=2)
    assert typing.get_args(wp.array[float] | None) == (wp.array[float], type(None))
    with pytest.raises(RuntimeError):
        wp.array[str]


def test_annotations_have_no_memory():
    annotation = wp.array(dtype=float)
    for use in (lambda a: a[0], lambda a: a.numpy(), lambda a: a.T, list, lambda a: a.zero_(), np.asarray):
        with pytest.raises((RuntimeError, BufferError)):
            use(annotation)
    assert annotation


@pytest.mark.seed("S-ANN-007")
def test_array2d_makes_arrays_too():
    a = wp.array2d([[1.0, 2.0], [3.0, 4.0]], dtype=float)
    assert isinstance(a, wp.array) and a.shape == (2, 2)
    with pytest.raises(ValueError):
        wp.array2d(dtype=float, ndim=3)


@pytest.mark.seed("S-NPY-002")
def test_dtypes_of_numpy():
    assert wp.dtype_to_numpy(wp.float32) == np.float32
    assert wp.dtype_to_numpy(wp.vec3d) == np.float64
    for name, dtype in SCALARS.items():
        assert wp.dtype_from_numpy(dtype) is getattr(wp, name)
        assert wp.dtype_from_numpy(np.dtype(dtype)) is getattr(wp, name)
    with pytest.raises(RuntimeError, match="complex"):
        wp.dtype_from_numpy(complex)


def test_the_shape_of_an_annotation_can_be_noted():
    annotation = wp.array(ndim=2, dtype=float)
    assert annotation.shape == (0, 0)
    annotation.shape = ("nworld", 3)
    assert annotation.shape == ("nworld", 3) and annotation.ndim == 2

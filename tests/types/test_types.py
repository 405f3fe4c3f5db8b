"""Types in Python: names, scalar values, conversions, the arguments of dtype=."""

import copy
import math
import pickle

import numpy as np
import pytest
import warp as wp

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


@pytest.mark.seed("S-TYP-001")
@pytest.mark.parametrize("name", INTEGERS + FLOATS)
def test_scalar_types_have_the_width_of_numpys(name):
    dtype = getattr(wp, name)
    assert wp.types.type_size_in_bytes(dtype) == np.dtype(name).itemsize
    assert wp.types.dtype_to_numpy(dtype) == np.dtype(name)
    assert wp.types.dtype_from_numpy(np.dtype(name)) is dtype


@pytest.mark.seed("S-TYP-001", "S-TYP-002")
@pytest.mark.parametrize("name", INTEGERS + FLOATS)
def test_every_storage_type_goes_to_numpy_and_back_with_its_width_and_sign(name):
    info = np.iinfo(name) if name in INTEGERS else np.finfo(name)
    values = np.array([info.min, info.max, 0, 1, info.max // 3], dtype=name)
    a = wp.array(values, dtype=getattr(wp, name))
    assert a.dtype is getattr(wp, name) and a.strides == (values.itemsize,)
    assert a.numpy().dtype == np.dtype(name) and a.numpy().tobytes() == values.tobytes()
    assert wp.array(a.numpy()).dtype is a.dtype and wp.array(a.numpy()).numpy().tobytes() == values.tobytes()
    assert wp.array(values.tolist(), dtype=a.dtype).numpy().tobytes() == values.tobytes()


@pytest.mark.seed("S-TYP-002")
def test_float16_rounds_to_nearest_even():
    for value in (0.1, 1.0 / 3.0, 65504.0, 5.9e-8, 2049.0, 1e6, -1e-9):
        with np.errstate(over="ignore"):
            assert float(wp.float16(value)) == float(np.float16(value))


def test_bfloat16_keeps_eight_bits_of_the_significand():
    assert float(wp.bfloat16(1.0 + 2.0**-7)) == 1.0 + 2.0**-7
    assert float(wp.bfloat16(1.0 + 2.0**-9)) == 1.0
    assert repr(wp.bfloat16(0.1)) == "bfloat16(0.1)"


@pytest.mark.seed("S-TYP-003")
def test_float_and_int_mean_the_32_bit_types():
    assert wp.types.type_name(float) == "float32"
    assert wp.types.type_name(int) == "int32"
    assert wp.types.type_name(bool) == "bool"


@pytest.mark.seed("S-TYP-004")
def test_bool_is_a_type_of_one_byte():
    assert wp.types.type_size_in_bytes(wp.bool) == 1
    assert wp.bool(True).value is True and wp.bool().value is False
    assert wp.types.dtype_from_numpy(np.bool_) is wp.bool


@pytest.mark.seed("S-TYP-005")
def test_constructors_convert_explicitly():
    assert wp.float64(1.0).value == 1.0
    assert wp.float16(2.0).value == 2.0
    assert wp.uint8().value == 0 and wp.int64().value == 0
    assert wp.int32(3.9).value == 3 and wp.int32(-3.9).value == -3
    assert wp.uint8(300).value == 300 - 256
    assert wp.float32(0.1).value == float(np.float32(0.1))
    assert wp.int32(wp.float64(7.5)).value == 7
    assert wp.uint64(2**64 - 1).value == 2**64 - 1
    assert wp.float32(np.int16(5)).value == 5.0


@pytest.mark.parametrize("value", ["1", None, [1], 10**400])
def test_a_scalar_cannot_be_made_of(value):
    with pytest.raises(TypeError, match="float32"):
        wp.float32(value)


def test_typed_scalars_are_numbers_in_python():
    x = wp.float64(2.5)
    assert float(x) == 2.5 and int(x) == 2 and bool(x) and hash(x) == hash(2.5)
    assert x == 2.5 and x < 3 and not x != 2.5
    assert f"{x:.2f}" == "2.50" and repr(x) == "float64(2.5)" and str(x) == "2.5"
    assert [10, 20, 30][wp.int32(1)] == 20
    assert np.asarray(wp.float32(1.5)).dtype == np.float32
    with pytest.raises(TypeError):
        [1, 2][x]


def test_typed_scalars_compute_in_their_type():
    assert (wp.uint8(250) + wp.uint8(10)).value == 4
    assert (wp.int32(7) / wp.int32(-2)).value == -3
    assert (wp.int32(7) % wp.int32(-2)).value == 1 and (wp.int32(-7) % wp.int32(2)).value == -1
    assert (wp.int32(-3) // wp.int32(2)).value == -2
    assert (wp.float32(0.1) + 0.2).value == float(np.float32(0.1) + np.float32(0.2))
    assert (2 * wp.float64(1.5)).value == 3.0 and type(2 * wp.float64(1.5)) is wp.float64
    assert (-wp.uint8(1)).value == 255 and abs(wp.int8(-5)).value == 5
    with pytest.raises(TypeError):
        wp.float32(1.0) + wp.float64(1.0)
    with pytest.raises(TypeError):
        wp.int32(1) + 0.5
    with pytest.raises(ZeroDivisionError):
        wp.int32(1) / wp.int32(0)


def test_values_survive_pickling_and_copying():
    for value in (wp.float16(0.5), wp.vec3(1, 2, 3), wp.types.matrix((2, 3), wp.int8)(*range(6)), wp.quat(0, 0, 0, 1)):
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert type(again) is type(value) and again == value


@pytest.mark.seed("S-VEC-001", "S-VEC-002", "S-VEC-003", "S-VEC-004")
def test_named_vector_types():
    assert wp.vec3 is wp.vec3f and wp.vec3.dtype is wp.float32 and wp.vec3._length_ == 3
    suffixes = dict(zip("f d h b ub s us i ui l ul".split(), "f4 f8 f2 i1 u1 i2 u2 i4 u4 i8 u8".split(), strict=True))
    for n in (2, 3, 4):
        for suffix, numpy in suffixes.items():
            dtype = getattr(wp, f"vec{n}{suffix}")
            assert dtype.shape == (n,) and wp.types.dtype_to_numpy(dtype) == np.dtype(numpy)
    assert wp.spatial_vector is wp.types.vector(6, float)
    assert wp.spatial_vectord.dtype is wp.float64 and wp.spatial_vectorh.dtype is wp.float16


@pytest.mark.seed("S-MAT-001", "S-MAT-002")
def test_named_matrix_types():
    for n in (2, 3, 4):
        unsuffixed = getattr(wp, f"mat{n}{n}")
        assert unsuffixed is getattr(wp, f"mat{n}{n}f") and unsuffixed.dtype is wp.float32
        assert wp.zeros(1, dtype=unsuffixed).numpy().shape == (1, n, n)
        for suffix, numpy in (("f", "f4"), ("d", "f8"), ("h", "f2")):
            dtype = getattr(wp, f"mat{n}{n}{suffix}")
            assert dtype.shape == (n, n) and wp.types.dtype_to_numpy(dtype) == np.dtype(numpy)
    assert wp.spatial_matrix.shape == (6, 6) and wp.spatial_matrixd.dtype is wp.float64


def test_named_quaternions_and_transforms():
    assert wp.quat is wp.quatf and wp.quatd.dtype is wp.float64 and wp.quath.dtype is wp.float16
    assert wp.transform is wp.transformf and wp.spatial_transform is wp.transform
    assert wp.types.quaternion(dtype=wp.float64) is wp.quatd
    assert wp.types.transformation(dtype=wp.float64) is wp.transformd
    assert wp.types.type_size_in_bytes(wp.transform) == 28


@pytest.mark.seed("S-VEC-006", "S-MAT-006")
def test_made_types_are_the_same_class_each_time():
    vec5d = wp.types.vector(length=5, dtype=wp.float64)
    assert vec5d is wp.types.vector(5, np.float64) and vec5d.shape == (5,)
    assert wp.types.vector(3, float) is wp.vec3
    mat32h = wp.types.matrix(shape=(3, 2), dtype=wp.float16)
    assert mat32h.shape == (3, 2) and mat32h.dtype is wp.float16
    assert wp.types.type_scalar_type(mat32h) is wp.float16 and wp.types.type_components(mat32h) == 6


@pytest.mark.seed("S-VEC-013")
@pytest.mark.parametrize("name", INTEGERS + FLOATS)
def test_made_types_of_any_size(name):
    dtype = getattr(wp, name)
    for length in (1, 2, 7, 33, 1000):
        made = wp.types.vector(length=length, dtype=dtype)
        assert made is wp.types.vector(length, np.dtype(name).type) and made.shape == (length,)
        values = np.arange(2 * length).reshape(2, length).astype(name)
        np.testing.assert_array_equal(wp.array(values, dtype=made).numpy(), values)
    for shape in ((1, 1), (1, 5), (5, 1), (2, 7), (30, 40)):
        made = wp.types.matrix(shape=shape, dtype=dtype)
        assert made is wp.types.matrix(shape, dtype) and made.shape == shape
        values = np.arange(2 * shape[0] * shape[1]).reshape(2, *shape).astype(name)
        np.testing.assert_array_equal(wp.array(values, dtype=made).numpy(), values)


@pytest.mark.seed("S-VEC-013")
@pytest.mark.seed("D-30")
def test_equal_declarations_are_one_type_in_python_and_in_kernels():
    assert wp.types.vector(3, wp.float32) is wp.types.vector(length=3, dtype=float) is wp.vec3f is wp.vec3
    assert wp.types.matrix((2, 2), wp.float64) is wp.types.matrix(shape=(2, 2), dtype=np.float64) is wp.mat22d
    assert wp.types.vector(3, wp.float32) is not wp.types.vector(3, wp.float64)
    assert wp.types.matrix((2, 3), float) is not wp.types.matrix((3, 2), float)
    for name in FLOATS:
        suffix = {"float16": "h", "float32": "f", "float64": "d"}[name]
        assert wp.types.quaternion(dtype=getattr(wp, name)) is getattr(wp, f"quat{suffix}")
        assert wp.types.transformation(getattr(wp, name)) is getattr(wp, f"transform{suffix}")
    for make in (wp.types.quaternion, wp.types.transformation):
        with pytest.raises(TypeError, match="floating-point type, got int32"):
            make(wp.int32)
    again = wp.types.vector(length=3, dtype=wp.float32)

    @wp.func
    def total(v: wp.vec3):
        return v[0] + v[1] + v[2]

    @wp.kernel
    def k(x: wp.array(dtype=again), out: wp.array[float]):
        out[0] = total(x[0]) + total(wp.vector(1.0, 2.0, 3.0))

    x, out = wp.array([(1.0, 2.0, 4.0)], dtype=wp.vec3), wp.zeros(1)
    wp.launch(k, dim=1, inputs=[x, out])
    assert out.numpy()[0] == 13.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: wp.types.vector(0, float),
        lambda: wp.types.vector(-1, float),
        lambda: wp.types.vector(2.5, float),
        lambda: wp.types.vector(10**30, float),
        lambda: wp.types.matrix((3,), float),
        lambda: wp.types.matrix((1 << 15, 1 << 15), float),
    ],
)
def test_impossible_extents_are_refused(make):
    with pytest.raises(ValueError, match="types"):
        make()


@pytest.mark.parametrize("dtype", [str, wp.vec3, "float", None, 3, complex])
def test_components_must_be_scalars(dtype):
    with pytest.raises(TypeError, match="scalar type"):
        wp.types.vector(3, dtype)


def test_questions_about_types():
    t = wp.types
    assert t.type_is_float(float) and t.type_is_float(np.float16) and not t.type_is_float(wp.vec3)
    assert t.type_is_int(wp.uint8) and not t.type_is_int(bool)
    assert t.type_is_vector(wp.vec3) and t.type_is_matrix(wp.mat22) and t.type_is_quaternion(wp.quat)
    assert t.type_is_transformation(wp.transform) and not t.type_is_value("float")
    with pytest.raises(wp.UsageError, match="expected a type"):
        t.type_length("float")


def test_questions_about_kinds_sizes_and_values():
    t = wp.types

    @wp.struct
    class Pair:
        small: wp.int8
        large: wp.float64

    composites = [wp.vec3, wp.mat22, wp.quat, wp.transform, t.vector(5, wp.int8)]
    assert all(t.type_is_composite(c) for c in composites) and not t.type_is_composite(float)
    assert t.type_is_struct(Pair) and not t.type_is_struct(wp.vec3) and not t.type_is_struct(3)
    assert [t.type_size(c) for c in composites] == [3, 4, 4, 7, 5] and t.type_size(float) == 1
    assert [t.type_size_in_bytes(c) for c in (*composites, Pair)] == [12, 16, 16, 28, 5, 16]
    assert all(t.is_scalar(x) for x in (1, 0.5, np.int8(3), wp.float16(1))) and not t.is_scalar(wp.vec3())
    assert all(t.is_value(x) for x in (1, wp.vec3(), wp.quat())) and not t.is_value("1") and not t.is_value([1])
    with pytest.raises(TypeError, match="type_size_in_bytes"):
        t.type_size_in_bytes("float")


def test_annotations_for_type_checkers():
    device = wp.get_device("cpu")
    assert isinstance(device, wp.DeviceLike) and isinstance("cpu", wp.DeviceLike) and isinstance(None, wp.DeviceLike)
    assert not isinstance(3, wp.DeviceLike)

    @wp.func
    def twice(x: float):
        return x + x

    @wp.kernel
    def nothing():
        pass

    assert isinstance(twice, wp.Function) and isinstance(nothing, wp.Kernel) and not isinstance(len, wp.Function)


def test_numpy_types_without_a_counterpart_are_named():
    with pytest.raises(wp.UsageError, match="complex128"):
        wp.types.dtype_from_numpy(np.complex128)


def test_constants_are_pythons():
    assert wp.pi == wp.PI == math.pi and wp.tau == wp.TAU == 2 * math.pi and wp.e == math.e
    assert wp.half_pi == math.pi / 2 and wp.inf == math.inf and math.isnan(wp.nan)


def test_unknown_names_of_the_module_suggest_known_ones():
    with pytest.raises(AttributeError, match="vec3"):
        wp.vec3x


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_numbers_that_wrapped_are_wrapped_where_they_become_wider(lanes):
    @wp.kernel(module_options={"lanes": lanes}, module="unique")
    def widen(out: wp.array2d[wp.int64]):
        i = wp.tid()
        u = wp.uint32(i)
        out[i, 0] = wp.int64(-u)
        out[i, 1] = wp.int64(u - wp.uint32(3))
        out[i, 2] = wp.int64(i + 2147483640)
        out[i, 3] = wp.int64(wp.uint32(i - 3))
        out[i, 4] = wp.int64(~u)
        out[i, 5] = wp.int64(i)

    out = wp.zeros((16, 6), dtype=wp.int64)
    wp.launch(widen, dim=16, inputs=[out])
    i = np.arange(16, dtype=np.int32)
    u = i.astype(np.uint32)
    expected = [-u, u - np.uint32(3), i + np.int32(2147483640), (i - 3).astype(np.uint32), ~u, i]
    np.testing.assert_array_equal(out.numpy(), np.stack([e.astype(np.int64) for e in expected], axis=1))

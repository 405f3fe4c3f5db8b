"""Python's numbers become elements, components and arguments as in C: ints wrap to the width, floats may become
infinite, every number is a truth value, a float never becomes an int. Only lists of ints are checked, as NumPy does."""

import enum

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

INTS = [wp.int8, wp.uint8, wp.int16, wp.uint16, wp.int32, wp.uint32, wp.int64, wp.uint64]


@wp.struct
class Numbers:
    byte: wp.uint8
    bytes: wp.vec2ub


def wrapped(number, dtype):
    """The low bits of a number, as an int of the type."""
    kind = np.iinfo(wp.dtype_to_numpy(dtype))
    return (number - int(kind.min)) % (1 << kind.bits) + int(kind.min)


@wp.kernel
def store(n: wp.int32, b: wp.uint8, f: wp.bool, x: float, v: wp.vec3i, ns: wp.array[int], xs: wp.array[float]):
    ns[0], ns[1], ns[2], ns[3] = n, int(b), int(f), v[1]
    xs[0] = x


@given(st.integers(-(2**80), 2**80) | st.integers(-300, 300), st.sampled_from(INTS))
def test_ints_wrap_to_the_width(number, dtype):
    expected = wrapped(number, dtype)
    vector = wp.types.vector(2, dtype)
    v = vector(number, 0)
    v[1] = number
    assert list(vector(number)) == list(v) == list(vector((number, number))) == [expected, expected]
    assert int(dtype(number)) == expected
    a = wp.full(1, number, dtype=dtype)
    assert a.list() == [expected]
    a.fill_(0)
    a[0] = number
    assert a.list() == [expected]
    a.fill_(number)
    assert a.list() == [expected]
    assert wp.full(1, (0, number), dtype=vector).numpy().tolist() == [[0, expected]]


def test_typed_and_numpy_numbers_wrap_too():
    assert wp.full(1, wp.int32(300), dtype=wp.int8).list() == wp.full(1, np.int32(300), dtype=wp.int8).list() == [44]
    assert list(wp.vec3i(np.array([2**33 + 1, 2, 3]))) == [1, 2, 3]
    s = Numbers()
    s.byte, s.bytes = 300, (-1, 256)
    assert wp.array([s], dtype=Numbers).numpy().tolist()[0][0] == 44 and list(s.bytes) == [255, 0]


@given(st.integers(-(2**80), 2**80), st.sampled_from([3, 0.5, 0, 0.0, True, False, np.float32(2.0), wp.int8(0)]))
def test_arguments_of_a_launch_convert_as_in_c(number, truth):
    ns, xs = wp.zeros(4, dtype=int), wp.zeros(1)
    wp.launch(store, 1, [number, number, truth, number, (0, number, 0), ns, xs])
    low, byte = wrapped(number, wp.int32), wrapped(number, wp.uint8)
    assert ns.list() == [low, byte, int(bool(truth)), low] and xs.list() == [float(np.float32(number))]


def test_members_of_enums_are_ints():
    Level = enum.IntEnum("Level", "LOW HIGH")
    Flags = enum.IntFlag("Flags", "A B")
    assert wp.full(2, Level.HIGH, dtype=int).list() == [2, 2] and wp.zeros(Level.HIGH).shape == (2,)
    assert wp.array([Flags.B, Flags.A | Flags.B], dtype=int).list() == [2, 3]
    assert wp.vec2i(Level.LOW, Flags.B) == wp.vec2i(1, 2) and int(wp.int32(Level.HIGH)) == 2
    ns = wp.zeros(4, dtype=int)
    wp.launch(store, 1, [Level.HIGH, Flags.B, Flags.A, Level.LOW, (0, Flags.B, 0), ns, wp.zeros(1)])
    assert ns.list() == [2, 2, 1, 2]


def test_floats_become_infinite_and_every_number_is_true_or_false():
    assert wp.full(1, 1e300).list() == wp.array([1e300], dtype=float).list() == [np.inf]
    assert wp.array([(1e300, 0, 0)], dtype=wp.vec3)[0] == wp.vec3(np.inf, 0.0, 0.0) == wp.vec3(1e300, 0.0, 0.0)
    assert wp.array([70000.0, 65504.0], dtype=wp.float16).list() == [np.inf, 65504.0]
    assert wp.array([1e39], dtype=wp.bfloat16).list() == [np.inf]
    xs = wp.zeros(1)
    for number in (1e300, np.float64(1e300), float("inf")):
        wp.launch(store, 1, [0, 0, False, number, (0, 0, 0), wp.zeros(4, dtype=int), xs])
        assert xs.list() == [np.inf]
    for dtype in (bool, wp.types.vector(1, bool)):
        assert wp.full(2, 42, dtype=dtype).numpy().ravel().tolist() == [True, True]
        assert wp.full(2, 0.0, dtype=dtype).numpy().ravel().tolist() == [False, False]
    assert wp.array([0.5, 0, 2], dtype=bool).list() == [True, False, True]


def test_a_float_is_no_int():
    v, a = wp.vec3i(), wp.zeros(3, dtype=int)
    for number in (1.5, 1.0, np.float32(1.0), wp.float32(1.0)):
        with pytest.raises(TypeError, match="is int32, got|a component"):
            v[0] = number
        with pytest.raises(TypeError):
            wp.vec3i(number, 0, 0)
        with pytest.raises(ValueError):
            a.fill_(number)
        with pytest.raises(TypeError):
            a[0] = number
        with pytest.raises(TypeError, match="expected int32"):
            wp.launch(store, 1, [number, 0, False, 0.0, (0, 0, 0), a, wp.zeros(1)])


def test_an_int_beyond_the_range_of_double_is_no_float():
    xs = wp.zeros(1)
    with pytest.raises(OverflowError, match="expected float32: it does not fit"):
        wp.launch(store, 1, [0, 0, False, 10**400, (0, 0, 0), wp.zeros(4, dtype=int), xs])
    with pytest.raises(ValueError):
        xs.fill_(10**400)


@pytest.mark.parametrize(
    ("numbers", "dtype", "found"),
    [
        ([1, 300], wp.int8, "300 does not fit int8"),
        ([-1], wp.uint8, "-1 does not fit uint8"),
        ([[1], [2**40]], wp.int32, "1099511627776 does not fit int32"),
        ([2**70], wp.int64, "1180591620717411303424 does not fit int64"),
        ([2**64], wp.uint64, "18446744073709551616 does not fit uint64"),
        ([-(2**63) - 1], wp.int64, "does not fit int64"),
        ([True, 300], wp.int8, "300 does not fit int8"),
        ([np.int64(300)], wp.int8, "300 does not fit int8"),
        ([1.0, float("nan")], wp.int32, "nan does not fit int32"),
        ([float("inf")], wp.int64, "inf does not fit int64"),
        ([2.0**63], wp.int64, "does not fit int64"),
    ],
)
def test_a_list_with_a_number_out_of_range(numbers, dtype, found):
    with pytest.raises(OverflowError, match=found) as caught:
        wp.array(numbers, dtype=dtype)
    assert isinstance(caught.value, wp.UsageError)
    a = wp.zeros(np.shape(numbers), dtype=dtype)
    with pytest.raises(OverflowError, match=found):
        a.assign(numbers)
    with pytest.raises(OverflowError, match=found):
        a[:] = numbers
    assert not a.numpy().any()


def test_lists_of_numbers_that_just_fit():
    assert wp.array([-128, 127], dtype=wp.int8).list() == [-128, 127]
    assert wp.array([2**64 - 1], dtype=wp.uint64).list() == [2**64 - 1]
    assert wp.array([-(2**63), 2**63 - 1], dtype=wp.int64).list() == [-(2**63), 2**63 - 1]
    assert wp.array([1.9, -128.9], dtype=wp.int8).list() == [1, -128]
    assert np.isnan(wp.array([float("nan")], dtype=wp.float16).numpy()[0])


def test_arrays_of_another_dtype_convert_as_numpy_does():
    a = wp.array(np.array([300, -1, 127]), dtype=wp.int8)
    assert a.list() == np.array([300, -1, 127]).astype(np.int8).tolist()
    a.assign(np.array([1, 2, 259]))
    assert a.list() == [1, 2, 3]
    with np.errstate(over="ignore"):
        assert wp.array(np.array([1e300]), dtype=wp.float32).list() == [np.inf]

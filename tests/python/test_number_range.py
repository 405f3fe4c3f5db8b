"""Python numbers that an element cannot hold are errors on the host; NumPy arrays convert as astype() does."""

import numpy as np
import pytest
import warp as wp


@wp.kernel
def store(a: float, n: int, v: wp.vec3, x: wp.array[float]):
    x[0] = a + float(n) + v[0]


def overflow(make, *parts):
    with pytest.raises(OverflowError) as caught:
        make()
    assert isinstance(caught.value, wp.UsageError)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {caught.value}"


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
        ([1e300], wp.float32, "1e+300 does not fit float32"),
        ([1e300], None, "1e+300 does not fit float32"),
        ([70000], wp.float16, "70000 does not fit float16"),
        ([1e39], wp.bfloat16, "1e+39 does not fit bfloat16"),
        ([(1e300, 0, 0)], wp.vec3, "1e+300 does not fit float32"),
        ([2**40], None, "1099511627776 does not fit int32. help: dtype=wp.int64"),
    ],
)
def test_a_list_with_a_number_out_of_range(numbers, dtype, found):
    overflow(lambda: wp.array(numbers, dtype=dtype), "array(): ", found)


def test_lists_of_numbers_that_just_fit():
    assert wp.array([-128, 127], dtype=wp.int8).list() == [-128, 127]
    assert wp.array([2**64 - 1], dtype=wp.uint64).list() == [2**64 - 1]
    assert wp.array([-(2**63), 2**63 - 1], dtype=wp.int64).list() == [-(2**63), 2**63 - 1]
    assert wp.array([1.9, -128.9], dtype=wp.int8).list() == [1, -128]
    assert wp.array([3.4028235e38, float("inf")]).list() == [np.finfo(np.float32).max, np.inf]
    assert np.isnan(wp.array([float("nan")], dtype=wp.float16).numpy()[0])
    assert wp.array([65504.0], dtype=wp.float16).list() == [65504.0]


def test_filling_and_assigning():
    a, f = wp.zeros(3, dtype=wp.int8), wp.zeros(3)
    overflow(lambda: wp.full(3, 300, dtype=wp.int8), "full(): cannot fill an array of int8 with int 300")
    overflow(lambda: wp.full(3, np.int64(300), dtype=wp.int8), "numpy.int64")
    overflow(lambda: a.fill_(-129), "array.fill_(): ", "int -129")
    overflow(lambda: f.fill_(1e39), "float 1e+39")
    overflow(lambda: a.__setitem__(0, 300), "array[]: cannot store int 300 as int8")
    overflow(lambda: f.__setitem__(0, -1e39), "cannot store float -1e+39 as float32")
    overflow(lambda: a.__setitem__(slice(0, 2), [1, 300]), "300 does not fit int8")
    overflow(lambda: a.__setitem__(slice(0, 2), [1, 2**70]), "does not fit int8")
    overflow(lambda: a.assign([1, 2, 300]), "array.assign(): 300 does not fit int8")
    assert a.list() == [0, 0, 0] and f.list() == [0.0, 0.0, 0.0]
    with pytest.raises(TypeError, match="float 1.5"):
        a.fill_(1.5)


def test_arguments_of_a_launch():
    x = wp.zeros(1)
    launch = lambda *arguments: wp.launch(store, dim=1, inputs=[*arguments, x])  # noqa: E731
    overflow(lambda: launch(1e300, 0, (0, 0, 0)), "argument 1 'a' of kernel 'store' is float 1e+300, expected float32")
    overflow(lambda: launch(np.float64(1e300), 0, (0, 0, 0)), "expected float32")
    overflow(lambda: launch(0.0, 2**40, (0, 0, 0)), "is int 1099511627776, expected int32: it does not fit")
    overflow(lambda: launch(0.0, np.int64(2**40), (0, 0, 0)), "expected int32: it does not fit")
    launch(float("inf"), 0, (0, 0, 0))
    assert x.list() == [np.inf]


def test_arrays_of_another_dtype_convert_as_numpy_does():
    a = wp.array(np.array([300, -1, 127]), dtype=wp.int8)
    assert a.list() == np.array([300, -1, 127]).astype(np.int8).tolist()
    a.assign(np.array([1, 2, 259]))
    assert a.list() == [1, 2, 3]
    with np.errstate(over="ignore"):
        assert wp.array(np.array([1e300]), dtype=wp.float32).list() == [np.inf]

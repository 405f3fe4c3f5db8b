"""warp.utils: sums, inner products, scans, sorts of pairs, runs, against NumPy."""

import re

import numpy as np
import protected_device
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.protected

SCALARS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
random = np.random.default_rng(7)


def numbers(name, shape):
    """Values of the whole range of integers, and floats of both signs."""
    if name.startswith("float"):
        return random.standard_normal(shape).astype(name)
    limits = np.iinfo(name)
    return random.integers(limits.min, limits.max, shape, dtype=name, endpoint=True)


# ---- sums ----


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("n", [0, 1, 15, 17, 2047, 2048, 2049, 100_001])
def test_sum_of_a_line(name, n):
    data = numbers(name, n)
    result = wp.utils.array_sum(wp.array(data, dtype=getattr(wp, name)))
    if name.startswith("float"):
        exact = np.float64(data.astype(np.longdouble).sum())
        assert type(result) is data.dtype.type and result == pytest.approx(exact.astype(name), rel=1e-12, abs=1e-9)
    else:
        assert result == int(data.sum(dtype=np.uint64 if name.startswith("u") else np.int64))


def test_sum_of_bools_counts():
    data = random.random(5000) < 0.3
    assert wp.utils.array_sum(wp.array(data, dtype=wp.bool)) == data.sum()


def test_sum_keeps_what_single_precision_would_lose():
    data = np.full(1 << 20, 0.1, dtype=np.float32)
    assert wp.utils.array_sum(wp.array(data)) == data[0] * np.float32(1 << 20)  # exact: a power of two


@pytest.mark.parametrize("shape", [(5, 7), (3, 4, 5), (2, 3, 4, 5), (4, 5000), (5000, 4), (3, 0, 2)])
def test_sum_over_each_axis(shape):
    data = random.standard_normal(shape)
    a = wp.array(data, dtype=wp.float64)
    for axis in range(-len(shape), len(shape)):
        result = wp.utils.array_sum(a, axis=axis)
        np.testing.assert_allclose(result.numpy(), data.sum(axis=axis, keepdims=True), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype, inner", [(wp.vec3, (3,)), (wp.mat22, (2, 2)), (wp.quat, (4,))])
def test_sum_of_vectors_and_matrices(dtype, inner):
    data = random.standard_normal((3000, 2, *inner)).astype(np.float32)
    a = wp.array(data, dtype=dtype)
    total = wp.utils.array_sum(a)
    assert isinstance(total, np.ndarray) and total.dtype == np.float32 and total.shape == inner
    np.testing.assert_allclose(np.array(total), data.sum(axis=(0, 1), dtype=np.float64), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(wp.utils.array_sum(a, axis=0).numpy()[0], data.sum(axis=0), rtol=1e-4, atol=1e-4)


def test_sum_of_views():
    data = random.standard_normal((40, 50))
    a = wp.array(data, dtype=wp.float64)
    for key in [np.s_[::2], np.s_[:, ::3], np.s_[5:20, ::-1]]:
        assert wp.utils.array_sum(a[key]) == pytest.approx(data[key].sum(), rel=1e-12)
    np.testing.assert_allclose(wp.utils.array_sum(a.transpose(), axis=0).numpy()[0], data.sum(axis=1), rtol=1e-12)


def test_sum_into_an_array():
    a = wp.array(np.arange(10), dtype=wp.int8)
    out = wp.zeros(1, dtype=wp.int64)
    assert wp.utils.array_sum(a, out=out) is out
    assert out.list() == [45]
    narrow = wp.zeros(1, dtype=wp.int8)
    wp.utils.array_sum(wp.array([100, 100], dtype=wp.int8), out=narrow)
    assert narrow.list() == [200 - 256]
    assert wp.utils.array_sum(a, value_count=4) == 6
    rows = wp.array(np.ones((3, 4)), dtype=float)
    squeezed = wp.zeros(3, dtype=float)
    wp.utils.array_sum(rows, out=squeezed, axis=1)
    assert squeezed.list() == [4.0, 4.0, 4.0]


def test_inner_products():
    a, b = random.standard_normal((2, 3000))
    x, y = wp.array(a, dtype=wp.float64), wp.array(b, dtype=wp.float64)
    assert wp.utils.array_inner(x, y) == pytest.approx(np.dot(a, b), rel=1e-12)
    assert wp.utils.array_inner(x, y, count=7) == pytest.approx(np.dot(a[:7], b[:7]), rel=1e-12)
    p, q = random.standard_normal((2, 20, 30, 3))
    v, w = wp.array(p, dtype=wp.vec3d), wp.array(q, dtype=wp.vec3d)
    assert wp.utils.array_inner(v, w) == pytest.approx((p * q).sum(), rel=1e-12)
    for axis in (0, 1):
        result = wp.utils.array_inner(v, w, axis=axis)
        assert result.dtype is wp.float64
        np.testing.assert_allclose(result.numpy(), (p * q).sum(axis=(axis, 2), keepdims=True)[..., 0], rtol=1e-10)


def test_sums_say_what_is_wrong():
    a = wp.zeros((3, 4))
    with pytest.raises(wp.UsageError, match=r"array_sum\(\): there is no axis 2, the array of shape \(3, 4\)"):
        wp.utils.array_sum(a, axis=2)
    with pytest.raises(wp.UsageError, match=r"'out' has the shape \(2,\), expected \(3, 1\)"):
        wp.utils.array_sum(a, axis=1, out=wp.zeros(2))
    with pytest.raises(wp.UsageError, match="'out' is an array of vec3f, expected float32"):
        wp.utils.array_sum(a, out=wp.zeros(1, dtype=wp.vec3))
    with pytest.raises(TypeError, match="'values' must be a warp.array, got list"):
        wp.utils.array_sum([1.0])
    with pytest.raises(ValueError, match=r"must have the same shape, got \(3, 4\) and \(4, 3\)"):
        wp.utils.array_inner(a, wp.zeros((4, 3)))
    with pytest.raises(TypeError, match="must have the same dtype, got float32 and float64"):
        wp.utils.array_inner(a, wp.zeros((3, 4), dtype=wp.float64))
    with pytest.raises(ValueError, match="'value_count' is 4, and the arrays have 3 elements"):
        wp.utils.array_sum(wp.zeros(3), value_count=4)


# ---- scans ----


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("n", [0, 1, 7, 9, 16384, 16385, 70_000])
def test_scan(name, n):
    data = numbers(name, n)
    if name == "float16":
        data = random.integers(0, 2, n).astype(name) / 64
    a, out = wp.array(data, dtype=getattr(wp, name)), wp.empty(n, dtype=getattr(wp, name))
    wide = np.float64 if name.startswith("float") else name
    expected = np.cumsum(data, dtype=wide)
    wp.utils.array_scan(a, out)
    np.testing.assert_allclose(out.numpy(), expected.astype(name), rtol=1e-3 if name == "float16" else 1e-6, atol=1e-6)
    wp.utils.array_scan(a, out, inclusive=False)
    before = np.concatenate([[0], expected[:-1]])[:n].astype(name)
    np.testing.assert_allclose(out.numpy(), before, rtol=1e-3 if name == "float16" else 1e-6, atol=1e-6)


def test_scan_in_place_of_vectors_and_of_views():
    data = random.standard_normal((40_000, 3))
    a = wp.array(data, dtype=wp.vec3d)
    wp.utils.array_scan(a, a)
    np.testing.assert_allclose(a.numpy(), np.cumsum(data, axis=0), rtol=1e-9, atol=1e-9)
    b = wp.array(np.arange(20), dtype=int)
    wp.utils.array_scan(b[:10], b[5:15])
    assert b.numpy()[5:15].tolist() == np.cumsum(np.arange(10)).tolist()
    c = wp.array(np.arange(20), dtype=int)
    wp.utils.array_scan(c[::2], c[::-2], inclusive=False)
    assert c.numpy()[::-2].tolist() == np.concatenate([[0], np.cumsum(np.arange(0, 20, 2))[:-1]]).tolist()


def test_scan_says_what_is_wrong():
    with pytest.raises(ValueError, match="'in_array' has 3 elements and 'out_array' 4"):
        wp.utils.array_scan(wp.zeros(3), wp.zeros(4))
    with pytest.raises(TypeError, match="same dtype, got float32 and int32"):
        wp.utils.array_scan(wp.zeros(3), wp.zeros(3, dtype=int))
    with pytest.raises(ValueError, match=r"'in_array' must have one dimension, got the shape \(2, 2\)"):
        wp.utils.array_scan(wp.zeros((2, 2)), wp.zeros((2, 2)))


# ---- sorts ----


def sorted_pairs(keys, values):
    """The result of a stable sort by NumPy, in which -0 equals 0 and NaNs come last."""
    order = np.argsort(keys, kind="stable")
    return keys[order], values[order]


def same_bits(a, b):
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("n", [0, 1, 2, 31, 33, 1000, 150_000])
def test_sort_of_pairs(name, n):
    data = numbers(name, n)
    keys, values = wp.array(data, dtype=getattr(wp, name)), wp.array(np.arange(n), dtype=int)
    wp.utils.radix_sort_pairs(keys, values, n)
    expected_keys, expected_values = sorted_pairs(data, np.arange(n, dtype=np.int32))
    assert same_bits(keys.numpy(), expected_keys) and same_bits(values.numpy(), expected_values)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [20, 500, 100_000])
def test_sort_of_nan_infinity_and_negative_zero(name, n):
    pool = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, np.finfo(name).tiny / 4], dtype=name)
    data = random.choice(pool, n)
    keys, values = wp.array(data, dtype=getattr(wp, name)), wp.array(np.arange(n), dtype=wp.int64)
    wp.utils.radix_sort_pairs(keys, values, n)
    expected_keys, expected_values = sorted_pairs(data, np.arange(n))
    assert values.numpy().tolist() == expected_values.tolist()
    assert same_bits(keys.numpy(), expected_keys)


@pytest.mark.parametrize("dtype, inner", [(wp.vec3, (3,)), (wp.float64, ()), (wp.uint8, ()), (wp.mat22d, (2, 2))])
def test_values_of_any_size_move_along(dtype, inner):
    data = random.integers(-50, 50, 2000).astype(np.int32)
    payload = random.integers(0, 100, (2000, *inner)).astype(wp.types.dtype_to_numpy(dtype))
    keys, values = wp.array(data, dtype=int), wp.array(payload, dtype=dtype)
    wp.utils.radix_sort_pairs(keys, values, 2000)
    expected_keys, expected_values = sorted_pairs(data, payload)
    assert same_bits(keys.numpy(), expected_keys) and same_bits(values.numpy(), expected_values)


def test_sort_leaves_what_is_behind_the_count_and_works_on_views():
    keys, values = wp.array([3, 2, 1, 9, 0, 0], dtype=int), wp.array([0, 1, 2, 3, 4, 5], dtype=int)
    wp.utils.radix_sort_pairs(keys, values, 3)
    assert keys.list() == [1, 2, 3, 9, 0, 0] and values.list() == [2, 1, 0, 3, 4, 5]
    wp.utils.radix_sort_pairs(keys[::-1], values[::-1], 6)
    assert keys.list() == [9, 3, 2, 1, 0, 0] and values.list() == [3, 0, 1, 2, 4, 5]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-5, 5), max_size=80), max_size=12))
def test_segments_are_sorted_by_themselves(lists):
    data = np.array([x for part in lists for x in part], dtype=np.int32)
    bounds = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    keys, values = wp.array(data, dtype=int), wp.array(np.arange(len(data)), dtype=int)
    wp.utils.segmented_sort_pairs(keys, values, len(data), wp.array(bounds, dtype=int))
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        order = np.argsort(data[begin:end], kind="stable")
        assert keys.numpy()[begin:end].tolist() == data[begin:end][order].tolist()
        assert values.numpy()[begin:end].tolist() == (begin + order).tolist()


def test_keys_of_several_dimensions_are_sorted_in_c_order():
    keys = wp.array([[3, 1, 2], [9, 7, 8]], dtype=int)
    values = wp.array([[0, 1, 2], [3, 4, 5]], dtype=int)
    wp.utils.segmented_sort_pairs(keys, values, 6, wp.array([0, 3, 6], dtype=int))
    assert keys.numpy().tolist() == [[1, 2, 3], [7, 8, 9]] and values.numpy().tolist() == [[1, 2, 0], [4, 5, 3]]
    with pytest.raises(ValueError, match=r"'keys' has the shape \(3, 2\) and gaps. help: .contiguous\(\)"):
        wp.utils.segmented_sort_pairs(keys.T, values, 6, wp.array([0, 3, 6], dtype=int))


@pytest.mark.parametrize("lengths", [[200_000, 3, 50], [40] * 3000])
def test_long_and_many_segments(lengths):
    bounds = np.cumsum([0, *lengths]).astype(np.int32)
    data = random.standard_normal(bounds[-1]).astype(np.float32)
    keys, values = wp.array(data), wp.array(np.arange(len(data)), dtype=int)
    starts, ends = wp.array(bounds[:-1], dtype=int), wp.array(bounds[1:], dtype=int)
    wp.utils.segmented_sort_pairs(keys, values, len(data), starts, ends)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    assert same_bits(keys.numpy(), data[np.lexsort((data, owner))])
    assert same_bits(data[values.numpy()], keys.numpy())


def test_sorts_say_what_is_wrong():
    keys, values = wp.zeros(4, dtype=int), wp.zeros(3, dtype=int)
    with pytest.raises(ValueError, match="'keys' and 'values' share memory"):
        wp.utils.radix_sort_pairs(keys, keys, 4)
    with pytest.raises(ValueError, match="'count' is 4, and the arrays have 3 elements"):
        wp.utils.radix_sort_pairs(keys, values, 4)
    with pytest.raises(TypeError, match="'keys' is an array of vec3f; expected scalars"):
        wp.utils.radix_sort_pairs(wp.zeros(4, dtype=wp.vec3), values, 3)
    with pytest.raises(ValueError, match="segment 1 goes from 2 to 9, expected 0 <= start <= end <= 3"):
        wp.utils.segmented_sort_pairs(keys, values, 3, wp.array([0, 2, 9], dtype=int))
    with pytest.raises(TypeError, match="'segment_start_indices' must be an array of int32, got float32"):
        wp.utils.segmented_sort_pairs(keys, values, 3, wp.zeros(2))
    with pytest.raises(ValueError, match="there are 2 segment starts and 1 ends"):
        wp.utils.segmented_sort_pairs(keys, values, 3, wp.zeros(2, dtype=int), wp.zeros(1, dtype=int))


# ---- runs ----


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 30)), max_size=30))
def test_runs_of_equal_elements(runs):
    data = np.repeat([value for value, _ in runs], [length for _, length in runs]).astype(np.int32)
    n = len(data)
    values, lengths = wp.zeros(n, dtype=int), wp.zeros(n, dtype=int)
    count = wp.utils.runlength_encode(wp.array(data, dtype=int), values, lengths)
    starts = np.flatnonzero(np.concatenate([[True], data[1:] != data[:-1]])) if n else np.zeros(0, dtype=int)
    assert count == len(starts)
    assert values.numpy()[:count].tolist() == data[starts].tolist()
    assert lengths.numpy()[:count].tolist() == np.diff(np.append(starts, n)).tolist()


def test_runs_across_blocks_into_a_count():
    data = np.repeat(np.arange(500), 301).astype(np.float32)
    values, lengths, count = wp.zeros(500), wp.zeros(500, dtype=int), wp.zeros(1, dtype=int)
    assert wp.utils.runlength_encode(wp.array(data), values, lengths, run_count=count) is count
    assert count.list() == [500]
    assert values.list() == list(range(500)) and set(lengths.list()) == {301}


def test_runs_without_room_are_an_error():
    with pytest.raises(ValueError, match="'run_values' has 2 elements, and there are 3 runs"):
        wp.utils.runlength_encode(wp.array([1, 2, 3], dtype=int), wp.zeros(2, dtype=int), wp.zeros(3, dtype=int))
    values, lengths = wp.full(3, 7, dtype=int), wp.full(2, 8, dtype=int)
    with pytest.raises(ValueError, match="'run_lengths' has 2 elements, and there are 3 runs"):
        wp.utils.runlength_encode(wp.array([1, 2, 3], dtype=int), values, lengths)
    assert values.list() == [7] * 3 and lengths.list() == [8] * 2  # nothing is written
    assert wp.utils.runlength_encode(wp.array([1, 1, 3], dtype=int), values, lengths) == 2
    assert values.list() == [1, 3, 7] and lengths.list() == [2, 1]
    runs = wp.zeros(3, dtype=int)
    with pytest.raises(ValueError, match="'run_values' and 'run_lengths' share memory"):
        wp.utils.runlength_encode(wp.array([1, 2, 3], dtype=int), runs, runs)


# ---- conversion ----


@pytest.mark.parametrize("name", ["int32", "float64", "bool", "uint8", "float16"])
def test_cast_converts_numbers(name):
    data = np.array([0.0, 1.75, 100.5, 3.0], dtype=np.float32)
    out = wp.zeros(4, dtype=getattr(wp, name))
    wp.utils.array_cast(wp.array(data), out)
    np.testing.assert_array_equal(out.numpy(), data.astype(name))


def test_cast_of_vectors_views_and_counts():
    data = random.standard_normal((6, 3))
    a = wp.array(data, dtype=wp.vec3d)
    out = wp.zeros(6, dtype=wp.vec3)
    wp.utils.array_cast(a, out)
    np.testing.assert_array_equal(out.numpy(), data.astype(np.float32))
    table = wp.zeros((6, 3), dtype=wp.float32)
    wp.utils.array_cast(a[::-1], table)
    np.testing.assert_array_equal(table.numpy(), data[::-1].astype(np.float32))
    strided = wp.zeros(12, dtype=wp.vec3)
    wp.utils.array_cast(a, strided[::2])
    np.testing.assert_array_equal(strided.numpy()[::2], data.astype(np.float32))
    few = wp.zeros(5, dtype=int)
    wp.utils.array_cast(wp.array([1.5, 2.5, 3.5]), few, count=2)
    assert few.list() == [1, 2, 0, 0, 0]
    with pytest.raises(
        ValueError, match=r"'in_array' of vec3d \(6,\) has 18 numbers, 'out_array' of float32 \(6,\) has 6"
    ):
        wp.utils.array_cast(a, wp.zeros(6))


# ---- devices ----


def two_on_one_device():
    """Calls whose arrays are all on the right device, with the name of the array that each of them begins with."""
    line, keys, ends = (
        [wp.zeros(4) for _ in range(2)],
        [wp.zeros(4, dtype=int) for _ in range(2)],
        wp.zeros(2, dtype=int),
    )
    one, table = wp.zeros(1), wp.zeros((2, 3))
    runs = {"values": keys[0], "run_values": keys[1], "run_lengths": wp.zeros(4, dtype=int), "run_count": ends[:1]}
    return [
        (wp.utils.array_sum, "values", {"values": line[0], "out": one}, {}),
        (wp.utils.array_sum, "values", {"values": table, "out": wp.zeros((1, 3))}, {"axis": 0}),
        (wp.utils.array_inner, "a", {"a": line[0], "b": line[1], "out": one}, {}),
        (wp.utils.array_scan, "in_array", {"in_array": line[0], "out_array": line[1]}, {}),
        (wp.utils.array_cast, "in_array", {"in_array": line[0], "out_array": keys[1]}, {}),
        (wp.utils.radix_sort_pairs, "keys", {"keys": keys[0], "values": line[0]}, {"count": 4}),
        (wp.utils.radix_sort_pairs, "keys", {"keys": keys[0], "values": line[0]}, {"count": 4, "end_bit": 8}),
        (
            wp.utils.segmented_sort_pairs,
            "keys",
            {
                "keys": keys[0],
                "values": keys[1],
                "segment_start_indices": wp.zeros(2, dtype=int),
                "segment_end_indices": ends,
            },
            {"count": 4},
        ),
        (wp.utils.runlength_encode, "values", runs, {}),
    ]


@pytest.mark.parametrize(
    "other", [protected_device.NAME, *(pytest.param(name, marks=pytest.mark.gpu) for name in ("cuda:0", "cuda:1"))]
)
def test_arrays_on_two_devices_are_refused_before_anything_runs(other, request):
    if other == protected_device.NAME:
        protected_device.add()
    if other == "cuda:1":
        request.getfixturevalue("two_gpus")
    homes = ["cuda:0" if other == "cuda:1" else "cpu", other]
    for home, away in (homes, homes[::-1]):
        with wp.ScopedDevice(home):
            calls = two_on_one_device()
        for function, first, arrays, others in calls:
            function(**arrays, **others)
            for name in [name for name in arrays if name != first]:
                moved = {**arrays, name: arrays[name].to(away)}
                said = re.escape(f"{function.__name__}(): '{name}' is on '{away}', and '{first}' is on '{home}'")
                with pytest.raises(RuntimeError, match=said):
                    function(**moved, **others)


# ---- large ----


@pytest.mark.large
def test_an_array_of_more_than_two_to_the_31_elements():
    n = 2**31 + 16
    a = wp.empty(n, dtype=wp.int8)
    a.fill_(1)
    assert a.size == n and a[n - 1] == 1 and a.strides == (1,)
    a[-8:] = 3
    tail = a[2**31 - 4 :]
    assert tail.shape == (20,) and tail.list() == [1] * 12 + [3] * 8
    assert wp.utils.array_sum(a) == n + 16
    assert wp.utils.array_sum(a[::2]) == n // 2 + 8
    b = wp.zeros(20, dtype=wp.int8)
    wp.copy(b, a, src_offset=n - 20, count=20)
    assert b.list() == tail.list()
    a += 1
    assert a[0] == 2 and a[2**31 + 2] == 2 and a[-1] == 4
    found, lengths = wp.zeros(2, dtype=wp.int8), wp.zeros(2, dtype=int)
    with pytest.raises(ValueError, match=f"the run that begins at 0 has {n - 8} elements, which does not fit"):
        wp.utils.runlength_encode(a, found, lengths)
    rows = a.reshape((2, n // 2))
    assert wp.utils.array_sum(rows, axis=1).dtype is wp.int8 and rows[1, -1] == 4
    wp.utils.array_scan(a, a)
    assert a[2**31 - 1] == np.int8(2**32 % 256)

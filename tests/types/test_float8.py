"""float8_e4m3fn and float8_e5m2, beside the dtypes of these names in the package ml_dtypes."""

import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import warp as wp

NAMES = ["float8_e4m3fn", "float8_e5m2"]
ALL_BITS = np.arange(256, dtype=np.uint8)

needs_ml_dtypes = pytest.mark.needs("ml_dtypes")
of_both = pytest.mark.parametrize("dtype", [wp.float8_e4m3fn, wp.float8_e5m2], ids=NAMES)


def peer_of(dtype):
    return getattr(pytest.importorskip("ml_dtypes"), dtype.__name__)


def bits(array):
    return array.view(wp.uint8).numpy()


def same_numbers(found, expected, peer):
    """Equal bits, but for those of NaNs."""
    found, expected = np.asarray(found, np.uint8), np.asarray(expected).view(np.uint8)
    is_nan = np.isnan(expected.view(peer).astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.view(peer).astype(np.float32)), is_nan)
    np.testing.assert_array_equal(found[~is_nan], expected[~is_nan])


def converter(source, target):
    @wp.kernel(module="unique")
    def convert(x: wp.array[source], y: wp.array[target]):
        i = wp.tid()
        y[i] = target(x[i])

    return convert


def converted(x, target, lanes=None):
    """By a kernel, which is vectorised unless `lanes` is 1."""
    y = wp.zeros(x.shape, dtype=target)
    kernel = converter(x.dtype, target)
    if lanes:
        kernel.module.options["lanes"] = lanes
    wp.launch(kernel, dim=x.size, inputs=[x, y])
    return y


# ---- conversions ----


@needs_ml_dtypes
@of_both
def test_all_256_numbers_are_read_as_ml_dtypes_reads_them(dtype):
    expected = ALL_BITS.view(peer_of(dtype)).astype(np.float32)
    x = wp.array(ALL_BITS, dtype=dtype)
    for found in (
        np.array(x.list()),
        x.astype(wp.float32).numpy(),
        converted(x, wp.float32).numpy(),
        converted(x, wp.float32, lanes=1).numpy(),
        converted(x, wp.float64).numpy(),
        np.array([float(dtype(number)) for number in expected]),
    ):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found)[expected == 0], np.signbit(expected)[expected == 0])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(converted(x, wp.float16).numpy(), expected.astype(np.float16))


@needs_ml_dtypes
@of_both
@pytest.mark.parametrize("source", [wp.float16, wp.float32, wp.float64])
def test_all_256_numbers_are_written_back(dtype, source):
    peer = peer_of(dtype)
    numbers = ALL_BITS.view(peer).astype(wp.dtype_to_numpy(source))
    x = wp.array(numbers, dtype=source)
    for y in (converted(x, dtype), converted(x, dtype, lanes=1), wp.array(numbers, dtype=dtype), x.astype(dtype)):
        same_numbers(bits(y), ALL_BITS, peer)


def near_halfway(peer):
    """As float32: between every two neighbours the middle and the numbers next to it, on both sides of zero; those
    beyond the greatest one; numbers smaller than any."""
    numbers = np.unique(ALL_BITS.view(peer).astype(np.float32))
    numbers = numbers[np.isfinite(numbers)]
    step = numbers[-1] - numbers[-2]
    middles = np.concatenate([(numbers[1:] + numbers[:-1]) / 2, [numbers[-1] + step / 2, numbers[0] - step / 2]])
    middles = middles.astype(np.float32)
    beside = [np.nextafter(middles, np.float32(sign * np.inf)) for sign in (1, -1)]
    extreme = [np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, -1e-45, 1e-30, 0.0, -0.0, 65504.0, 65536.0]
    return np.concatenate([middles, *beside, numbers + step, numbers - step, np.array(extreme, np.float32)])


@needs_ml_dtypes
@of_both
def test_float32_is_rounded_as_ml_dtypes_rounds_it(dtype):
    peer = peer_of(dtype)
    random = np.random.default_rng(5).integers(0, 2**32, 40000, dtype=np.uint32).view(np.float32)
    numbers = np.concatenate([near_halfway(peer), random, np.linspace(-500, 500, 40001, dtype=np.float32)])
    with np.errstate(all="ignore"):
        expected = numbers.astype(peer)
    x = wp.array(numbers)
    for y in (converted(x, dtype), converted(x, dtype, lanes=1), wp.array(numbers, dtype=dtype), x.astype(dtype)):
        same_numbers(bits(y), expected, peer)


@needs_ml_dtypes
@of_both
def test_all_of_float16_is_rounded_as_ml_dtypes_rounds_it(dtype):
    peer = peer_of(dtype)
    numbers = np.arange(65536, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        expected = numbers.astype(peer)
    for y in (converted(wp.array(numbers), dtype), wp.array(numbers, dtype=dtype)):
        same_numbers(bits(y), expected, peer)


@needs_ml_dtypes
@of_both
def test_float64_and_integers_are_rounded_once(dtype):
    """Beside a search for the nearest number, of two the one whose last bit is 0."""
    peer = peer_of(dtype)
    numbers = ALL_BITS.view(peer).astype(np.float64)
    finite = np.array([b for b in ALL_BITS if np.isfinite(numbers[b]) and b != 128])

    def nearest(value):
        apart = np.abs(numbers[finite] - value)
        closest = finite[apart == apart.min()]
        return min(closest, key=lambda b: b % 2)

    middles = near_halfway(peer).astype(np.float64)
    middles = middles[np.isfinite(middles) & (np.abs(middles) < np.abs(numbers[finite]).max())]
    # So little beside the middle that a float32 does not show it.
    values = np.concatenate([middles, middles * (1 + 1e-12), middles * (1 - 1e-12)])
    expected = np.array([nearest(value) for value in values], np.uint8)
    for y in (converted(wp.array(values, dtype=wp.float64), dtype), wp.array(values, dtype=dtype)):
        np.testing.assert_array_equal(bits(y) & 127, expected & 127)
    integers = np.arange(-400, 401, dtype=np.int32)
    expected = np.array([nearest(value) for value in integers], np.uint8)
    for y in (converted(wp.array(integers), dtype), wp.array(integers, dtype=dtype)):
        np.testing.assert_array_equal(bits(y), expected)


def test_beyond_the_greatest_number():
    fn, e5m2 = wp.float8_e4m3fn, wp.float8_e5m2
    assert [float(fn(x)) for x in (448.0, 464.0, -448.0)] == [448.0, 448.0, -448.0]
    assert all(math.isnan(float(fn(x))) for x in (464.1, -1e30, math.inf, -math.inf, math.nan))
    assert [float(e5m2(x)) for x in (57344.0, 61439.0, 61440.0, -1e30)] == [57344.0, 57344.0, math.inf, -math.inf]
    assert float(e5m2(math.inf)) == math.inf and math.isnan(float(e5m2(math.nan)))


@of_both
def test_integers_of_numbers_that_are_too_large_or_none(dtype):
    x = wp.array([1.75, -2.5, 300.0, math.nan], dtype=dtype)
    assert converted(x, wp.int32).list() == [1, -2, int(x.list()[2]), 0]
    assert converted(x, wp.uint8).list() == [1, 0, 255, 0]
    assert converted(x, wp.bool).list() == [True] * 4


# ---- arithmetic: each operation in float32, rounded once ----


@needs_ml_dtypes
@of_both
def test_arithmetic_of_all_pairs_is_that_of_float32_rounded_once(dtype):
    peer = peer_of(dtype)

    @wp.kernel(module="unique")
    def compute(x: wp.array[dtype], y: wp.array[dtype], out: wp.array2d[dtype]):
        i = wp.tid()
        out[0, i] = x[i] + y[i]
        out[1, i] = x[i] - y[i]
        out[2, i] = x[i] * y[i]
        out[3, i] = x[i] / y[i]
        out[4, i] = wp.min(x[i], y[i])
        out[5, i] = -x[i]
        out[6, i] = wp.sqrt(wp.abs(x[i]))

    a, b = (part.ravel() for part in np.meshgrid(ALL_BITS, ALL_BITS))
    out = wp.zeros((7, a.size), dtype=dtype)
    wp.launch(compute, dim=a.size, inputs=[wp.array(a, dtype=dtype), wp.array(b, dtype=dtype), out])
    x, y = a.view(peer).astype(np.float32), b.view(peer).astype(np.float32)
    with np.errstate(all="ignore"):
        for found, number in zip(bits(out), [x + y, x - y, x * y, x / y, None, -x, np.sqrt(np.abs(x))], strict=True):
            if number is not None:
                same_numbers(found, number.astype(peer), peer)
        smaller = bits(out)[4].view(peer).astype(np.float32)
    np.testing.assert_array_equal(smaller, np.fmin(x, y))


@of_both
def test_comparisons_and_classes(dtype):
    @wp.kernel(module="unique")
    def compare(x: wp.array[dtype], out: wp.array2d[int]):
        i = wp.tid()
        out[0, i] = wp.where(x[i] < x[i + 1], 1, 0)
        out[1, i] = wp.where(x[i] == x[i + 1], 1, 0)
        out[2, i] = wp.where(wp.isnan(x[i]), 1, 0)
        out[3, i] = wp.where(wp.isinf(x[i]), 1, 0)
        out[4, i] = wp.where(wp.isfinite(x[i]), 1, 0)

    x = wp.array([1.0, 1.25, 1.25, math.nan, math.inf, 0.0], dtype=dtype)
    out = wp.zeros((5, 5), dtype=int)
    wp.launch(compare, dim=5, inputs=[x, out])
    has_infinity = dtype is wp.float8_e5m2
    assert out.list()[:10] == [1, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert out.numpy()[2:].tolist() == [
        [0, 0, 0, 1, int(not has_infinity)],
        [0, 0, 0, 0, int(has_infinity)],
        [1, 1, 1, 0, 0],
    ]


@of_both
def test_atomics_vectors_and_structs(dtype):
    vec3 = wp.types.vector(3, dtype)

    @wp.struct
    class Pair:
        number: dtype
        vector: vec3

    @wp.kernel(module="unique")
    def gather(pairs: wp.array[Pair], total: wp.array[dtype], sums: wp.array[vec3], last: wp.array[dtype]):
        i = wp.tid()
        pair = pairs[i]
        wp.atomic_add(total, 0, pair.number)
        wp.atomic_max(last, 0, pair.number)
        sums[0] += pair.vector
        pairs[i].number = pair.number * dtype(2.0)

    pairs = wp.zeros(6, dtype=Pair)
    pairs.assign(np.array([(1.0, (0.5, 1.0, -2.0))] * 6, dtype=[("number", "f4"), ("vector", "f4", 3)]))
    total, sums, last = wp.zeros(1, dtype=dtype), wp.zeros(1, dtype=vec3), wp.zeros(1, dtype=dtype)
    wp.launch(gather, dim=6, inputs=[pairs, total, sums, last])
    assert total.list() == [6.0] and list(sums.list()[0]) == [3.0, 6.0, -12.0] and last.list() == [1.0]
    assert [pair.number for pair in pairs.list()] == [2.0] * 6
    assert pairs.numpy()["number"].dtype == np.uint8, "the bits, as for bfloat16"


@of_both
def test_literals_adapt_and_values_of_other_types_do_not(dtype):
    @wp.kernel(module="unique")
    def scale(x: wp.array[dtype]):
        i = wp.tid()
        x[i] = x[i] * 1.5

    x = wp.array([2.0], dtype=dtype)
    wp.launch(scale, dim=1, inputs=[x])
    assert x.list() == [3.0]

    @wp.kernel(module="unique")
    def mix(x: wp.array[dtype], y: float):
        x[0] = x[0] * y

    with pytest.raises(TypeError, match=f"{dtype.__name__}.*float32"):
        wp.launch(mix, dim=1, inputs=[x, 2.0])


# ---- gradients ----


@of_both
def test_gradients_go_through_casts_in_both_directions(dtype):
    @wp.kernel(module="unique")
    def through(x: wp.array[float], w: wp.array[dtype], y: wp.array[float]):
        i = wp.tid()
        small = dtype(x[i] * 2.0)
        y[i] = wp.float32(small * w[i]) + wp.float32(wp.float64(small)) * 3.0

    x = wp.array([0.5, 1.0, -2.0], dtype=float, requires_grad=True)
    w = wp.array([1.0, 2.0, 0.5], dtype=dtype, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(through, dim=3, inputs=[x, w, y])
    np.testing.assert_array_equal(y.numpy(), [2 * a * b + 6 * a for a, b in zip(x.list(), w.list(), strict=True)])
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    # A cast passes the gradient on, rounded to the type of its side: all of these numbers both types have.
    assert x.grad.list() == [2 * (b + 3.0) for b in w.list()]
    assert w.grad.dtype is dtype and w.grad.list() == [2 * a for a in x.list()]
    dy = wp.zeros(3, dtype=float)
    moves = [wp.ones(3, dtype=float), wp.ones(3, dtype=dtype)]
    wp.jvp(through, 3, [x, w], [y], input_tangents=moves, output_tangents=[dy])
    assert dy.list() == [2 * (b + 3.0) + 2 * a for a, b in zip(x.list(), w.list(), strict=True)]


@of_both
def test_operations_on_whole_arrays_have_gradients(dtype):
    x = wp.array([1.0, 2.0, 3.0], dtype=dtype, requires_grad=True)
    total = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    with wp.Tape() as tape:
        y = x[[0, 0, 2]] * x
        sums = wp.zeros_like(y)
        wp.utils.array_scan(y, sums)
        wp.utils.array_sum(sums.astype(wp.float32), out=total)
    tape.backward(total)
    assert x.grad.list() == [3 * 2 + 2 * 2, 2 * 1, 1 * 6]


# ---- arrays ----


@of_both
def test_whole_arrays_are_summed_sorted_and_multiplied(dtype):
    x = wp.array([3.0, -1.0, 0.5, 3.0, -8.0], dtype=dtype)
    assert wp.utils.array_sum(x) == -2.5
    assert sorted(x.list()) == [-8.0, -1.0, 0.5, 3.0, 3.0]
    keys, values = wp.zeros(10, dtype=dtype), wp.array(range(10), dtype=int)
    keys[:5] = x
    wp.utils.radix_sort_pairs(keys, values, 5)
    assert keys.list()[:5] == [-8.0, -1.0, 0.5, 3.0, 3.0] and values.list()[:5] == [4, 1, 2, 0, 3]
    a, b = (wp.array(np.array(rows), dtype=dtype) for rows in ([[0.5, 1.0], [2.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]))
    assert (a @ b).list() == [3.5, 5.0, 2.0, 4.0]


@of_both
@pytest.mark.host_memory("shares the memory of NumPy arrays")
def test_uint8_are_bits(dtype):
    one = {"float8_e4m3fn": 0x38, "float8_e5m2": 0x3C}[dtype.__name__]
    data = np.array([0, one, one | 128], np.uint8)
    x = wp.array(data, dtype=dtype)
    assert x.list() == [0.0, 1.0, -1.0] and bits(x).tolist() == data.tolist()
    x.assign(np.array([one] * 3, np.uint8))
    assert x.list() == [1.0] * 3
    shared = wp.array(data, dtype=dtype, copy=False)
    shared.fill_(1.0)
    assert data.tolist() == [one] * 3
    assert wp.dtype_to_numpy(dtype) is np.uint8 and wp.types.type_size_in_bytes(dtype) == 1


@needs_ml_dtypes
@of_both
@pytest.mark.host_memory("shares the memory of NumPy arrays")
def test_numpy_has_the_dtype_of_ml_dtypes(dtype):
    peer = peer_of(dtype)
    x = wp.array([1.0, 2.5, -3.0], dtype=dtype)
    view = x.numpy()
    assert view.dtype == peer and view.astype(float).tolist() == [1.0, 2.5, -3.0]
    view[1] = 7.0
    assert x.list() == [1.0, 7.0, -3.0]
    data = np.array([0.5, 1.0, 2.0]).astype(peer)
    assert wp.array(data).dtype is dtype and wp.array(data).list() == [0.5, 1.0, 2.0]
    assert wp.array(data, dtype=float).list() == [0.5, 1.0, 2.0] and wp.dtype_from_numpy(peer) is dtype
    other = wp.float8_e5m2 if dtype is wp.float8_e4m3fn else wp.float8_e4m3fn
    assert wp.array(data, dtype=other).list() == [0.5, 1.0, 2.0], "other numbers are rounded, not read as bits"
    shared = wp.array(data, copy=False)
    shared.zero_()
    assert data.astype(float).tolist() == [0.0, 0.0, 0.0]
    chosen = wp.array([1.0, 2.0, 4.0], dtype=dtype)[[2, 0]].contiguous()
    assert chosen.dtype is dtype and chosen.list() == [4.0, 1.0]


def test_without_ml_dtypes_numpy_shows_the_bits_and_says_so_once_for_each_type():
    program = """
        import sys
        sys.modules["ml_dtypes"] = None
        import numpy as np
        import warp as wp

        for dtype, bits in ((wp.float8_e4m3fn, [0x38, 0x42, 0xC4]), (wp.float8_e5m2, [0x3C, 0x41, 0xC2])):
            a = wp.array([1.0, 2.5, -3.0], dtype=dtype)
            assert a.numpy().dtype == np.uint8 and a.numpy().tolist() == bits
            b = wp.zeros(3)
            b.assign(a)
            assert b.list() == [1.0, 2.5, -3.0]
            a[1:] = [3.0, 4.0]
            assert a.list() == [1.0, 3.0, 4.0]
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        assert done.stderr.count(f"NumPy has no {name}") == 1
    assert "uint8" in done.stderr and "ml_dtypes" in done.stderr


def test_an_error_names_the_type():
    with pytest.raises(TypeError, match=r"array\[float8_e5m2\]"):
        wp.launch(converter(wp.float8_e5m2, wp.float32), dim=1, inputs=[wp.zeros(1), wp.zeros(1)])
    assert repr(wp.float8_e5m2(1.5)) == "float8_e5m2(1.5)"
    assert wp.types.type_name(wp.types.vector(3, wp.float8_e4m3fn)) == "vector(length=3, dtype=float8_e4m3fn)"

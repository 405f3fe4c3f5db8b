"""Sorts of pairs on a CUDA device, beside NumPy's stable order and the CPU's bits: tiles, digits, bits, segments of
every size, streams, graphs."""

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"
TILE, OF_WARP, OF_BLOCK = 4096, 256, 2048  # devlib/cuda/radix_sort.h, sort_segments.h

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
# Patterns of keys: digits that all share, runs of equal keys, orders.
PATTERNS = {
    "random": lambda rng, n: rng.integers(-(2**62), 2**62, n),
    "equal": lambda rng, n: np.full(n, -3),
    "two": lambda rng, n: rng.integers(0, 2, n) * 1000 - 500,
    "low digit": lambda rng, n: rng.integers(0, 100, n),
    "one high digit": lambda rng, n: rng.integers(0, 3, n) << 24,
    "first and third digit": lambda rng, n: rng.integers(0, 4, n) | rng.integers(0, 4, n) << 16,
    "sorted": lambda rng, n: np.arange(n),
    "reverse": lambda rng, n: np.arange(n)[::-1],
}


def bits(array):
    return wp.array(array, device="cpu").numpy().tobytes()


def keys_of(name, pattern, n, seed=0):
    numbers = PATTERNS[pattern](np.random.default_rng(seed), n)
    return numbers.astype(name) if name in INTEGERS else (numbers % 60000).astype(name)


def order_of(keys, segments=None):
    """The stable order: NumPy's, with -0 equal to 0 and NaNs last; numbers outside of segments stay."""
    order = np.arange(len(keys))
    for begin, end in [(0, len(keys))] if segments is None else segments:
        order[begin:end] = begin + np.argsort(keys[begin:end], kind="stable")
    return order


def check_sort(keys, values, **arguments):
    """Values are positions, so that they show the order."""
    n = len(keys)
    there, moved = wp.array(keys, device=DEVICE), wp.array(np.arange(n), dtype=values, device=DEVICE)
    wp.utils.radix_sort_pairs(there, moved, n, **arguments)
    return there.numpy(), moved.numpy()


def check_order(keys, values=wp.int32):
    found, moved = check_sort(keys, values)
    order = order_of(keys)
    assert found.tobytes() == keys[order].tobytes()
    np.testing.assert_array_equal(moved, order.astype(moved.dtype))


# ---- pairs ----


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, TILE - 1, TILE, TILE + 1, 2 * TILE, 5 * TILE + 7])
@pytest.mark.parametrize("name", ["uint8", "int32", "float64"])
def test_lengths_around_tiles(name, n):
    check_order(keys_of(name, "random", n))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", INTEGERS + FLOATS)
def test_patterns_in_keys_of_every_type(name, pattern):
    for values in (wp.int32, wp.int64):
        check_order(keys_of(name, pattern, TILE + 300), values)


@pytest.mark.parametrize("values", [wp.uint8, wp.float16, wp.vec2, wp.vec3, wp.vec3d, wp.mat33])
@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "float64"])
def test_values_of_every_size(name, values):
    keys = keys_of(name, "random", TILE + 50)
    shape = (len(keys), *getattr(values, "_shape_", ()))
    data = (
        np.random.default_rng(1)
        .integers(0, 200, shape)
        .astype(wp.dtype_to_numpy(getattr(values, "_wp_scalar_type_", values)))
    )
    there, moved = wp.array(keys, device=DEVICE), wp.array(data, dtype=values, device=DEVICE)
    wp.utils.radix_sort_pairs(there, moved, len(keys))
    order = order_of(keys)
    assert there.numpy().tobytes() == keys[order].tobytes() and moved.numpy().tobytes() == data[order].tobytes()


def test_values_at_addresses_that_are_no_multiple_of_their_size():
    keys = keys_of("int32", "random", 500)
    data = np.arange(1002, dtype=np.float32)
    whole = wp.array(data, device=DEVICE)
    pairs = wp.array(ptr=whole.ptr + 4, shape=500, dtype=wp.vec2, device=DEVICE)
    wp.utils.radix_sort_pairs(wp.array(keys, device=DEVICE), pairs, 500)
    np.testing.assert_array_equal(pairs.numpy(), data[1:1001].reshape(500, 2)[order_of(keys)])
    assert whole.numpy()[0] == 0 and whole.numpy()[1001] == 1001


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"])
def test_zeros_nans_and_infinities_have_the_bits_of_the_cpu(name):
    dtype = getattr(wp, name)
    size = wp.types.type_size_in_bytes(dtype)
    rng = np.random.default_rng(2)
    raw = (
        rng.integers(0, 2 ** (8 * size), 6000, dtype=f"uint{8 * size}", endpoint=False)
        if size < 8
        else rng.integers(0, 2**63, 6000).astype(np.uint64)
    )
    sign = np.array(1 << (8 * size - 1), dtype=raw.dtype)
    raw[::5] = sign  # -0
    raw[1::5] = 0
    if name in FLOATS:
        infinity = np.array([np.inf], dtype=name).view(raw.dtype)[0]
        raw[2::20] = infinity
        raw[7::20] = infinity | sign
        raw[12::20] = infinity | 1  # NaNs of both signs with payloads
        raw[17::20] = infinity | sign | raw.dtype.type(3)
    results = []
    for device in ("cpu", DEVICE):
        keys = wp.array(raw, device=device).view(dtype)
        order = wp.array(np.arange(6000, dtype=np.int32), device=device)
        wp.utils.radix_sort_pairs(keys, order, 6000)
        results.append((bits(keys.view(getattr(wp, f"uint{8 * size}"))), order.numpy()))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
    if name in FLOATS:
        np.testing.assert_array_equal(results[1][1], order_of(raw.view(name)))


@pytest.mark.parametrize("begin, end", [(0, 4), (3, 12), (8, 16), (0, 9), (5, 6), (15, 16), (0, 15)])
@pytest.mark.parametrize("name", ["int16", "uint16", "float16", "int64", "uint64", "float64"])
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_some_bits_decide(device, name, begin, end):
    size = np.dtype(name).itemsize
    if size == 8:
        begin, end = 4 * begin, 4 * end
    raw = np.random.default_rng(3).integers(0, 2**63, 5000).astype(np.uint64) * np.uint64(3)
    keys = raw.view(name)[:5000] if size == 8 else (raw >> np.uint64(40)).astype(f"uint{8 * size}").view(name)
    codes = keys.view(f"uint{8 * size}").astype(object)
    sign, every = 1 << (8 * size - 1), (1 << (8 * size)) - 1
    if name.startswith("int"):
        codes = codes ^ sign
    elif name.startswith("float"):
        codes = np.array([code ^ every if code & sign else code | sign for code in codes], dtype=object)
    digits = ((codes >> begin) & ((1 << (end - begin)) - 1)).astype(np.uint64)
    there, order = wp.array(keys, device=device), wp.array(np.arange(5000, dtype=np.int32), device=device)
    wp.utils.radix_sort_pairs(there, order, 5000, begin, end)
    expected = np.argsort(digits, kind="stable")
    np.testing.assert_array_equal(order.numpy(), expected)
    assert bits(there) == keys[expected].tobytes()


def test_a_part_of_arrays_with_gaps():
    keys = keys_of("int32", "two", 3 * TILE)
    there = wp.array(np.stack([keys, keys], axis=1), device=DEVICE)
    moved = wp.array(np.arange(len(keys)), dtype=wp.int32, device=DEVICE)[::-1]
    wp.utils.radix_sort_pairs(there[:, 1], moved, 2 * TILE + 1)
    order = order_of(keys[: 2 * TILE + 1])
    found = there.numpy()
    np.testing.assert_array_equal(found[:, 0], keys)
    np.testing.assert_array_equal(found[: 2 * TILE + 1, 1], keys[order])
    np.testing.assert_array_equal(found[2 * TILE + 1 :, 1], keys[2 * TILE + 1 :])
    np.testing.assert_array_equal(moved.numpy()[: 2 * TILE + 1], np.arange(len(keys))[::-1][order])


# ---- segments ----

SEGMENTS = {
    "short": [0, 1, 2, 3, 31, 32, 33, 64, 255, 256],
    "middle": [257, 300, 1000, 2047, 2048],
    "large": [2049, 4095, 4096, 4097, 9000],
    "one": [3 * TILE + 5],
    "mixed": [0, 5000, 0, 1, 300, 40, 2049, 256, 257, 12, 4096, 2, 2048, 0],
    "empty": [0, 0, 0],
    "many short": [3, 0, 7, 1, 20] * 200,
}


@pytest.mark.parametrize("values", [wp.int32, wp.float64, wp.vec3, wp.uint8])
@pytest.mark.parametrize("name", ["int8", "uint16", "float32", "uint64"])
@pytest.mark.parametrize("sizes", SEGMENTS)
@pytest.mark.parametrize("is_captured", [False, True])
def test_segments_of_every_size(sizes, name, values, is_captured):
    rng = np.random.default_rng(4)
    sizes = SEGMENTS[sizes]
    gaps = rng.integers(0, 4, len(sizes))
    ends = np.cumsum(sizes + gaps).astype(np.int32)
    begins = (ends - sizes).astype(np.int32)
    shuffled = rng.permutation(len(sizes))
    n = int(ends[-1]) + 3
    keys = rng.integers(-30, 30, n).astype(name)
    if name == "float32":
        keys[::9], keys[4::9], keys[7::9] = np.nan, -0.0, 0.0
    shape = (n, 3) if values is wp.vec3 else n
    data = (
        np.arange(np.prod(shape)).reshape(shape).astype(np.float32 if values is wp.vec3 else wp.dtype_to_numpy(values))
    )
    there, moved = wp.array(keys, device=DEVICE), wp.array(data, dtype=values, device=DEVICE)
    bounds = [wp.array(x[shuffled], device=DEVICE) for x in (begins, ends)]

    def sort():
        wp.utils.segmented_sort_pairs(there, moved, n, *bounds)

    if is_captured:
        with wp.ScopedCapture(device=DEVICE) as capture:
            sort()
        wp.capture_launch(capture.graph)
    else:
        sort()
    order = order_of(keys, zip(begins, ends, strict=True))
    assert there.numpy().tobytes() == keys[order].tobytes() and moved.numpy().tobytes() == data[order].tobytes()


def test_segments_that_overlap_do_no_harm():
    keys = wp.array(np.arange(6000, dtype=np.int32)[::-1].copy(), device=DEVICE)
    order = wp.array(np.arange(6000, dtype=np.int32), device=DEVICE)
    begins, ends = wp.zeros(50, dtype=int, device=DEVICE), wp.full(50, 6000, dtype=int, device=DEVICE)
    wp.utils.segmented_sort_pairs(keys, order, 6000, begins, ends)
    np.testing.assert_array_equal(order.numpy(), np.arange(6000)[::-1])  # one of them was sorted


def test_segments_that_overlap_more_often_than_32_bits_count_do_no_harm():
    keys = wp.zeros(1 << 19, dtype=int, device=DEVICE)
    order = wp.array(np.arange(1 << 19, dtype=np.int32), device=DEVICE)
    begins, ends = wp.zeros(66000, dtype=int, device=DEVICE), wp.full(66000, 1 << 18, dtype=int, device=DEVICE)
    wp.utils.segmented_sort_pairs(keys, order, 1 << 18, begins, ends)  # the emulated device checks each access
    assert order.numpy()[:3].tolist() == [0, 1, 2]


# ---- streams and graphs ----


def test_two_streams_sort_at_once():
    streams = [wp.Stream(DEVICE) for _ in range(2)]
    sorts = []
    wp.synchronize()
    for round in range(4):
        for number, stream in enumerate(streams):
            keys = keys_of(["float32", "int64"][number], "random", 2 * TILE + 9, seed=round)
            with wp.ScopedStream(stream):
                there, moved = (
                    wp.array(keys, device=DEVICE),
                    wp.array(np.arange(len(keys)), dtype=wp.int32, device=DEVICE),
                )
                wp.utils.radix_sort_pairs(there, moved, len(keys))
            sorts.append((keys, there, moved))
    wp.synchronize()
    for keys, there, moved in sorts:
        order = order_of(keys)
        assert there.numpy().tobytes() == keys[order].tobytes()
        np.testing.assert_array_equal(moved.numpy(), order)


@pytest.mark.parametrize("arguments", [{}, {"begin_bit": 4, "end_bit": 20}], ids=["all bits", "some bits"])
def test_a_graph_sorts_the_numbers_that_it_finds(arguments):
    n = TILE + 100
    there, moved = wp.zeros(n, dtype=wp.uint32, device=DEVICE), wp.zeros(n, dtype=wp.vec3, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.utils.radix_sort_pairs(there, moved, n, **arguments)
    for pattern in ("random", "equal", "one high digit", "reverse"):  # other passes are left out each time
        keys = keys_of("uint32", pattern, n)
        data = np.random.default_rng(5).standard_normal((n, 3)).astype(np.float32)
        there.assign(keys)
        moved.assign(data)
        wp.capture_launch(capture.graph)
        digits = (keys >> 4) & 0xFFFF if arguments else keys
        order = np.argsort(digits, kind="stable")
        np.testing.assert_array_equal(there.numpy(), keys[order])
        np.testing.assert_array_equal(moved.numpy(), data[order])

"""Contributions that the threads of a block combine before they reach memory (codegen/cuda/privatised.cpp): at one
address in registers, in a small array in shared memory. Each counts once, for any grid and block."""

import re

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"


def text_of(kernel, **options):
    return re.sub(r"//.*", "", kernel.listing("assembly", device=DEVICE, **options))


def atomics(text, space):
    return re.findall(rf"\b(?:atom|red)\S*\.{space}\.\S+", text)


def resident():
    """The threads that the device holds at once."""
    return 2048 * wp.get_device(DEVICE).sm_count


def to_device(values, dtype=None, **options):
    return wp.array(values, dtype=dtype, device=DEVICE, **options)


# ---- one address ----


@wp.kernel
def sum_of_all(x: wp.array[float], total: wp.array[float]):
    wp.atomic_add(total, 0, x[wp.tid()])


@wp.kernel
def every_kind(
    x: wp.array[int],
    f: wp.array[float],
    d: wp.array[wp.float64],
    i64: wp.array[wp.int64],
    v: wp.array[wp.vec3],
    least: wp.array[float],
    greatest: wp.array[wp.uint32],
    bits: wp.array[wp.int32],
):
    i = wp.tid()
    n = x[i]
    wp.atomic_add(f, 1, 0.5)
    wp.atomic_sub(d, 0, wp.float64(n))
    wp.atomic_add(i64, 0, wp.int64(n) << wp.int64(30))
    wp.atomic_min(least, 0, float(n) - 7.0)
    wp.atomic_max(greatest, 0, wp.uint32(n))
    wp.atomic_xor(bits, 0, n)


@pytest.mark.parametrize("block_dim", [1, 7, 32, 40, 96, 256, 512, 1024])
@pytest.mark.parametrize("threads", [1, 31, 33, 1000, 70_001])
def test_contributions_to_one_address_count_once(threads, block_dim):
    if threads > 10_000 and block_dim < 32:
        threads = 3001  # the emulated device takes long for blocks of few threads
    numbers = (np.arange(threads) * 7919 % 1009).astype(np.int32)
    f, d, i64, v = (wp.zeros(2, dtype=t, device=DEVICE) for t in (float, wp.float64, wp.int64, wp.vec3))
    least = wp.full(1, 1e9, dtype=float, device=DEVICE)
    greatest, bits = wp.zeros(1, dtype=wp.uint32, device=DEVICE), wp.zeros(1, dtype=wp.int32, device=DEVICE)
    arrays = [to_device(numbers), f, d, i64, v, least, greatest, bits]
    wp.launch(every_kind, threads, inputs=arrays, device=DEVICE, block_dim=block_dim)
    assert f.numpy().tolist() == [0, 0.5 * threads]
    assert d.numpy().tolist() == [-numbers.sum(), 0] and i64.numpy().tolist() == [int(numbers.sum()) << 30, 0]
    assert least.numpy()[0] == numbers.min() - 7 and greatest.numpy()[0] == numbers.max()
    assert bits.numpy()[0] == np.bitwise_xor.reduce(numbers)


@pytest.mark.parametrize("more", [-1, 0, 1, 777])
def test_a_thread_adds_several_elements_in_flight(more):
    """Of more elements than the device has threads; the rest after whole rounds is done one by one."""
    count = 4 * resident() + more
    x = (np.arange(count) % 13).astype(np.float32)
    total = wp.zeros(1, dtype=float, device=DEVICE)
    wp.launch(sum_of_all, count, inputs=[to_device(x), total], device=DEVICE)
    np.testing.assert_allclose(total.numpy()[0], x.astype(np.float64).sum(), rtol=1e-5)


def test_a_block_has_one_atomic_for_each_number():
    text = text_of(sum_of_all)
    assert len(atomics(text, "global")) == 1 and text.count("barrier") == 1
    # Four loads of a round come before the first addition.
    rounds = re.search(r"(?:\s*ld\.global\.nc\.b32[^\n]*\n(?:(?!add\.rn|ld\.global)[^\n]*\n)*){4}", text)
    assert rounds


@wp.kernel
def with_coordinates(x: wp.array2d[float], total: wp.array[float]):
    i, j = wp.tid()
    wp.atomic_add(total, 0, x[i, j] * float(1 + i % 3))


@pytest.mark.parametrize("shape", [(3, 5), (257, 129), (2, 70_000)])
def test_sums_over_two_axes(shape):
    x = (np.arange(np.prod(shape)) % 11).astype(np.float32).reshape(shape)
    total = wp.zeros(1, dtype=float, device=DEVICE)
    wp.launch(with_coordinates, shape, inputs=[to_device(x), total], device=DEVICE)
    expected = (x.astype(np.float64) * (1 + np.arange(shape[0]) % 3)[:, None]).sum()
    np.testing.assert_allclose(total.numpy()[0], expected, rtol=1e-5)


@wp.kernel
def vectors_and_returns(x: wp.array[wp.vec3], limit: float, total: wp.array[wp.vec3], count: wp.array[int]):
    i = wp.tid()
    if x[i][0] > limit:
        return
    wp.atomic_add(total, 1, x[i])
    wp.atomic_add(count, 0, 1)


def test_threads_that_return_early_still_come_to_the_sum():
    x = np.random.default_rng(2).integers(0, 50, (5000, 3)).astype(np.float32)
    total, count = wp.zeros(2, dtype=wp.vec3, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    wp.launch(vectors_and_returns, 5000, inputs=[to_device(x, wp.vec3), 20.0, total, count], device=DEVICE)
    kept = x[x[:, 0] <= 20]
    assert total.numpy().tolist() == [[0, 0, 0], kept.sum(axis=0).tolist()] and count.numpy()[0] == len(kept)


@wp.kernel
def sum_of_rows(x: wp.array2d[float], total: wp.array[float], rows: wp.array[float]):
    i = wp.tid()
    of_row = float(0.0)
    for j in range(x.shape[1]):
        of_row += x[i, j]
        wp.atomic_max(total, 0, x[i, j])
    rows[i] = of_row
    wp.atomic_add(total, 0, of_row)


def test_an_array_with_two_kinds_of_atomics_is_left_to_the_memory():
    x = np.ones((64, 3), dtype=np.float32)
    total, rows = wp.zeros(1, dtype=float, device=DEVICE), wp.zeros(64, dtype=float, device=DEVICE)
    wp.launch(sum_of_rows, 64, inputs=[to_device(x), total, rows], device=DEVICE)
    # The order is open: at least the sum of all rows, at most one more.
    assert 192 <= total.numpy()[0] <= 193 and "barrier" not in text_of(sum_of_rows)


@pytest.mark.parametrize("dtype", [wp.int8, wp.uint16, wp.float16])
def test_small_numbers_have_atomics_of_their_own(dtype):
    @wp.kernel(module="unique")
    def counts(x: wp.array[int], total: wp.array[dtype], bins: wp.array[dtype]):
        i = wp.tid()
        wp.atomic_add(total, 0, dtype(1))
        wp.atomic_add(bins, x[i], dtype(1))

    total, bins = wp.zeros(1, dtype=dtype, device=DEVICE), wp.zeros(4, dtype=dtype, device=DEVICE)
    wp.launch(counts, 100, inputs=[to_device(np.arange(100, dtype=np.int32) % 4), total, bins], device=DEVICE)
    assert total.numpy().tolist() == [100] and bins.numpy().tolist() == [25] * 4


def test_extremes_of_nan_and_infinity():
    @wp.kernel(module="unique")
    def extremes(x: wp.array[float], least: wp.array[float], greatest: wp.array[float]):
        i = wp.tid()
        wp.atomic_min(least, 0, x[i])
        wp.atomic_max(greatest, 0, x[i])

    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    x[[3, 700]] = np.nan
    x[500] = -np.inf
    for device in (DEVICE, "cpu"):
        least, greatest = (wp.full(1, n, dtype=float, device=device) for n in (5.0, -5.0))
        wp.launch(extremes, 1000, inputs=[wp.array(x, device=device), least, greatest], device=device)
        assert (least.numpy()[0], greatest.numpy()[0]) == (-np.inf, 1.0), device


# ---- small arrays ----


@wp.kernel
def histogram(x: wp.array[int], counts: wp.array[wp.int32]):
    i = wp.tid()
    wp.atomic_add(counts, x[i], 1)


@wp.kernel
def weighted(x: wp.array[int], w: wp.array[wp.float64], sums: wp.array[wp.float64], most: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_add(sums, x[i], w[i])
    wp.atomic_max(most, x[i], w[i])


@wp.kernel
def points_in_cells(x: wp.array2d[int], v: wp.array[wp.vec3], cells: wp.array2d[wp.vec3]):
    i = wp.tid()
    wp.atomic_sub(cells, x[i, 0], x[i, 1], v[i])


@pytest.mark.parametrize("block_dim", [7, 64, 256, 1024])
@pytest.mark.parametrize("bins", [1, 3, 256, 3000, 5000])
@pytest.mark.parametrize("count", [1, 300, 40_000])
def test_histograms(count, bins, block_dim):
    """Of few threads and of many, in arrays that a block copies and in larger ones."""
    if count > 1000 and block_dim < 64:
        count = 1001
    x = np.random.default_rng(bins).integers(0, bins, count).astype(np.int32)
    counts = to_device(np.arange(bins, dtype=np.int32))
    for _ in range(2):
        wp.launch(histogram, count, inputs=[to_device(x), counts], device=DEVICE, block_dim=block_dim)
    np.testing.assert_array_equal(counts.numpy(), np.arange(bins) + 2 * np.bincount(x, minlength=bins))


@pytest.mark.parametrize("bins", [16, 700])
def test_two_arrays_have_copies_beside_each_other(bins):
    """Of 700 bins, both do not fit."""
    count = 8 * resident() // 10
    rng = np.random.default_rng(5)
    x, w = rng.integers(0, bins, count).astype(np.int32), rng.integers(-50, 50, count).astype(np.float64)
    sums, most = wp.zeros(bins, dtype=wp.float64, device=DEVICE), wp.full(bins, -1e9, dtype=wp.float64, device=DEVICE)
    wp.launch(weighted, count, inputs=[to_device(x), to_device(w), sums, most], device=DEVICE)
    expected = np.full(bins, -1e9)
    np.maximum.at(expected, x, w)
    np.testing.assert_array_equal(sums.numpy(), np.bincount(x, w, bins))
    np.testing.assert_array_equal(most.numpy(), expected)


@pytest.mark.parametrize("rows, columns", [(4, 8), (30, 40)])
def test_vectors_in_arrays_of_two_axes(rows, columns):
    count = 30_000
    rng = np.random.default_rng(7)
    x = np.stack([rng.integers(0, rows, count), rng.integers(-columns, columns, count)], axis=1).astype(np.int32)
    v = rng.integers(0, 9, (count, 3)).astype(np.float32)
    cells = wp.zeros((rows, columns), dtype=wp.vec3, device=DEVICE)
    wp.launch(points_in_cells, count, inputs=[to_device(x), to_device(v, wp.vec3), cells], device=DEVICE)
    expected = np.zeros((rows, columns, 3))
    np.subtract.at(expected, (x[:, 0], x[:, 1]), v)
    np.testing.assert_array_equal(cells.numpy(), expected)


def test_arrays_with_gaps_and_arrays_that_overlap_have_no_copies():
    x = to_device((np.arange(20_000) % 8).astype(np.int32))
    memory = wp.zeros(16, dtype=wp.int32, device=DEVICE)
    wp.launch(histogram, 20_000, inputs=[x, memory[::2]], device=DEVICE)
    assert memory.numpy().tolist() == [2500, 0] * 8

    @wp.kernel(module="unique")
    def both(x: wp.array[int], a: wp.array[wp.int32], b: wp.array[wp.int32]):
        i = wp.tid()
        wp.atomic_add(a, x[i], 1)
        wp.atomic_add(b, x[i], 10)

    counts = wp.zeros(10, dtype=wp.int32, device=DEVICE)
    wp.launch(both, 20_000, inputs=[x, counts[:8], counts[2:]], device=DEVICE)
    assert counts.numpy().tolist() == [2500, 2500, *[27_500] * 6, 25_000, 25_000]


def test_copies_are_in_shared_memory_and_arrays_that_are_read_have_none():
    text = text_of(histogram)
    assert ".extern .shared" in text and len(atomics(text, "shared")) >= 1 and len(atomics(text, "global")) >= 2

    @wp.kernel(module="unique")
    def reads(x: wp.array[int], counts: wp.array[wp.int32], y: wp.array[wp.int32]):
        i = wp.tid()
        y[i] = counts[x[i]]
        wp.atomic_add(counts, x[i], 1)

    @wp.kernel(module="unique")
    def takes_the_old_value(x: wp.array[int], counts: wp.array[wp.int32], y: wp.array[wp.int32]):
        i = wp.tid()
        y[i] = wp.atomic_add(counts, x[i], 1)

    assert ".shared" not in text_of(reads) and ".shared" not in text_of(takes_the_old_value)


def test_a_graph_adds_again_in_each_launch():
    x = to_device((np.arange(10_000) % 32).astype(np.int32))
    counts = wp.zeros(32, dtype=wp.int32, device=DEVICE)
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.launch(histogram, 10_000, inputs=[x, counts], device=DEVICE)
    for _ in range(3):
        wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(counts.numpy(), 3 * np.bincount(np.arange(10_000) % 32))


def test_a_deterministic_launch_adds_in_the_order_of_threads():
    x = np.random.default_rng(3).random(2000).astype(np.float32) * 1e6

    @wp.kernel(module="unique", deterministic=True)
    def in_order(x: wp.array[float], sums: wp.array[float]):
        i = wp.tid()
        wp.atomic_add(sums, i % 2, x[i])

    sums = wp.zeros(2, dtype=float, device=DEVICE)
    wp.launch(in_order, 2000, inputs=[to_device(x), sums], device=DEVICE)
    expected = np.zeros(2, dtype=np.float32)
    for i, number in enumerate(x):
        expected[i % 2] += number
    np.testing.assert_array_equal(sums.numpy(), expected)


# ---- gradients ----


@wp.kernel
def scaled(x: wp.array[float], s: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = s[0] * x[i] * x[i] + s[1]


@wp.kernel
def looked_up(kind: wp.array[int], table: wp.array[wp.vec3], x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    t = table[kind[i]]
    y[i] = t[0] + t[1] * x[i] + t[2] * x[i] * x[i]


@pytest.mark.parametrize("count", [1, 1000, 50_000])
def test_gradients_of_parameters_that_all_threads_read(count):
    rng = np.random.default_rng(11)
    x, seed = rng.uniform(-1, 1, count).astype(np.float32), rng.uniform(0.5, 1.5, count).astype(np.float32)
    xs, s = (to_device(a, requires_grad=True) for a in (x, np.array([0.75, -2.0], dtype=np.float32)))
    y = wp.zeros(count, dtype=float, device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scaled, count, inputs=[xs, s], outputs=[y], device=DEVICE)
    tape.backward(grads={y: to_device(seed)})
    g, x64 = seed.astype(np.float64), x.astype(np.float64)
    np.testing.assert_allclose(s.grad.numpy(), [(g * x64 * x64).sum(), g.sum()], rtol=2e-6 * max(1, count**0.5 / 20))
    np.testing.assert_allclose(xs.grad.numpy(), 2 * 0.75 * x64 * g, rtol=1e-6)
    assert len(atomics(text_of(scaled, adjoint=True), "global")) == 2


@pytest.mark.parametrize("kinds", [4, 2000])
def test_gradients_of_a_table(kinds):
    count = 30_000
    rng = np.random.default_rng(13)
    kind, x = rng.integers(0, kinds, count).astype(np.int32), rng.uniform(-1, 1, count).astype(np.float32)
    seed, table = rng.integers(1, 5, count).astype(np.float32), rng.uniform(-1, 1, (kinds, 3)).astype(np.float32)
    tables = to_device(table, wp.vec3, requires_grad=True)
    xs = to_device(x, requires_grad=True)
    y = wp.zeros(count, dtype=float, device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(looked_up, count, inputs=[to_device(kind), tables, xs], outputs=[y], device=DEVICE)
    tape.backward(grads={y: to_device(seed)})
    x64, g = x.astype(np.float64), seed.astype(np.float64)
    expected = np.stack([np.bincount(kind, g * x64**p, kinds) for p in range(3)], axis=1)
    np.testing.assert_allclose(tables.grad.numpy(), expected, rtol=1e-4, atol=1e-3)

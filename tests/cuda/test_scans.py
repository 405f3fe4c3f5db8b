"""Running sums and sums of one launch on a CUDA device, at the borders of their tiles, groups and spans."""

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.gpu
DEVICE = "cuda:0"
random = np.random.default_rng(23)

TILE = 4096  # numbers of a block of threads
GROUP, SPAN = 32 * TILE, 1024 * TILE
NUMBERS = ["int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]


def data_of(name, shape):
    if "float" in name:
        return random.standard_normal(shape)
    limits = np.iinfo(name)
    return random.integers(limits.min, limits.max, shape, dtype=name, endpoint=True)


def on_both(name, shape):
    data = data_of(name, shape)
    return [wp.array(data, dtype=getattr(wp, name), device=device) for device in ("cpu", DEVICE)]


def running_sums(array, inclusive):
    out = wp.empty_like(array)
    wp.utils.array_scan(array, out, inclusive)
    return out.numpy()


def expected_sums(data, inclusive):
    """NumPy's, in float64 or with wraparound."""
    sums = np.cumsum(data, dtype=np.float64 if data.dtype.kind == "f" else data.dtype)
    return sums if inclusive else np.concatenate([np.zeros(1, sums.dtype), sums[:-1]])


def check(name, count, inclusive):
    here, there = on_both(name, count)
    found = running_sums(there, inclusive)
    assert found.tobytes() == running_sums(here, inclusive).tobytes()
    expected = expected_sums(here.numpy(), inclusive)
    if here.numpy().dtype.kind == "f":
        error = 1e-12 * np.sqrt(count) if name == "float64" else np.finfo(here.numpy().dtype).eps * np.abs(expected)
        assert np.all(np.abs(found - expected) <= error + 1e-10)
    else:
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize(
    "name", ["int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
)
def test_running_sums_at_the_borders_of_tiles(name, inclusive):
    for count in (15, 16, 17, 511, 513, TILE - 1, TILE, TILE + 1, 3 * TILE + 5):
        check(name, count, inclusive)


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("name", ["int32", "float32", "float64"])
def test_running_sums_at_the_borders_of_groups(name, inclusive):
    for count in (GROUP - 1, GROUP, GROUP + 1, 2 * GROUP + TILE + 1):
        check(name, count, inclusive)


@pytest.mark.parametrize("name, count", [("float32", SPAN + GROUP + TILE + 1), ("float64", SPAN), ("int32", SPAN + 1)])
def test_running_sums_at_the_borders_of_spans(name, count):
    check(name, count, True)


def test_running_sums_of_views_that_no_piece_of_16_bytes_fits():
    for name in ("float32", "float64", "int32"):
        here, there = on_both(name, 2 * TILE + 3)
        for first in (1, 2, 3):
            assert np.array_equal(running_sums(there[first:], True), running_sums(here[first:], True))


@pytest.mark.parametrize("inclusive", [True, False])
def test_components_of_vectors_are_scanned_separately(inclusive):
    data = random.standard_normal((2 * TILE + 7, 3))
    results = []
    for device in ("cpu", DEVICE):
        results.append(running_sums(wp.array(data, dtype=wp.vec3d, device=device), inclusive))
    assert results[0].tobytes() == results[1].tobytes()
    for component in range(3):
        expected = expected_sums(data[:, component], inclusive)
        np.testing.assert_allclose(results[1][:, component], expected, rtol=0, atol=1e-10)


def test_running_sums_do_not_change_from_run_to_run():
    _, there = on_both("float64", 5 * TILE)
    first = running_sums(there, True).tobytes()
    assert all(running_sums(there, True).tobytes() == first for _ in range(3))


def test_a_small_scan_after_a_large_one_finds_no_old_sums():
    for count in (GROUP + 1, 10, 2 * TILE, GROUP, 4 * GROUP, TILE + 1):
        _, there = on_both("int64", count)
        wp.utils.array_sum(there)  # sums, runs and scans of a stream share its state
        assert np.array_equal(running_sums(there, True), np.cumsum(there.numpy()))
        assert (
            wp.utils.runlength_encode(there, wp.empty_like(there), wp.empty(count, dtype=int, device=DEVICE))
            == len(np.flatnonzero(np.diff(there.numpy()))) + 1
        )


def test_scans_sums_and_runs_in_a_graph_that_is_launched_again():
    n = 3 * TILE + 11
    x = wp.zeros(n, dtype=wp.float32, device=DEVICE)
    keys = wp.zeros(n, dtype=wp.int32, device=DEVICE)
    sums, twice = wp.zeros_like(x), wp.zeros_like(x)
    total = wp.zeros(1, dtype=wp.float64, device=DEVICE)
    values, lengths = wp.zeros_like(keys), wp.zeros(n, dtype=int, device=DEVICE)
    runs = wp.zeros(1, dtype=int, device=DEVICE)

    def work():
        wp.utils.array_scan(x, sums, True)
        wp.utils.array_scan(sums, twice, False)
        wp.utils.array_sum(x, out=total)
        wp.utils.runlength_encode(keys, values, lengths, run_count=runs)

    with wp.ScopedCapture(DEVICE) as capture:
        work()
    results = []
    for seed in range(3):
        again = np.random.default_rng(seed)
        x.assign(again.standard_normal(n).astype(np.float32))
        keys.assign(np.sort(again.integers(0, 50, n)).astype(np.int32))
        wp.capture_launch(capture.graph)
        found = [a.numpy() for a in (sums, twice, total, runs)]
        found += [a.numpy()[: found[3][0]] for a in (values, lengths)]
        work()
        eager = [a.numpy() for a in (sums, twice, total, runs)]
        eager += [a.numpy()[: eager[3][0]] for a in (values, lengths)]
        assert all(np.array_equal(a, b) for a, b in zip(found, eager))
        assert np.allclose(found[0], np.cumsum(x.numpy(), dtype=np.float64), atol=1e-5)
        expected = np.unique(keys.numpy(), return_counts=True)
        assert np.array_equal(found[4], expected[0]) and np.array_equal(found[5], expected[1])
        results.append(found[2][0])
    assert len(set(results)) == 3


def test_two_streams_scan_at_once():
    streams = [wp.Stream(DEVICE), wp.Stream(DEVICE)]
    arrays = [wp.array(data_of("int64", 4 * TILE + i), device=DEVICE) for i in range(2)]
    outs = [wp.empty_like(a) for a in arrays]
    for _ in range(3):
        for stream, a, out in zip(streams, arrays, outs):
            with wp.ScopedStream(stream):
                wp.utils.array_scan(a, out, True)
                wp.utils.array_scan(out, out, False)
    wp.synchronize_device(DEVICE)
    for a, out in zip(arrays, outs):
        once = np.cumsum(a.numpy())
        assert np.array_equal(out.numpy(), np.concatenate([[0], np.cumsum(once)[:-1]]))


# ---- sums ----

BLOCK = 2048  # rows


@pytest.mark.parametrize("name", NUMBERS)
def test_sums_at_the_borders_of_blocks_and_parts(name):
    for count in (1, 15, 16, 17, BLOCK - 1, BLOCK, BLOCK + 1, 64 * BLOCK, 64 * BLOCK + 1, 150 * BLOCK + 7):
        here, there = on_both(name, count)
        assert wp.utils.array_sum(there) == wp.utils.array_sum(here)
        if count % 2 == 1:
            assert wp.utils.array_sum(there[1:]) == wp.utils.array_sum(here[1:])  # no piece of 16 bytes fits
            assert wp.utils.array_inner(there, there) == wp.utils.array_inner(here, here)
    if name in ("float32", "float64"):
        total = wp.zeros(1, dtype=wp.float64, device=DEVICE)
        wp.utils.array_sum(there, out=total)
        assert total.numpy()[0] == pytest.approx(np.sum(here.numpy(), dtype=np.float64), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "uint8", "float16"])
def test_sums_of_many_short_rows_and_of_few_long_ones(name):
    for shape, axis in [
        ((3000, 5), 1),
        ((1000, 16), 1),
        ((70, 2048), 1),
        ((9, 2049), 1),
        ((3, 70 * BLOCK + 4), 1),
        ((3, 70 * BLOCK + 3), 1),
        ((3000, 5), 0),
        ((5000, 70), 0),
        ((4, 5000, 3), 1),
    ]:
        here, there = on_both(name, shape)
        found, expected = (wp.utils.array_sum(a, axis=axis).numpy() for a in (there, here))
        assert found.tobytes() == expected.tobytes(), (shape, axis)
        if name in ("float32", "float64"):
            np.testing.assert_allclose(
                found, here.numpy().sum(axis=axis, dtype=np.float64, keepdims=True), rtol=1e-5, atol=1e-4
            )


@pytest.mark.large
def test_a_sum_of_more_parts_than_a_block_has_threads():
    here, there = on_both("float64", 300 * 32 * BLOCK + 5)  # a part of float64 has 32 blocks
    assert wp.utils.array_sum(there) == wp.utils.array_sum(here)


# ---- runs ----


@pytest.mark.parametrize("name", ["uint8", "int16", "int32", "uint64", "float16", "float32", "float64"])
def test_runs_at_the_borders_of_tiles(name):
    for count in (1, 15, 17, TILE - 1, TILE, TILE + 1, 2 * TILE + 3, GROUP + 5):
        for longest in (1, 40, 3 * TILE):
            lengths = random.integers(1, longest + 1, 2 * count // longest + 2)
            data = np.resize(np.repeat(np.arange(len(lengths)) % 7, lengths), count)
            values = wp.array(data, dtype=getattr(wp, name), device=DEVICE)
            found, sizes = wp.zeros_like(values), wp.zeros(count, dtype=int, device=DEVICE)
            runs = wp.utils.runlength_encode(values, found, sizes)
            starts = np.flatnonzero(np.concatenate([[True], data[1:] != data[:-1]]))
            assert runs == len(starts)
            assert np.array_equal(found.numpy()[:runs].astype(int), data[starts])
            assert np.array_equal(sizes.numpy()[:runs], np.diff(np.append(starts, count)))

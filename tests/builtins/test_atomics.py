"""Atomic functions: every one with every type that its signature allows, with many threads at one element, and what
each call gives back."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import warp as wp
from oracle_inputs import ordinary
from sweep import FLOATS, INTEGERS, Type, load

THREADS = 100_000
ELEMENTS = 7

KERNEL = """import warp as wp

D = {dtype}


@wp.kernel
def k(a: wp.array(dtype=D), v: wp.array(dtype=D), old: wp.array(dtype=D)):
    i = wp.tid()
    old[i] = wp.{name}(a, i % {elements}, v[i])


@wp.kernel
def grid(a: wp.array(dtype=D, ndim={ndim}), v: wp.array(dtype=D)):
    i = wp.tid()
    wp.{name}(a, {indices}, v[i])
"""

REDUCTIONS = {
    "atomic_add": np.add,
    "atomic_sub": np.add,  # of the values subtracted
    "atomic_min": np.minimum,
    "atomic_max": np.maximum,
    "atomic_and": np.bitwise_and,
    "atomic_or": np.bitwise_or,
    "atomic_xor": np.bitwise_xor,
}


def kinds(name):
    scalars = INTEGERS if name in ("atomic_and", "atomic_or", "atomic_xor") else INTEGERS + FLOATS
    found = [Type("scalar", s) for s in scalars]
    if scalars is not INTEGERS:
        found += [Type("vector", s, (3,)) for s in ("uint8", "int32", "float16", "float32", "float64")]
        found += [
            Type("matrix", "float32", (2, 2)),
            Type("quaternion", "float64", (4,)),
            Type("transform", "float32", (7,)),
        ]
    return found


def whole_numbers(kind, rng, shape):
    """Values whose sums are exact in the type: of floats, and so in any order."""
    if not kind.is_float:
        return ordinary(rng, kind.numpy, shape)
    # Half precision is exact up to 2048: mostly zeros.
    mostly_zero = rng.random(shape) < (0.9999 if kind.scalar == "float16" else 0.0)
    return np.where(mostly_zero, 0, rng.integers(-9, 9, shape)).astype(kind.numpy)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_many_threads_at_few_elements(name, tmp_path):
    rng = np.random.default_rng(7)
    for number, kind in enumerate(kinds(name)):
        values = whole_numbers(kind, rng, (THREADS, *kind.shape))
        start = whole_numbers(kind, rng, (ELEMENTS, *kind.shape))
        source = KERNEL.format(dtype=kind.source, name=name, elements=ELEMENTS, ndim=1, indices=f"i % {ELEMENTS}")
        module = load(source, tmp_path, f"{name}_{number}")
        array = wp.array(start, dtype=kind.dtype)
        old = wp.zeros(THREADS, dtype=kind.dtype)
        wp.launch(module.k, dim=THREADS, inputs=[array, wp.array(values, dtype=kind.dtype), old])
        with np.errstate(over="ignore"):
            for element in range(ELEMENTS):
                mine = values[element::ELEMENTS]
                total = REDUCTIONS[name].reduce(mine, axis=0, dtype=kind.numpy)
                expected = start[element] - total if name == "atomic_sub" else REDUCTIONS[name](start[element], total)
                assert np.array_equal(array.numpy()[element], expected.astype(kind.numpy)), (name, kind)
                if name in ("atomic_min", "atomic_max"):
                    # The values found never get worse than the start, nor better than the end.
                    found = old.numpy()[element::ELEMENTS]
                    assert np.array_equal(REDUCTIONS[name](found, start[element]), found), (name, kind)
                    assert np.array_equal(REDUCTIONS[name](found, expected), np.broadcast_to(expected, found.shape))


@pytest.mark.parametrize("scalar", INTEGERS[4:] + ["float32", "float64"])
def test_old_values_of_a_counter_are_all_different(scalar, tmp_path):
    kind = Type("scalar", scalar)
    source = KERNEL.format(dtype=kind.source, name="atomic_add", elements=1, ndim=1, indices="0")
    module = load(source, tmp_path, f"counter_{scalar}")
    counter, old = wp.zeros(1, dtype=kind.dtype), wp.zeros(THREADS, dtype=kind.dtype)
    wp.launch(module.k, dim=THREADS, inputs=[counter, wp.ones(THREADS, dtype=kind.dtype), old])
    assert counter.numpy()[0] == THREADS
    assert np.array_equal(np.sort(old.numpy()), np.arange(THREADS))


@pytest.mark.parametrize("ndim", [2, 3, 4])
def test_arrays_of_more_dimensions(ndim, tmp_path):
    kind = Type("scalar", "int32")
    shape = (2, 3, 2, 2)[:ndim]
    indices = ["i % 2", "(i / 2) % 3", "(i / 6) % 2", "(i / 12) % 2"][:ndim]
    source = KERNEL.format(dtype=kind.source, name="atomic_add", elements=1, ndim=ndim, indices=", ".join(indices))
    module = load(source, tmp_path, f"dimensions_{ndim}")
    array = wp.zeros(shape, dtype=wp.int32)
    values = np.arange(1000, dtype=np.int32)
    wp.launch(module.grid, dim=1000, inputs=[array, values])
    expected = np.zeros(shape, dtype=np.int32)
    i = np.arange(1000)
    np.add.at(expected, tuple([i % 2, i // 2 % 3, i // 6 % 2, i // 12 % 2][:ndim]), values)
    assert np.array_equal(array.numpy(), expected)


EXCHANGE = """import warp as wp

D = {dtype}


@wp.kernel
def exchange(a: wp.array(dtype=D), v: wp.array(dtype=D), old: wp.array(dtype=D)):
    i = wp.tid()
    old[i] = wp.atomic_exch(a, 0, v[i])


@wp.kernel
def compare_and_store(a: wp.array(dtype=D), compare: wp.array(dtype=D), v: wp.array(dtype=D), old: wp.array(dtype=D)):
    i = wp.tid()
    old[i] = wp.atomic_cas(a, i, compare[i], v[i])


@wp.kernel
def race(a: wp.array(dtype=D), v: wp.array(dtype=D), old: wp.array(dtype=D)):
    i = wp.tid()
    old[i] = wp.atomic_cas(a, 0, D(0), v[i])
"""


WHOLE = """import warp as wp

D = {dtype}


@wp.kernel
def exchange(a: wp.array(dtype=D), v: wp.array(dtype=D), old: wp.array(dtype=D)):
    i = wp.tid()
    old[i] = wp.atomic_exch(a, i, v[i])


@wp.kernel
def rotate(a: wp.array(dtype=D), v: wp.array(dtype=D), old: wp.array(dtype=D)):
    i = wp.tid()
    old[i] = wp.atomic_exch(a, 0, v[i])
"""


@pytest.mark.parametrize("shape", ["vector", "matrix", "quaternion", "transform"])
@pytest.mark.parametrize("scalar", ["float16", "float32", "float64"])
def test_exchange_of_aggregates(scalar, shape, tmp_path):
    kind = Type(shape, scalar, {"vector": (3,), "matrix": (2, 3), "quaternion": (4,), "transform": (7,)}[shape])
    module = load(WHOLE.format(dtype=kind.source), tmp_path, f"whole_{scalar}_{shape}")
    rng = np.random.default_rng(5)
    before, values = (rng.normal(size=(37, *kind.shape)).astype(kind.numpy) for _ in range(2))
    a, v = (wp.array(numbers, dtype=module.D) for numbers in (before, values))
    old = wp.zeros(37, dtype=module.D)
    wp.launch(module.exchange, dim=37, inputs=[a, v, old])
    assert np.array_equal(a.numpy(), values) and np.array_equal(old.numpy(), before)
    # Threads that meet in one element: each component is handed on, and none is lost.
    a = wp.array(before[:1], dtype=module.D)
    wp.launch(module.rotate, dim=37, inputs=[a, v, old])
    seen = np.concatenate([a.numpy(), old.numpy()]).reshape(38, -1)
    given = np.concatenate([before[:1], values]).reshape(38, -1)
    assert np.array_equal(np.sort(seen, axis=0), np.sort(given, axis=0))


@pytest.mark.parametrize("scalar", INTEGERS + FLOATS)
def test_exchange_and_compare(scalar, tmp_path):
    kind = Type("scalar", scalar)
    module = load(EXCHANGE.format(dtype=kind.source), tmp_path, f"exchange_{scalar}")
    rng = np.random.default_rng(3)

    # Exchanges pass every value on exactly once.
    values = whole_numbers(kind, rng, THREADS)
    array, old = wp.zeros(1, dtype=kind.dtype), wp.zeros(THREADS, dtype=kind.dtype)
    wp.launch(module.exchange, dim=THREADS, inputs=[array, values, old])
    given = np.concatenate([[kind.numpy.type(0)], values])
    taken = np.concatenate([old.numpy(), array.numpy()])
    assert np.array_equal(np.sort(given), np.sort(taken))

    # A value is stored if, and only if, the element equals the expected one.
    n = 1000
    start = rng.integers(0, 3, n).astype(kind.numpy)
    compare = rng.integers(0, 3, n).astype(kind.numpy)
    stored = rng.integers(0, 100, n).astype(kind.numpy)
    array, old = wp.array(start, dtype=kind.dtype), wp.zeros(n, dtype=kind.dtype)
    wp.launch(module.compare_and_store, dim=n, inputs=[array, compare, stored, old])
    assert np.array_equal(old.numpy(), start)
    assert np.array_equal(array.numpy(), np.where(start == compare, stored, start))

    # Of many threads that want to be the first, one is.
    values = (np.arange(THREADS) % 100 + 1).astype(kind.numpy)
    array, old = wp.zeros(1, dtype=kind.dtype), wp.zeros(THREADS, dtype=kind.dtype)
    wp.launch(module.race, dim=THREADS, inputs=[array, values, old])
    winners = np.flatnonzero(old.numpy() == 0)
    assert len(winners) == 1
    assert array.numpy()[0] == values[winners[0]]
    assert np.all(np.delete(old.numpy(), winners) == values[winners[0]])


# Contributions that are kept back until the end of a chunk of threads (src/codegen/cpu/privatised.cpp). The kernels are
# compiled for different numbers of lanes; N is no multiple of any of them.

LANES = [1, 2, 4, 8, 16]
N = 10_007

COMBINED = """import warp as wp

D = {dtype}
V = wp.types.vector(3, D)
OPTIONS = {options}


@wp.kernel(module_options=OPTIONS)
def totals(v: wp.array(dtype=D), total: wp.array(dtype=D), low: wp.array(dtype=D), high: wp.array(dtype=D)):
    i = wp.tid()
    wp.atomic_add(total, 0, v[i])
    if v[i] > D(3):
        wp.atomic_sub(total, 1, v[i])
    for _ in range(i % 5):
        wp.atomic_add(total, 2, D(1))
    wp.atomic_min(low, 0, v[i])
    wp.atomic_max(high, 0, v[i])


@wp.kernel(module_options=OPTIONS)
def bins(v: wp.array(dtype=D), k: wp.array(dtype=int), counts: wp.array(dtype=D), vectors: wp.array(dtype=V)):
    i = wp.tid()
    wp.atomic_add(counts, k[i], v[i])
    if i % 3 == 0:
        wp.atomic_sub(counts, k[i], D(2))
    wp.atomic_add(vectors, k[i] % 5, V(v[i], D(1), D(2)))


@wp.kernel(module_options=OPTIONS)
def grid(v: wp.array(dtype=D, ndim=2), table: wp.array(dtype=D, ndim=2), rows: wp.array(dtype=D)):
    i, j = wp.tid()
    wp.atomic_max(table, j % 3, (i + j) % 4, v[i, j])
    wp.atomic_add(rows, i, v[i, j])
"""


def combined(scalar, lanes, folder, mode="release"):
    options = {"lanes": lanes, "mode": mode}
    source = COMBINED.format(dtype=Type("scalar", scalar).source, options=options)
    return load(source, folder, f"combined_{scalar}_{lanes}_{mode}")


@pytest.mark.parametrize("lanes", [*LANES, "debug"])
@pytest.mark.parametrize("scalar", ["int32", "uint64", "float32", "float64"])
def test_totals_of_many_threads(scalar, lanes, tmp_path):
    module = combined(scalar, 8, tmp_path, "debug") if lanes == "debug" else combined(scalar, lanes, tmp_path)
    rng = np.random.default_rng(5)
    numpy = Type("scalar", scalar).numpy
    for count in (0, 1, 5, 16, 37, N):
        v = rng.integers(1, 7, count).astype(numpy)
        total = wp.array(np.array([10, 60_000, 3], numpy))
        low, high = wp.array(np.array([5], numpy)), wp.array(np.array([2], numpy))
        wp.launch(module.totals, dim=count, inputs=[v, total, low, high])
        loops = np.sum(np.arange(count) % 5)
        assert total.numpy().tolist() == [10 + v.sum(), 60_000 - v[v > 3].sum(), 3 + loops]
        assert low.numpy()[0] == min([5, *v]) and high.numpy()[0] == max([2, *v])


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("scalar", ["int32", "float32", "float64"])
def test_bins_of_few_and_of_many(scalar, lanes, tmp_path):
    module = combined(scalar, lanes, tmp_path)
    rng = np.random.default_rng(6)
    numpy = Type("scalar", scalar).numpy
    # Small enough for private copies beside the number of threads, and too large for them in either way.
    for count, size in ((N, 7), (N, 1000), (N, 5000), (100, 1000), (3, 5)):
        v, k = rng.integers(-9, 9, count).astype(numpy), rng.integers(0, size, count).astype(np.int32)
        start = rng.integers(-9, 9, size).astype(numpy)
        vectors = rng.integers(-9, 9, (5, 3)).astype(numpy)
        counts, sums = wp.array(start), wp.array(vectors, dtype=module.V)
        wp.launch(module.bins, dim=count, inputs=[v, k, counts, sums])
        expected = start.copy()
        np.add.at(expected, k, v)
        np.subtract.at(expected, k[::3], numpy.type(2))
        assert np.array_equal(counts.numpy(), expected), (count, size)
        np.add.at(vectors, k % 5, np.stack([v, np.ones_like(v), np.full_like(v, 2)], axis=1))
        assert np.array_equal(sums.numpy(), vectors), (count, size)


@pytest.mark.parametrize("lanes", LANES)
def test_bins_in_two_dimensions(lanes, tmp_path):
    module = combined("int32", lanes, tmp_path)
    v = np.random.default_rng(8).integers(-99, 99, (37, 53)).astype(np.int32)
    i, j = np.indices(v.shape)
    for strided in (False, True):
        table = wp.zeros((3, 8 if strided else 4), dtype=int)
        rows = wp.zeros(37, dtype=int)
        wp.launch(module.grid, dim=v.shape, inputs=[v, table[:, ::2] if strided else table, rows])
        expected = np.zeros((3, 4), np.int32)
        np.maximum.at(expected, (j % 3, (i + j) % 4), v)
        got = table.numpy()
        assert np.array_equal(got[:, ::2] if strided else got, expected)
        assert not strided or not got[:, 1::2].any()
        assert np.array_equal(rows.numpy(), v.sum(axis=1))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_combined_by_several_threads_and_launches(threads, tmp_path):
    """Two Python threads launch on the same arrays, each launch on several threads of its own."""
    module = combined("int32", 8, tmp_path)
    before = wp.config.cpu_threads
    wp.config.cpu_threads = threads
    try:
        n, size = 1_000_000, 50
        v = np.random.default_rng(9).integers(-9, 9, n).astype(np.int32)
        k = (np.arange(n) * 7 % size).astype(np.int32)
        counts, sums = wp.zeros(size, dtype=int), wp.zeros(5, dtype=module.V)
        inputs = [wp.array(v), wp.array(k), counts, sums]
        wp.launch(module.bins, dim=0, inputs=inputs)
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(wp.launch, module.bins, n, inputs) for _ in range(4)]:
                done.result()
    finally:
        wp.config.cpu_threads = before or os.cpu_count()
    expected = np.bincount(k, v, size) - 2 * np.bincount(k[::3], minlength=size)
    assert np.array_equal(counts.numpy(), 4 * expected.astype(np.int32))


WATCHED = """import warp as wp


@wp.kernel(module_options={options})
def tickets(total: wp.array(dtype=int), mine: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(total, 0, 1)
    mine[i] = wp.atomic_add(total, 0, 1)


@wp.kernel(module_options={options})
def reader(total: wp.array(dtype=int), seen: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(total, 0, 1)
    seen[i] = total[0]


@wp.kernel(module_options={options})
def through_another(total: wp.array(dtype=int), other: wp.array(dtype=int), seen: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(total, i % 3, 1)
    seen[i] = other[0]


@wp.kernel(module_options={options})
def mixed(a: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(a, 0, i)
    wp.atomic_max(a, 0, 100)


@wp.kernel(module_options={options})
def nobody(a: wp.array(dtype=float), b: wp.array(dtype=float), where: int, go: int):
    i = wp.tid()
    if i < go:
        wp.atomic_add(a, where, 1.0)
        wp.atomic_min(b, where + i, 1.0)


@wp.kernel(module_options={options})
def extremes(v: wp.array(dtype=float), low: wp.array(dtype=float), high: wp.array(dtype=float)):
    i = wp.tid()
    if i % 2 == 0:
        wp.atomic_min(low, 0, v[i])
        wp.atomic_max(high, i % 4, v[i])
"""


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.host_memory("is about lanes of the CPU", on="cuda")
def test_what_a_kernel_looks_at_is_not_kept_back(lanes, tmp_path):
    module = load(WATCHED.format(options={"lanes": lanes}), tmp_path, f"watched_{lanes}")
    n = 40  # one chunk: threads run in groups of lanes, in order
    total, mine = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    wp.launch(module.tickets, dim=n, inputs=[total, mine])
    assert total.numpy()[0] == 2 * n
    assert len(set(mine.numpy().tolist())) == n

    total, seen = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    wp.launch(module.reader, dim=n, inputs=[total, seen])
    group = np.arange(n) // lanes * lanes + lanes
    assert np.array_equal(seen.numpy(), np.minimum(group, n))

    # The same memory as two arguments: a write through one is seen by the other.
    total, seen = wp.zeros(3, dtype=int), wp.zeros(n, dtype=int)
    wp.launch(module.through_another, dim=n, inputs=[total, total, seen])
    assert seen.numpy()[-1] == np.sum(np.arange(n) % 3 == 0)
    assert np.all(np.diff(seen.numpy()) >= 0)

    a = wp.zeros(1, dtype=int)
    wp.launch(module.mixed, dim=n, inputs=[a])
    assert a.numpy()[0] >= 100

    if lanes == 1:  # thread after thread: 100 is reached and then grows by each thread's number
        expected = 0
        for i in range(n):
            expected = max(expected + i, 100)
        assert a.numpy()[0] == expected


@pytest.mark.parametrize("lanes", LANES)
def test_memory_that_no_thread_touches_may_be_missing(lanes, tmp_path):
    module = load(WATCHED.format(options={"lanes": lanes}), tmp_path, f"watched_{lanes}")
    wp.launch(module.nobody, dim=100, inputs=[None, None, 1 << 30, 0])
    a, b = wp.array([-0.0, 2.0], dtype=float), wp.array([np.nan, 5.0], dtype=float)
    wp.launch(module.nobody, dim=100, inputs=[a, b, 0, 0])
    assert np.signbit(a.numpy()[0]) and np.isnan(b.numpy()[0])
    wp.launch(module.nobody, dim=100, inputs=[a, b, 0, 2])
    assert a.numpy().tolist() == [2.0, 2.0] and b.numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("lanes", LANES)
def test_extremes_with_nans_and_infinities(lanes, tmp_path):
    module = load(WATCHED.format(options={"lanes": lanes}), tmp_path, f"watched_{lanes}")
    n = 37
    for fill in (np.nan, np.inf, -np.inf, 3.0):
        v = np.full(n, fill, np.float32)
        v[1::2] = -1e9  # of threads that take no part
        for start in (np.nan, 1.0, np.inf, -np.inf):
            low, high = wp.full(1, start, dtype=float), wp.full(4, start, dtype=float)
            wp.launch(module.extremes, dim=n, inputs=[v, low, high])
            assert np.array_equal(low.numpy(), [np.fmin(np.float32(start), np.float32(fill))], equal_nan=True)
            most = np.fmax(np.float32(start), np.float32(fill))
            assert np.array_equal(high.numpy(), np.array([most, start, most, start], np.float32), equal_nan=True)


@wp.kernel
def scatter(
    index: wp.array(dtype=int), v: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3), n: wp.array(dtype=int)
):
    i = wp.tid()
    k = index[i]
    out[k] += v[i]
    if k % 3 != 1:
        out[k].y -= v[i].x
    wp.atomic_add(n, k, 1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 8, 100, 8064, 200_000])
def test_scattered_atomic_sums_of_vectors_equal_numpy(size, threads):
    rng = np.random.default_rng(size)
    elements = 1 + size // 4
    index, v = rng.integers(0, elements, size).astype(np.int32), rng.integers(-9, 9, (size, 3)).astype(np.float32)
    before = wp.config.cpu_threads
    try:
        wp.config.cpu_threads = threads
        out, n = wp.ones(elements, dtype=wp.vec3), wp.zeros(elements, dtype=int)
        wp.launch(scatter, dim=size, inputs=[wp.array(index), wp.array(v, dtype=wp.vec3), out, n])
    finally:
        wp.config.cpu_threads = before or os.cpu_count()
    expected = np.ones((elements, 3))
    np.add.at(expected, index, v)
    np.subtract.at(expected[:, 1], index[index % 3 != 1], v[index % 3 != 1, 0])
    assert np.array_equal(out.numpy(), expected)
    assert np.array_equal(n.numpy(), np.bincount(index, minlength=elements))


def test_short_launches_from_several_threads_lose_nothing():
    """Each may find itself alone, and must not be when another one comes."""
    size, elements, rounds = 300, 11, 200
    rng = np.random.default_rng(4)
    index, v = rng.integers(0, elements, size).astype(np.int32), rng.integers(-9, 9, (size, 3)).astype(np.float32)
    out, n = wp.zeros(elements, dtype=wp.vec3), wp.zeros(elements, dtype=int)
    inputs = [wp.array(index), wp.array(v, dtype=wp.vec3), out, n]
    wp.launch(scatter, dim=size, inputs=inputs)

    def launch_often(_):
        for _ in range(rounds):
            wp.launch(scatter, dim=size, inputs=inputs)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(launch_often, range(4)))
    times = 1 + 4 * rounds
    expected = np.zeros((elements, 3))
    np.add.at(expected, index, v)
    np.subtract.at(expected[:, 1], index[index % 3 != 1], v[index % 3 != 1, 0])
    assert np.array_equal(out.numpy(), times * expected)
    assert np.array_equal(n.numpy(), times * np.bincount(index, minlength=elements))


BLOCKS = """import warp as wp

D = {dtype}


@wp.kernel
def combine(a: wp.array(dtype=D), v: wp.array(dtype=D), elements: int):
    i = wp.tid()
    wp.{name}(a, (i * 7) % elements, v[i])
"""


@pytest.mark.parametrize("name", ["atomic_add", "atomic_min", "atomic_max", "atomic_or"])
@pytest.mark.parametrize("scalar", ["float32", "float64", "int32", "uint8", "int64"])
def test_small_arrays_anywhere_in_memory(name, scalar, tmp_path):
    """They are brought home in blocks of 16 bytes, and single numbers before and after these."""
    kind = Type("scalar", scalar)
    if name == "atomic_or" and kind.is_float:
        return
    module = load(BLOCKS.format(dtype=kind.source, name=name), tmp_path, f"blocks_{name}_{scalar}")
    rng = np.random.default_rng(8)
    size = 50_000
    values = whole_numbers(kind, rng, size)
    combine = np.bitwise_or if name == "atomic_or" else REDUCTIONS[name]
    for elements in (1, 2, 3, 5, 16, 17, 40):
        for first in range(5):
            start = whole_numbers(kind, rng, 64)
            array = wp.array(start, dtype=kind.dtype)
            part = array[first : first + elements]
            wp.launch(module.combine, dim=size, inputs=[part, wp.array(values, dtype=kind.dtype), elements])
            expected = start.copy()
            with np.errstate(over="ignore"):
                combine.at(expected, first + np.arange(size) * 7 % elements, values)
            assert np.array_equal(array.numpy(), expected), (elements, first)

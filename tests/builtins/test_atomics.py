"""Atomic functions: every one with every type that its signature allows, with many threads at one element, and what
each call gives back."""

import numpy as np
import pytest
import warp as wp
from oracle import ordinary
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
                    # What was found never gets worse than the start, nor better than the end.
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

    # A value is stored where, and only where, the element equals what is expected.
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

"""wp.config.deterministic: the bits that a launch leaves are the same in every run, also on several threads."""

import numpy as np
import pytest
import warp as wp

N = 200_000


@pytest.fixture
def deterministic():
    threads = wp.config.cpu_threads
    wp.config.cpu_threads = 4
    wp.config.deterministic = wp.DeterministicMode.RUN_TO_RUN
    yield
    wp.config.deterministic = wp.DeterministicMode.NOT_GUARANTEED
    wp.config.cpu_threads = threads


@wp.kernel
def scattered_sums(x: wp.array[float], at: wp.array[int], numbers: wp.array[float], results: wp.array[int]):
    i = wp.tid()
    wp.atomic_add(numbers, at[i], x[i])


@wp.kernel
def one_sum(x: wp.array[float], at: wp.array[int], numbers: wp.array[float], results: wp.array[int]):
    i = wp.tid()
    numbers[0] += x[i]


@wp.kernel
def tickets(x: wp.array[float], at: wp.array[int], numbers: wp.array[float], results: wp.array[int]):
    i = wp.tid()
    k = wp.atomic_add(results, 0, 1)
    numbers[k] = x[i]


@wp.kernel
def chains(x: wp.array[float], at: wp.array[int], numbers: wp.array[float], results: wp.array[int]):
    """Lists of threads: each one finds who came before it."""
    i = wp.tid()
    results[1000 + i] = wp.atomic_exch(results, at[i], i)


@wp.kernel
def first_of_all(x: wp.array[float], at: wp.array[int], numbers: wp.array[float], results: wp.array[int]):
    i = wp.tid()
    results[1000 + i] = wp.atomic_cas(results, at[i], 0, i + 1)


@wp.kernel
def two_kinds(x: wp.array[float], at: wp.array[int], numbers: wp.array[float], results: wp.array[int]):
    i = wp.tid()
    wp.atomic_add(results, at[i], i % 7)
    wp.atomic_max(results, at[i], i % 1009)


@wp.kernel
def added_and_read(x: wp.array[float], at: wp.array[int], numbers: wp.array[float], results: wp.array[int]):
    i = wp.tid()
    results[at[i]] += 1
    numbers[i] = float(results[at[i]])


KERNELS = [scattered_sums, one_sum, tickets, chains, first_of_all, two_kinds, added_and_read]


def inputs():
    rng = np.random.default_rng(3)
    x = wp.array(rng.standard_normal(N).astype(np.float32) * 1e3, dtype=float)
    return x, wp.array(rng.integers(0, 1000, N), dtype=int)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_runs_give_the_same_bits(deterministic, kernel):
    x, at = inputs()
    runs = []
    for _ in range(6):
        numbers, results = wp.zeros(N, dtype=float), wp.zeros(N + 1000, dtype=int)
        wp.launch(kernel, dim=N, inputs=[x, at, numbers, results])
        runs.append((numbers.numpy().tobytes(), results.numpy().tobytes()))
    assert any(np.frombuffer(runs[0][0] + runs[0][1], dtype=np.uint8))
    assert all(run == runs[0] for run in runs[1:])


def test_order_shows_without_it():
    """What the test above proves nothing without."""
    threads, wp.config.cpu_threads = wp.config.cpu_threads, 4
    x, at = inputs()
    found = set()
    for _ in range(50):
        numbers, results = wp.zeros(N, dtype=float), wp.zeros(N + 1000, dtype=int)
        wp.launch(tickets, dim=N, inputs=[x, at, numbers, results])
        found.add(numbers.numpy().tobytes())
        if len(found) > 1:
            break
    wp.config.cpu_threads = threads
    assert len(found) > 1


@pytest.mark.parametrize("size", [50, 100_000])
def test_gradients_have_the_same_bits(deterministic, size):
    """Also those that each worker adds up in a copy of its own otherwise."""

    @wp.kernel
    def gathered(x: wp.array[float], at: wp.array[int], loss: wp.array[float]):
        i = wp.tid()
        wp.atomic_add(loss, 0, x[at[i]] * x[at[i]] * wp.sin(float(i)))

    rng = np.random.default_rng(4)
    at = wp.array(rng.integers(0, size, N), dtype=int)
    runs = set()
    for _ in range(6):
        x = wp.array(np.linspace(-1000, 1000, size, dtype=np.float32), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(gathered, dim=N, inputs=[x, at, loss])
        tape.backward(loss)
        assert np.abs(x.grad.numpy()).max() > 1
        runs.add(x.grad.numpy().tobytes() + loss.numpy().tobytes())
    assert len(runs) == 1

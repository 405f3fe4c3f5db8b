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
    """The control of the test above, which proves nothing without it."""
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


def in_order(x, **launch):
    """The result of `tickets` for x if threads run in order: x itself."""
    numbers, results = wp.zeros(N, dtype=float), wp.zeros(N + 1000, dtype=int)
    wp.launch(launch.pop("kernel", tickets), dim=N, inputs=[x, x, numbers, results], **launch)
    return (numbers.numpy() == x.numpy()).all()


def take_ticket(x: wp.array[float], at: wp.array[float], numbers: wp.array[float], results: wp.array[int]):
    i = wp.tid()
    k = wp.atomic_add(results, 0, 1)
    numbers[k] = x[i]


MODES = [wp.DeterministicMode.RUN_TO_RUN, wp.DeterministicMode.GPU_TO_GPU, "run_to_run", "GPU_TO_GPU", True]


@pytest.fixture
def four_threads():
    threads, wp.config.cpu_threads = wp.config.cpu_threads, 4
    yield
    wp.config.cpu_threads = threads
    wp.config.deterministic = wp.DeterministicMode.NOT_GUARANTEED


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_kernel_alone_is_deterministic(four_threads, mode):
    x, _ = inputs()
    kernel = wp.kernel(take_ticket, module="unique", deterministic=mode)
    assert all(in_order(x, kernel=kernel) for _ in range(5))
    same = wp.kernel(take_ticket, module="unique", module_options={"deterministic": mode})
    assert all(in_order(x, kernel=same) for _ in range(5))
    loose = wp.kernel(take_ticket, module="unique", module_options={"deterministic": mode}, deterministic=False)
    assert not all(in_order(x, kernel=loose) for _ in range(50)), "the kernel's own option goes first"


def test_a_launch_alone_is_deterministic(four_threads):
    x, _ = inputs()
    kernel = wp.kernel(take_ticket, module="unique")
    for mode in MODES:
        assert all(in_order(x, kernel=kernel, deterministic=mode) for _ in range(3))
    assert not all(in_order(x, kernel=kernel) for _ in range(50))
    wp.config.deterministic = True
    assert wp.config.deterministic is wp.DeterministicMode.RUN_TO_RUN
    assert in_order(x, kernel=kernel, deterministic=None)
    assert not all(in_order(x, kernel=kernel, deterministic="not_guaranteed") for _ in range(50))
    strict = wp.kernel(take_ticket, module="unique", deterministic=True)
    assert not all(in_order(x, kernel=strict, deterministic=False) for _ in range(50))


def test_modules_say_it_for_their_kernels(four_threads):
    x, _ = inputs()
    module = wp.get_module("tests_of_deterministic_modules")
    kernel = wp.kernel(take_ticket, module=module)
    wp.set_module_options({"deterministic": "run_to_run"}, module)
    assert wp.get_module_options(module)["deterministic"] == "run_to_run"
    assert all(in_order(x, kernel=kernel) for _ in range(5))
    wp.set_module_options({"deterministic": wp.DeterministicMode.NOT_GUARANTEED}, module)
    wp.config.deterministic = wp.DeterministicMode.RUN_TO_RUN
    assert not all(in_order(x, kernel=kernel) for _ in range(50))


def test_graphs_keep_the_choice_of_their_capture(four_threads):
    x, _ = inputs()
    numbers, results = wp.zeros(N, dtype=float), wp.zeros(N + 1000, dtype=int)
    wp.load_module(device=wp.get_device())
    with wp.ScopedCapture() as capture:
        results.zero_()
        wp.launch(take_ticket_now, dim=N, inputs=[x, x, numbers, results], deterministic=True)
    for _ in range(5):
        wp.capture_launch(capture.graph)
        assert (numbers.numpy() == x.numpy()).all()


take_ticket_now = wp.kernel(take_ticket)


@pytest.mark.parametrize("mode", ["always", 1, 2.0, []])
def test_other_modes_are_errors(mode):
    x = wp.zeros(1)
    for use in (
        lambda: wp.kernel(take_ticket, deterministic=mode),
        lambda: wp.set_module_options({"deterministic": mode}, "tests_of_wrong_modes"),
        lambda: wp.launch(take_ticket_now, dim=1, inputs=[x, x, x, wp.zeros(1, dtype=int)], deterministic=mode),
        lambda: setattr(wp.config, "deterministic", mode),
    ):
        with pytest.raises(ValueError, match="expected a member of wp.DeterministicMode, its name, or a bool"):
            use()
    with pytest.raises(ValueError, match="record_cmd=True makes one for later"):
        wp.launch(take_ticket_now, dim=1, record_cmd=True, deterministic=True)

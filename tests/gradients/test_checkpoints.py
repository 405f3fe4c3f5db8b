"""Loops that run more often than they may keep states: the gradient has the same bits as with all states kept."""

import re
import subprocess
import sys

import numpy as np
import pytest
import warp as wp
from tapes import doubles, gradients

pytestmark = pytest.mark.protected

PLENTY = 1 << 26


@pytest.fixture
def room():
    """Sets wp.config.gradient_loop_bytes, for one test."""
    before = wp.config.gradient_loop_bytes
    yield lambda size: setattr(wp.config, "gradient_loop_bytes", size)
    wp.config.gradient_loop_bytes = before


def same_bits(found, expected):
    return all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in zip(found, expected, strict=True))


@wp.kernel
def orbit(x: wp.array[wp.float64], n: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    s = x[i]
    v = wp.vec3d(x[i], wp.float64(0.5), wp.float64(0.1))
    k = int(0)
    while k < n[i]:
        s = s + wp.sin(s) * v[1] * wp.float64(0.001)
        v = v + wp.float64(0.001) * wp.vec3d(v[1] * s, -v[0], v[2] * v[2])
        k += 1
    y[i] = s * v[0]


def orbits(counts):
    x = doubles(np.linspace(0.1, 1.0, len(counts)), requires_grad=True)
    y = doubles(np.zeros(len(counts)), requires_grad=True)
    return gradients(orbit, len(counts), [x, wp.array(counts, dtype=int)], [y], [np.ones(len(counts))])


@pytest.mark.parametrize(
    ("counts", "sizes"),
    [
        ([10], [1, 200, 400]),
        ([10, 3, 0, 7, 1, 2, 2, 9, 5], [1, 200, 400]),
        ([1000], [300, 1000, 30_000]),
        ([1000, 10, 17, 999, 0, 4, 5, 6, 7, 8, 9, 500], [300, 1000, 30_000]),
        ([1_000_000], [700, 1_000_000]),
    ],
)
def test_checkpoints_give_the_bits_of_complete_stacks(room, counts, sizes):
    if wp.get_device().is_cuda:
        counts = [min(count, 50_000) for count in counts]  # a million takes half a minute of the emulated one
    room(PLENTY)
    expected = orbits(counts)
    assert np.isfinite(expected[0]).all()
    for size in sizes:
        room(size)
        assert same_bits(orbits(counts), expected), size


def test_every_number_of_iterations_and_places(room):
    @wp.kernel
    def sines(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
        i = wp.tid()
        s = x[i]
        for k in range(n):
            s = wp.sin(s) + wp.float64(0.1) * wp.float64(k)
        y[i] = s

    x, y = doubles([0.3, 1.7], requires_grad=True), doubles([0.0, 0.0], requires_grad=True)
    for places in (2, 3, 5, 8):
        for n in range(0, 42, 1 + places // 4):
            room(12 * places)  # a float64 and the number of its iteration
            x.grad.zero_()
            found = gradients(sines, 2, [x, n], [y], [[1.0, 1.0]])[0]
            expected = []
            for s in (0.3, 1.7):
                slope = 1.0
                for k in range(n):
                    slope *= np.cos(s)
                    s = np.sin(s) + 0.1 * k
                expected.append(slope)
            np.testing.assert_allclose(found, expected, rtol=1e-11, err_msg=f"{n} iterations, {places} places")


@wp.struct
class Rod:
    angle: wp.float64
    turns: wp.vec2d


@wp.func
def bent(rod: Rod, by: wp.float64):
    rod.angle = rod.angle + wp.float64(0.1) * wp.sin(by * rod.turns[0])
    rod.turns[1] += rod.angle * by
    return rod


@wp.kernel
def nested(x: wp.array[wp.float64], n: wp.array[int], log: wp.array2d[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    rod = Rod()
    rod.turns = wp.vec2d(x[i], wp.float64(0.2))
    best = wp.float64(-10.0)
    for k in range(n[i]):
        inner = wp.float64(1.0)
        for m in range(k % 7):
            inner = inner * wp.cos(rod.angle + x[i])
            if inner < wp.float64(0.05):
                break
        if k % 5 == 3:
            continue
        rod = bent(rod, inner)
        log[i, k % 3] = log[i, k % 3] * wp.float64(0.9) + rod.angle
        best = wp.max(best, log[i, (k + 1) % 3])
        if best > wp.float64(40.0):
            break
    y[i] = rod.turns[1] + best


def test_nested_loops_that_read_what_they_wrote(room):
    rng = np.random.default_rng(5)
    start, rows = rng.uniform(0.2, 1.2, 11), rng.uniform(0, 1, (11, 3))
    counts = rng.integers(0, 90, 11)

    def run():
        x, log = doubles(start, requires_grad=True), doubles(rows, requires_grad=True)
        y = doubles(np.zeros(11), requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(nested, 11, [x, wp.array(counts, dtype=int), log], [y])
        tape.backward(grads={y: wp.ones_like(y)})
        return [x.grad.numpy(), log.grad.numpy()]

    room(PLENTY)
    expected = run()
    assert (expected[0] != 0.0).sum() > 8
    for size in (1, 150, 600):
        room(size)
        assert same_bits(run(), expected), size


@pytest.mark.host_memory("measures the memory of the process", on="cuda")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_under_the_bound(tmp_path):
    program = tmp_path / "most.py"
    program.write_text("""
import re, sys
import warp as wp

@wp.kernel
def sines(x: wp.array[float], n: int, y: wp.array[float]):
    s = x[0]
    for _k in range(n):
        s = wp.sin(s)
    y[0] = s

wp.config.gradient_loop_bytes = int(sys.argv[1])
x, y = wp.ones(1, requires_grad=True), wp.zeros(1, requires_grad=True)

def most(n):
    tape = wp.Tape()
    with tape:
        wp.launch(sines, 1, [x, n, y])
    tape.backward(y)
    status = open("/proc/self/status").read()
    return int(re.search("VmHWM:\\s*([0-9]+) kB", status)[1]) / 1024

print(-most(10) + most(5_000_000))
""")

    def growth(size):
        done = subprocess.run([sys.executable, program, str(size)], capture_output=True, text=True, check=True)
        return float(done.stdout)

    assert growth(1 << 16) < 3.0  # for each of up to 16 lanes
    assert growth(1 << 26) > 15.0  # all states, so that the first figure means something


def test_a_size_that_is_none_is_refused(room):
    for wrong in (0, -5, "many", 2.5):
        with pytest.raises(ValueError, match="gradient_loop_bytes.*expected an int from 1"):
            room(wrong)


# ---- values that a thread reads after it wrote them ----


@wp.kernel
def sweeps(a: wp.array[wp.float64], rounds: int, carried: wp.array[wp.float64]):
    s = carried[0]
    for _ in range(rounds):
        for i in range(a.shape[0]):
            s = a[i] * wp.float64(0.5) + s * wp.float64(0.001)
            a[i] = wp.sin(s)
    carried[0] = s


def gradient_of_sweeps(size, launches, rounds):
    a = doubles(np.linspace(0.1, 2.0, size), requires_grad=True)
    carried = doubles([0.0], requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(launches):
            wp.launch(sweeps, dim=1, inputs=[a, rounds, carried])
    tape.backward(grads={a: doubles(np.ones(size))})
    return a.grad.numpy()


@pytest.mark.host_memory("logs of threads have a bound", on="cuda")
def test_a_thread_that_reads_again_what_it_wrote_nine_million_times():
    """64 MiB were the end once. Of launches of one round each, no thread comes near that."""
    expected = gradient_of_sweeps(1_000_000, 9, 1)
    assert np.abs(expected).min() > 1e-4
    np.testing.assert_allclose(gradient_of_sweeps(1_000_000, 1, 9), expected, rtol=1e-13)


@pytest.mark.gpu
def test_more_than_the_logs_of_threads_hold_is_an_error_on_a_gpu():
    """A launch has 256 MiB for them: of 8192 threads each has 32 KiB, 4096 numbers."""

    @wp.kernel
    def repeated(a: wp.array[wp.float64], rounds: wp.array[int]):
        i = wp.tid()
        for _ in range(rounds[i]):
            a[i] = a[i] + wp.float64(0.001) * (wp.float64(0.25) - a[i] * a[i])

    threads, room = 8192, 4096
    start = np.linspace(0.1, 0.9, threads)

    def gradient(rounds):
        a = doubles(start, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(repeated, dim=threads, inputs=[a, wp.array(rounds, dtype=int)])
        tape.backward(grads={a: doubles(np.ones(threads))})
        return a.numpy(), a.grad.numpy()

    def expected(rounds):
        values, slopes = start.copy(), np.ones(threads)
        for k in range(rounds.max()):
            on = k < rounds
            slopes[on] *= 1.0 - 0.002 * values[on]
            values[on] += 0.001 * (0.25 - values[on] * values[on])
        return values, slopes

    def check(rounds):
        for found, want in zip(gradient(rounds), expected(rounds), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-11)

    with wp.ScopedDevice("cuda:0"):
        rounds = np.arange(threads, dtype=np.int32) % 3 + 1
        check(rounds)
        rounds[[0, 5000, 8191]] = room  # the longest that have room
        check(rounds)
        for beyond in ([5000], [0, 4000, 8191]):
            too_long = rounds.copy()
            too_long[beyond] = room + 1
            says = "more values that one thread reads after it wrote them than there is room for, in kernel 'repeated'"
            with pytest.raises(RuntimeError, match=says) as caught:
                gradient(too_long)
            assert int(re.search(r"thread \((\d+),\)", str(caught.value)).group(1)) in beyond
            wp.synchronize_device()  # nothing is left of it
            check(rounds)


@pytest.mark.large
def test_the_log_of_one_thread_goes_on_in_a_file():
    """Forty million values are 320 MB, of which 256 MiB lie in memory."""
    expected = gradient_of_sweeps(10_000_000, 4, 1)
    np.testing.assert_allclose(gradient_of_sweeps(10_000_000, 1, 4), expected, rtol=1e-13)


def test_threads_with_logs_of_all_lengths():
    @wp.kernel
    def rows(a: wp.array2d[wp.float64], rounds: wp.array[int]):
        i = wp.tid()
        for _ in range(rounds[i]):
            for j in range(a.shape[1]):
                a[i, j] = wp.sin(a[i, j]) + wp.float64(0.1) * a[i, (j + 1) % a.shape[1]]

    rng = np.random.default_rng(7)
    counts = rng.integers(0, 40, 37)
    start = rng.uniform(0.1, 1.0, (37, 5))
    a = doubles(start, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(rows, dim=37, inputs=[a, wp.array(counts, dtype=int)])
    tape.backward(grads={a: doubles(np.ones((37, 5)))})
    for i, count in enumerate(counts):
        values = []
        row = start[i].copy()
        for _ in range(count):
            for j in range(5):
                values.append((j, row[j]))
                row[j] = np.sin(row[j]) + 0.1 * row[(j + 1) % 5]
        slope = np.ones(5)
        for j, value in reversed(values):
            d, slope[j] = slope[j], 0.0
            slope[(j + 1) % 5] += 0.1 * d
            slope[j] += np.cos(value) * d
        np.testing.assert_allclose(a.grad.numpy()[i], slope, rtol=1e-12)

"""Ctrl-C ends a launch whose threads run for long, and the wait for a long compilation. Everything stays usable."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.host_memory('a launch ends before the call returns on "cpu" only')


@pytest.fixture
def soon():
    """A signal of the clock, which raises KeyboardInterrupt as Ctrl-C does; it needs no other thread of Python."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@wp.kernel
def counts(n: int, x: wp.array[float]):
    i = wp.tid()
    s = float(i)
    for j in range(n):
        for k in range(n):
            s = s * 0.999 + float(k - j)
    x[i] = s


@wp.kernel
def waits(n: int, x: wp.array[float]):
    i = wp.tid()
    s = x[i]
    k = int(0)
    while k < n:
        s = s * 0.5 + 1.0
        k += wp.where(n > 1000, 0, 1)
    x[i] = s


@wp.kernel
def breaks(n: int, x: wp.array[float]):
    i = wp.tid()
    s = x[i]
    for j in range(n):
        if s < -1.0:
            break
        for k in range(n):
            s = s * 0.5 + 1.0
            if s < -1.0:
                break
    x[i] = s


@wp.kernel
def adds(n: int, x: wp.array[float]):
    k = int(0)
    while k < n:
        wp.atomic_add(x, 0, 1.0)
        k += wp.where(n > 1000, 0, 1)


@wp.kernel
def of_doubles(n: int, x: wp.array[float]):
    i = wp.tid()
    s = wp.float64(0.0)
    for j in range(wp.int64(n) * wp.int64(n)):
        s += wp.sqrt(wp.float64(j + wp.int64(i)))
    x[i] = float(s)


ENDLESS = 2**31 - 1


@pytest.mark.parametrize("mode", ["release", "debug"])
@pytest.mark.parametrize("dim", [1, 3, 200])
@pytest.mark.parametrize("kernel", [counts, waits, breaks, adds, of_doubles], ids=lambda kernel: kernel.key)
def test_a_launch_ends_in_the_midst_of_its_threads(kernel, dim, mode, soon, monkeypatch):
    monkeypatch.setattr(wp.config, "mode", mode)
    x = wp.zeros(dim)
    wp.launch(kernel, dim, inputs=[3, x])
    expected = x.numpy().copy()
    soon()
    with pytest.raises(KeyboardInterrupt):
        wp.launch(kernel, dim, inputs=[ENDLESS, x])
    again = wp.zeros(dim)
    wp.launch(kernel, dim, inputs=[3, again])
    np.testing.assert_array_equal(again.numpy(), expected)


def test_the_adjoint_of_a_long_loop_ends(soon):
    @wp.kernel
    def powers(n: int, x: wp.array[float], y: wp.array[float]):
        s = float(1.0)
        for _ in range(n):
            for _ in range(n):
                s *= x[0]
        y[0] = s

    x, y = wp.ones(1, requires_grad=True), wp.zeros(1, requires_grad=True)

    def launch(n):
        wp.launch(powers, 1, inputs=[n, x], outputs=[y], adj_inputs=[None, x.grad], adj_outputs=[y.grad], adjoint=True)

    y.grad.fill_(1.0)
    launch(3)
    assert x.grad.numpy()[0] == 9.0
    soon()
    with pytest.raises(KeyboardInterrupt):
        launch(40_000)
    x.grad.zero_()
    y.grad.fill_(1.0)
    launch(3)
    assert x.grad.numpy()[0] == 9.0


def test_other_threads_run_during_a_long_loop(soon):
    """A launch whose estimate is short keeps Python's lock, until its loops turn out to be long."""
    x = wp.zeros(1)
    ran = threading.Event()
    thread = threading.Thread(target=lambda: (ran.wait(0.05), ran.set(), os.kill(os.getpid(), signal.SIGALRM)))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        wp.launch(waits, 1, inputs=[ENDLESS, x])
    thread.join()


COMPILE = """
import os, signal, sys, threading
import warp as wp
signal.signal(signal.SIGALRM, signal.default_int_handler)
matrix = wp.types.matrix((24, 24), float)

@wp.kernel
def layer(m: wp.array[matrix], n: wp.array[matrix], o: wp.array[matrix]):
    a = m[0]
    for _ in range(3):
        a = a * n[0] + wp.transpose(a) * m[0]
    o[0] = a

x, y, o = wp.ones(1, dtype=matrix), wp.ones(1, dtype=matrix), wp.zeros(1, dtype=matrix)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    wp.launch(layer, 1, inputs=[x, y, o])
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
signal.setitimer(signal.ITIMER_REAL, 0.0)
if sys.argv[1] == "again":
    wp.launch(layer, 1, inputs=[x, y, o])
    print(o.numpy()[0, 0, 0])
sys.exit(7)
"""


@pytest.mark.parametrize("then", ["again", "leave"])
def test_the_wait_for_a_compilation_ends(then, tmp_path):
    (tmp_path / "program.py").write_text(COMPILE)
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), then],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 7, done.stderr
    printed = done.stdout.split()
    assert printed[0] == "interrupted", done.stdout
    if then == "again":
        a = m = np.ones((24, 24))
        for _ in range(3):
            a = a @ m + a.T @ m
        assert float(printed[1]) == a[0, 0]

"""Ctrl-C ends a launch whose threads run for long, and the wait for a long compilation. Everything stays usable."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import warp as wp

pytestmark = [
    pytest.mark.host_memory('a launch ends before the call returns on "cpu" only'),
    pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers"),
]


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


@wp.kernel
def last_waits(n: int, x: wp.array[float]):
    i = wp.tid()
    k = int(0)
    while k < wp.where(i == 63, n, 0):
        k += wp.where(n > 1000, 0, 1)
    x[i] = float(k)


@pytest.mark.parametrize("dim", [64, 1000, 100_000])
def test_a_launch_ends_that_waits_for_another_thread(dim, soon):
    """The launching thread has done its part; one of the others does not end."""
    x = wp.zeros(dim)
    wp.launch(last_waits, dim, inputs=[3, x])
    soon()
    with pytest.raises(KeyboardInterrupt):
        wp.launch(last_waits, dim, inputs=[ENDLESS, x])
    wp.launch(last_waits, dim, inputs=[3, x])
    assert x.numpy().sum() == 3.0


def test_a_handler_may_launch_in_the_midst_of_a_launch(soon):
    calls = []

    def launch_another(*_):
        y = wp.zeros(1000)
        wp.launch(last_waits, 1000, inputs=[5, y])
        calls.append(y.numpy().sum())
        if len(calls) == 3:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, launch_another)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    with pytest.raises(KeyboardInterrupt):
        wp.launch(waits, 1, inputs=[ENDLESS, wp.zeros(1)])
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
    assert calls == [5.0, 5.0, 5.0]


def test_a_handler_of_the_program_for_the_same_signal_is_kept(soon):
    """Long launches use SIGURG for themselves (docs/guide/devices.md)."""
    seen = []
    before = signal.signal(signal.SIGURG, lambda *_: seen.append(1))
    soon()
    with pytest.raises(KeyboardInterrupt):
        wp.launch(waits, 1, inputs=[ENDLESS, wp.zeros(1)])
    assert seen == []
    signal.raise_signal(signal.SIGURG)
    assert seen == [1]
    signal.signal(signal.SIGURG, before)


LONG_CHUNK = """
import os, signal, sys, time
import warp as wp

@wp.kernel
def waits(n: int, x: wp.array[float]):
    k = int(0)
    while k < n:
        k += wp.where(n > 1000, 0, 1)
    x[0] = float(k)

x = wp.zeros(1)
wp.launch(waits, 1, inputs=[3, x])
signal.signal(signal.SIGALRM, signal.default_int_handler)
child = os.fork()
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    wp.launch(waits, 1, inputs=[2**31 - 1, x])
except KeyboardInterrupt:
    wp.launch(waits, 1, inputs=[4, x])
    result = int(x.numpy()[0])
if child == 0:
    os._exit(result)
print(result, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_launch_ends_in_a_forked_child_too(tmp_path):
    (tmp_path / "program.py").write_text(LONG_CHUNK)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["4", "4"], done.stderr


@wp.kernel
def sines(n: int, x: wp.array[float]):
    i = wp.tid()
    s = x[i]
    k = int(0)
    while k < n:
        s = wp.pow(wp.sin(s) + 1.0, wp.cos(s) + 0.1)
        k += wp.where(n > 1000, 0, 1)
    x[i] = s


@pytest.mark.parametrize("dim", [1, 200])
def test_a_loop_that_is_mostly_in_functions_of_a_library_ends(dim, soon):
    x = wp.zeros(dim)
    wp.launch(sines, dim, inputs=[3, x])
    soon()
    with pytest.raises(KeyboardInterrupt):
        wp.launch(sines, dim, inputs=[ENDLESS, x])


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
matrix = wp.types.matrix((14, 14), float)

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
        a = m = np.ones((14, 14))
        for _ in range(3):
            a = a @ m + a.T @ m
        assert float(printed[1]) == a[0, 0]


LONG = """
import os, signal, sys, threading
import numpy as np
import warp as wp
wp.set_device("cpu")
signal.signal(signal.SIGALRM, signal.default_int_handler)

asks = True

def soon():
    if asks:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
    return 0.0

LINES = 9000
text = "import warp as wp\\nfrom __main__ import soon\\n"
text += "@wp.kernel\\ndef long(x: wp.array[float]):\\n    s = x[0] + wp.static(soon())\\n"
text += "".join("    s = s * 0.5 + 1.0\\n" for _ in range(LINES)) + "    s = s + x\\n"
open("long_kernel.py", "w").write(text)
sys.path.insert(0, ".")

@wp.kernel
def doubles(x: wp.array[float]):
    x[wp.tid()] *= 2.0

x = wp.ones(3)

def attempt():
    try:
        import long_kernel
        wp.launch(long_kernel.long, 1, inputs=[x])
    except KeyboardInterrupt:
        print("interrupted")
    except wp.CompileError as error:
        print("read to its end", "s + x" in str(error))

attempt()
wp.launch(doubles, 3, inputs=[x])
print(x.numpy().tolist())
asks = False
attempt()
"""


def test_the_analysis_of_a_long_kernel_ends(tmp_path):
    """Its last line is an error, which the signal comes before."""
    (tmp_path / "program.py").write_text(LONG)
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout.splitlines() == ["interrupted", "[2.0, 2.0, 2.0]", "read to its end True"], (
        done.stdout + done.stderr
    )


THREADS = """
import signal, sys, threading
import warp as wp
wp.set_device("cpu")
signal.signal(signal.SIGALRM, signal.default_int_handler)
matrix = wp.types.matrix((14, 14), float)

def layer(power):
    @wp.kernel(module="unique")
    def layer(m: wp.array[matrix], o: wp.array[matrix]):
        a = m[0]
        for _ in range(wp.static(power)):
            a = a * m[0] + wp.transpose(a) * m[0]
        o[0] = a
    return layer

kernels = [layer(n) for n in (3, 4)]
m = wp.ones(1, dtype=matrix)
results = {}

def run(n):
    o = wp.zeros(1, dtype=matrix)
    wp.launch(kernels[n], 1, inputs=[m, o])
    results[n] = float(o.numpy()[0, 0, 0])

threads = [threading.Thread(target=run, args=(n,)) for n in (0, 1)]
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    for thread in threads:
        thread.start()
    if sys.argv[1] == "compiles":
        run(0)
    for thread in threads:
        thread.join()
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
signal.setitimer(signal.ITIMER_REAL, 0.0)
for thread in threads:
    if thread.ident:
        thread.join()
for n in (0, 1):
    run(n)
print(results[0], results[1])
"""


@pytest.mark.parametrize("main_thread", ["compiles", "waits"])
def test_compilations_of_other_threads_go_on(main_thread, tmp_path):
    (tmp_path / "program.py").write_text(THREADS)
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "program.py"), main_thread]
    for expected in ("interrupted", None):  # the second process finds what the first one wrote
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stderr
        outcome, numbers = done.stdout.splitlines()
        assert expected in (outcome, None)
        m = np.ones((14, 14))
        for power, number in zip((3, 4), numbers.split(), strict=True):
            a = m
            for _ in range(power):
                a = a @ m + a.T @ m
            assert float(number) == a[0, 0]


FORCE_LOAD = """
import os, pathlib, signal, sys
import numpy as np
import warp as wp
wp.set_device("cpu")
matrix = wp.types.matrix((8, 8), float)

def layer(power):
    @wp.kernel(module="unique", enable_backward=False)
    def layer(m: wp.array[matrix], o: wp.array[matrix]):
        a = m[0]
        for _ in range(wp.static(power)):
            a = a * m[0] + wp.transpose(a) * m[0]
        o[0] = a
    return layer

def compiled():
    return sum(path.is_file() for path in pathlib.Path(os.environ["WARP_CACHE_PATH"]).rglob("*"))

kernels = [layer(power) for power in range(2, 8)]
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    wp.force_load("cpu", max_workers=2)
    print("finished")
except KeyboardInterrupt:
    print("interrupted", compiled() < len(kernels))
wp.force_load("cpu", max_workers=2)
m, o = wp.full(1, 0.1, dtype=matrix), wp.zeros(1, dtype=matrix)
for kernel in kernels:
    wp.launch(kernel, 1, inputs=[m, o])
    print(float(o.numpy()[0, 0, 0]))
sys.exit(7)
"""


def test_force_load_ends_at_once_and_its_kernels_stay_usable(tmp_path):
    """Kernels whose compilation has begun are compiled to their end, by threads that nothing waits for."""
    (tmp_path / "program.py").write_text(FORCE_LOAD)
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 7, done.stderr
    outcome, *numbers = done.stdout.splitlines()
    assert outcome == "interrupted True"
    m = np.full((8, 8), 0.1)
    for power, number in zip(range(2, 8), numbers, strict=True):
        a = m
        for _ in range(power):
            a = a @ m + a.T @ m
        np.testing.assert_allclose(float(number), a[0, 0], rtol=1e-5)

"""Several threads, streams that they share, and captures; interrupts of a thread that waits."""

import ctypes
import gc
import os
import subprocess
import sys
import threading

import pytest
import warp as wp
from kept_warnings import Warnings
from run_in_threads import run_in_threads

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def next_number(x: wp.array[float], n: float):
    i = wp.tid()
    x[i] = wp.mod(x[i] * 3.0 + n, 1009.0)


def after(launches):
    """The result of next_number for 0 if launches with these numbers come in this order; exact in float32."""
    number = 0.0
    for n in launches:
        number = (3.0 * number + n) % 1009.0
    return number


def in_thread(work):
    """Runs a function in a thread of its own, and raises what it raised."""
    found = []

    def run():
        try:
            work()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(120)
    assert not thread.is_alive()
    if found:
        raise found[0]


# ---- streams that a thread lets go of ----


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_stream_that_another_thread_drops_stays_in_the_capture(device):
    a, b = wp.zeros(4, dtype=float, device=device), wp.zeros(4, dtype=float, device=device)
    wp.launch(add_one, 4, inputs=[a], device=device)
    wp.launch(add_one, 4, inputs=[b], device=device)
    wp.synchronize()
    origin = wp.Stream(device)
    box = [wp.Stream(device)]
    graphs = []

    def capture():
        with wp.ScopedCapture(stream=origin) as capture:
            box[0].wait_stream(origin)
            wp.launch(add_one, 4, inputs=[b], stream=box[0])
            event = box[0].record_event()
            dropper = threading.Thread(target=lambda: (box.clear(), gc.collect()))
            dropper.start()
            dropper.join()
            wp.launch(add_one, 4, inputs=[a], stream=origin)
            origin.wait_event(event)
            wp.launch(add_one, 4, inputs=[b], stream=origin)
        graphs.append(capture.graph)

    in_thread(capture)
    assert not box and not origin.is_capturing
    for _ in range(2):
        wp.capture_launch(graphs[0], stream=origin)
    wp.synchronize_stream(origin)
    assert (set(a.list()), set(b.list())) == ({3.0}, {5.0})


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_capture_whose_stream_another_thread_drops_is_lost_and_nothing_more(device):
    a = wp.zeros(4, dtype=float, device=device)
    wp.launch(add_one, 4, inputs=[a], device=device)
    wp.synchronize()
    box, graphs = [wp.Stream(device)], []

    def capture():
        wp.capture_begin(stream=box[0])
        wp.launch(add_one, 4, inputs=[a], stream=box[0])
        dropper = threading.Thread(target=lambda: (box.clear(), gc.collect()))
        dropper.start()
        dropper.join()
        with wp.ScopedCapture(stream=wp.Stream(device)) as capture:
            wp.launch(add_one, 4, inputs=[a], stream=capture.stream)
        graphs.append(capture.graph)

    in_thread(capture)
    wp.launch(add_one, 4, inputs=[a], device=device)
    wp.capture_launch(graphs[0])
    assert set(a.list()) == {3.0}


def memory_used(device):
    gc.collect()
    wp.synchronize()
    return 0 if device == "cpu" else wp.get_mempool_used_mem_current(device)


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_capture_that_a_thread_leaves_open_is_thrown_away_when_the_thread_ends(device):
    a = wp.zeros(4, dtype=float, device=device)
    wp.launch(add_one, 4, inputs=[a], device=device)
    wp.synchronize()
    origin, joined = wp.Stream(device), wp.Stream(device)
    used = memory_used(device)

    def capture():
        wp.capture_begin(stream=origin)
        wp.launch(add_one, 4, inputs=[a], stream=origin)
        joined.wait_stream(origin)
        with wp.ScopedStream(origin, sync_enter=False):
            made = wp.zeros(1 << 20, dtype=float, device=device)
            wp.launch(add_one, 4, inputs=[made], device=device)
        wp.launch(add_one, 4, inputs=[a], stream=joined)
        with wp.ScopedCapture(stream=wp.Stream(device)) as other:  # which is ended
            wp.launch(add_one, 4, inputs=[a], stream=other.stream)
        wp.capture_begin(device)  # of its default stream

    with Warnings() as warnings:
        thread = threading.Thread(target=capture, name="left open")
        thread.start()
        thread.join(60)
    text = f"the thread 'left open' has ended without capture_end(): its capture from a stream of '{device}' "
    assert len(warnings) == 2 and all(warning.startswith(text) for warning in warnings)
    assert not (origin.is_capturing or joined.is_capturing or wp.get_device(device).is_capturing)
    for stream in (origin, joined, wp.get_stream(device)):
        with wp.ScopedCapture(stream=stream) as capture:
            wp.launch(add_one, 4, inputs=[a], stream=stream)
        wp.capture_launch(capture.graph, stream=stream)
        wp.synchronize_stream(stream)
    assert set(a.list()) == {4.0}  # nothing of what was thrown away has run
    capture = None
    assert memory_used(device) == used


def in_foreign_thread(work):
    """Runs a function in a thread that Python has not made."""
    libc, errors = ctypes.CDLL(None), []

    def run(_):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    called, thread = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(run), ctypes.c_void_p()
    assert libc.pthread_create(ctypes.byref(thread), None, called, None) == 0
    assert libc.pthread_join(thread, None) == 0
    if errors:
        raise errors[0]


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_capture_of_a_thread_that_python_does_not_know_is_no_other_threads(device):
    """Python does not see its end, and the system may give its number to the next thread."""
    a = wp.zeros(4, dtype=float, device=device)
    wp.launch(add_one, 4, inputs=[a], device=device)
    wp.synchronize()
    box = [wp.Stream(device)]
    used = memory_used(device)

    def capture():
        wp.capture_begin(stream=box[0])
        wp.launch(add_one, 4, inputs=[a], stream=box[0])
        with wp.ScopedStream(box[0], sync_enter=False):
            made = wp.zeros(1 << 20, dtype=float, device=device)
            wp.launch(add_one, 4, inputs=[made], device=device)

    def use():
        wp.launch(add_one, 4, inputs=[a], stream=box[0])  # beside the capture
        wp.synchronize_stream(box[0])
        ended = r"is being captured.*, by the thread 'Dummy-\d+', which has ended without capture_end\(\): the capture"
        for wrong in (wp.capture_begin, wp.capture_end):
            with pytest.raises(RuntimeError, match=ended):
                wrong(stream=box[0])

    for _ in range(3):
        in_foreign_thread(capture)
        in_foreign_thread(use)
        use()
        box[0] = wp.Stream(device)  # the other one goes with its capture
    assert set(a.list()) == {7.0}
    assert memory_used(device) == used


def test_a_process_may_end_while_a_capture_is_open(run):
    printed = run("""
        x = wp.zeros(3, dtype=float, device="cuda:0")
        wp.capture_begin("cuda:0")
        x.fill_(1.0)
        wp.capture_begin("cpu")
        y = wp.ones(3, dtype=float, device="cpu")
        y.fill_(2.0)
        import threading, time
        begun = threading.Event()
        def capture():
            for device in ("cpu", "cuda:0"):
                wp.capture_begin(stream=wp.Stream(device))
            begun.set()
            time.sleep(1000)
        threading.Thread(target=capture, daemon=True).start()
        begun.wait()
        print("left open")
    """)
    assert printed == "left open\n"


# ---- two threads on one stream ----


def test_work_of_two_threads_in_one_stream_is_in_the_order_of_each():
    stream = wp.Stream(DEVICE)
    arrays = [wp.zeros(8, dtype=float, device=DEVICE) for _ in range(4)]
    wp.launch(next_number, 8, inputs=[arrays[0], 0.0], device=DEVICE)
    wp.synchronize()

    def work(x):
        for i in range(20):
            wp.launch(next_number, 8, inputs=[x, float(i)], stream=stream)

    run_in_threads(work, arrays)
    wp.synchronize_stream(stream)
    for x in arrays:
        assert set(x.list()) == {after(range(20))}


def test_captures_of_one_thread_and_work_of_another_in_one_stream_do_not_mix():
    """The other thread's launches are done in their order, at whatever moments captures begin and end."""
    stream, stop = wp.Stream(DEVICE), threading.Event()
    x, a = wp.zeros(8, dtype=float, device=DEVICE), wp.zeros(8, dtype=float, device=DEVICE)
    for y in (x, a):
        wp.launch(next_number, 8, inputs=[y, 0.0], device=DEVICE)
        wp.launch(add_one, 8, inputs=[y], device=DEVICE)
        y.zero_()
    wp.synchronize()
    launched, errors = [], []

    def other():
        try:
            while not stop.is_set():
                for i in range(5):
                    wp.launch(next_number, 8, inputs=[x, float(i)], stream=stream)
                    launched.append(i)
                if len(launched) % 20 == 0:
                    wp.synchronize_stream(stream)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        graphs = []
        for _ in range(30):
            with wp.ScopedCapture(stream=stream) as capture:
                for _ in range(3):
                    wp.launch(add_one, 8, inputs=[a], stream=stream)
            graphs.append(capture.graph)
    finally:
        stop.set()
        thread.join(120)
    assert not errors, errors
    wp.synchronize()
    assert set(a.list()) == {0.0}  # nothing of the captures has run
    assert launched and set(x.list()) == {after(launched)}
    before = x.list()
    for graph in graphs[:10]:
        wp.capture_launch(graph, stream=stream)
    wp.synchronize_stream(stream)
    assert set(a.list()) == {30.0} and x.list() == before


@pytest.mark.parametrize("mode", list(wp.CaptureMode))
def test_calls_of_other_threads_while_one_captures(mode):
    """In global mode the driver forbids other threads what may wait for the device, as an allocation without the pool:
    an error of that thread, which ends the capture. In the others, and with the pool, threads go on."""
    x = wp.zeros(4, dtype=float, device=DEVICE)
    wp.launch(add_one, 4, inputs=[x], device=DEVICE)
    x.zero_()
    stream = wp.Stream(DEVICE)
    made, errors = [], []

    def make(pool):
        try:
            with wp.ScopedMempool(DEVICE, pool):
                made.append(wp.ones(4, dtype=float, device=DEVICE).list())
        except RuntimeError as error:
            errors.append(str(error))

    for pool in (True, False):
        wp.synchronize()
        used = wp.get_device(DEVICE).free_memory
        try:
            with wp.ScopedCapture(stream=stream, capture_mode=mode) as capture:
                wp.launch(add_one, 4, inputs=[x], stream=stream)
                in_thread(lambda pool=pool: make(pool))
                wp.launch(add_one, 4, inputs=[x], stream=stream)
        except RuntimeError as error:
            assert "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" in str(error)
        is_forbidden = mode == wp.CaptureMode.GLOBAL and not pool
        assert (capture.graph is None) == is_forbidden and len(errors) == is_forbidden
        assert not stream.is_capturing
        if not is_forbidden:
            wp.capture_launch(capture.graph, stream=stream)
            wp.synchronize_stream(stream)
            assert x.list() == [2.0] * 4 and made.pop() == [1.0] * 4
            x.zero_()
        capture = None
        gc.collect()
        wp.synchronize()
        if wp.get_device(DEVICE).is_emulated:  # other processes take memory of a GPU, too
            assert wp.get_device(DEVICE).free_memory == used
    assert all("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" in error for error in errors)


# ---- interrupts ----


def interrupted(program, tmp_path):
    """The output of a program whose waits Ctrl-C ends: `interrupt_soon()` sends one later, after a second."""
    file = tmp_path / "program.py"
    file.write_text(
        """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
import numpy as np
import warp as wp

DEVICE = "cuda:0"
done = threading.Event()

def interrupt_soon(seconds=1.0):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

@wp.kernel
def turn(count: wp.array[int], x: wp.array[float]):
    x[0] = x[0] + 1.0

@wp.kernel
def stop(count: wp.array[int]):
    count[0] = 0

def endless(stream=None):
    "A graph that runs until somebody clears `count`."
    count, x = wp.ones(1, dtype=int, device=DEVICE), wp.zeros(1, dtype=float, device=DEVICE)
    wp.launch(turn, 1, inputs=[count, x], device=DEVICE)
    wp.launch(stop, 1, inputs=[count], device=DEVICE)
    count.fill_(1)
    wp.synchronize()
    with wp.ScopedCapture(device=DEVICE) as capture:
        wp.capture_while(count, lambda: wp.launch(turn, 1, inputs=[count, x], device=DEVICE))
    return capture.graph, count, x

@wp.kernel
def spin(flag: wp.array[int], count: wp.array[int]):
    while wp.atomic_add(flag, 0, 0) == 0:
        pass
    wp.atomic_add(count, 0, 1)

@wp.kernel
def raise_flag(flag: wp.array[int]):
    flag[0] = 1

def spinning(n):
    "Arrays for a kernel that runs until somebody sets `flag`, in a stream that has it, with `n` threads."
    flag, passed = wp.ones(1, dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    wp.launch(spin, n, inputs=[flag, passed], device=DEVICE)
    wp.launch(raise_flag, 1, inputs=[flag], device=DEVICE)  # loaded before something runs
    flag.zero_()
    passed.zero_()
    wp.synchronize()
    return flag, passed

graph, count, x = endless()
running, other = wp.Stream(DEVICE), wp.Stream(DEVICE)

def end_it():
    "Another stream stops the loop, which goes on after the interrupt."
    wp.launch(stop, 1, inputs=[count], stream=other)
    wp.synchronize_stream(other)
    wp.synchronize()
    print(wp.ones(3, dtype=float, device=DEVICE).list())
"""
        + program
    )
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=os.environ, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def stoppable():
    """Another stream stops an endless graph."""
    if not wp.get_device(DEVICE).is_emulated:
        pytest.skip("another stream stops the loop between two of its turns, on the emulated device at any time")


@pytest.mark.parametrize(
    "wait",
    [
        "wp.synchronize()",
        "wp.synchronize_device(DEVICE)",
        "wp.synchronize_stream(running)",
        "wp.synchronize_event(event)",
        "x.numpy()",
        "x.list()",
        "wp.copy(wp.zeros(1, dtype=float, device='cpu'), x)",
        "x.to('cpu')",
    ],
)
def test_ctrl_c_ends_a_wait_for_a_graph_that_runs_on(wait, tmp_path, stoppable):
    printed = interrupted(
        f"""
wp.set_stream(running)
wp.capture_launch(graph, stream=running)
event = running.record_event()
interrupt_soon()
begin = time.monotonic()
try:
    {wait}
    print("came to an end")
except KeyboardInterrupt:
    print("interrupted", 0.5 < time.monotonic() - begin < 30.0)
end_it()
""",
        tmp_path,
    )
    assert printed == "interrupted True\n[1.0, 1.0, 1.0]\n"


@pytest.mark.parametrize("order", ["0", "5"])
@pytest.mark.parametrize(
    "start",
    [
        "wp.launch(spin, 1000, inputs=[flag, passed], stream=running)",
        "wp.capture_launch(spinning_graph, stream=running)",
        "wp.capture_launch(looping_graph, stream=running)",
    ],
    ids=["a launch", "a graph", "a loop in a condition in a graph"],
)
def test_ctrl_c_ends_a_wait_for_one_kernel_that_runs_on(start, order, tmp_path, monkeypatch):
    """The kernel continues when it is waited for again."""
    monkeypatch.setenv("WEFT_EMULATED_STREAMS", order)
    printed = interrupted(
        f"""
turns, once = wp.ones(1, dtype=int, device=DEVICE), wp.ones(1, dtype=int, device=DEVICE)
flag, passed = spinning(1000)

def body():
    wp.launch(spin, 1000, inputs=[flag, passed], device=DEVICE)
    wp.launch(stop, 1, inputs=[turns], device=DEVICE)

def inner():
    wp.capture_while(turns, body)

with wp.ScopedCapture(device=DEVICE) as capture:
    wp.launch(spin, 1000, inputs=[flag, passed], device=DEVICE)
spinning_graph = capture.graph
with wp.ScopedCapture(device=DEVICE) as capture:
    wp.capture_if(once, inner)
looping_graph = capture.graph

{start}
event = running.record_event()
asked = running.is_complete, event.is_complete
for wait in (lambda: wp.synchronize_stream(running), wp.synchronize, lambda: wp.synchronize_event(event)):
    interrupt_soon(0.3)
    begin = time.monotonic()
    try:
        wait()
        print("came to an end")
    except KeyboardInterrupt:
        print("interrupted", 0.2 < time.monotonic() - begin < 30.0)
print(asked, running.is_complete)
wp.launch(turn, 1, inputs=[count, x], stream=other)
wp.synchronize_stream(other)  # another stream does not wait for it
wp.launch(raise_flag, 1, inputs=[flag], stream=other)
wp.synchronize_stream(other)
wp.synchronize()
print(running.is_complete, passed.list(), wp.ones(3, dtype=float, device=DEVICE).list())
""",
        tmp_path,
    )
    assert printed == "interrupted True\n" * 3 + "(False, False) False\nTrue [1000] [1.0, 1.0, 1.0]\n"


def test_a_program_may_end_while_a_kernel_runs_that_does_not_end(tmp_path):
    printed = interrupted(
        """
flag, passed = spinning(64)
wp.launch(spin, 64, inputs=[flag, passed], stream=running)
interrupt_soon()
try:
    wp.synchronize()
except KeyboardInterrupt:
    print("interrupted")
""",
        tmp_path,
    )
    assert printed == "interrupted\n"


def test_ctrl_c_ends_a_wait_for_launches(tmp_path, stoppable):
    """Faults of kernels of the launches are not raised in a thread that has gone on."""
    printed = interrupted(
        """
wp.config.mode = "debug"

@wp.kernel
def slow(x: wp.array[float], n: int):
    i = wp.tid()
    for _ in range(n):
        x[i] = x[i] * 0.5 + 1.0

y = wp.zeros(64, dtype=float, device=DEVICE)
wp.launch(slow, 64, inputs=[y, 1], device=DEVICE)
wp.capture_launch(graph, stream=running)
wp.get_stream(DEVICE).wait_stream(running)
interrupt_soon()
try:
    wp.launch(slow, 64, inputs=[y, 100], device=DEVICE)  # waits for its faults
    print("came to an end")
except KeyboardInterrupt:
    print("interrupted")
end_it()
print(0.0 < y.numpy()[0] <= 2.0)
wp.launch(slow, 64, inputs=[y, 10], device=DEVICE)
print(y.numpy()[0])
""",
        tmp_path,
    )
    assert printed == "interrupted\n[1.0, 1.0, 1.0]\nTrue\n2.0\n"


def test_a_signal_handler_runs_while_a_program_waits(tmp_path):
    """It stops the loop itself, and the wait comes to its end."""
    printed = interrupted(
        """
def handle(number, frame):
    print("handled")
    wp.launch(stop, 1, inputs=[count], stream=other)
    wp.synchronize_stream(other)

signal.signal(signal.SIGINT, handle)
wp.capture_launch(graph, stream=running)
interrupt_soon()
wp.synchronize_stream(running)
print(count.list(), x.numpy()[0] > 1.0)
""",
        tmp_path,
    )
    assert printed == "handled\n[0] True\n"


AT_THE_END = """
import sys
import threading
import time
import warp as wp
@wp.kernel
def long(x: wp.array[int]):
    for q in range(400000000):
        x[0] = (x[0] + q) % 1000
x = wp.zeros(1, dtype=int, device="{device}")
def work():
    if "{device}" == "cpu":
        wp.launch(long, 1, inputs=[x], device="cpu")
    else:
        wp.synchronize()
if "{device}" != "cpu":
    wp.launch(long, 1, inputs=[x], device="{device}")
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("ended", flush=True)
"""


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_program_ends_while_a_daemon_thread_waits(device, tmp_path):
    """Python ends that thread by unwinding it, which ended the process by a signal."""
    program = tmp_path / "program.py"
    program.write_text(AT_THE_END.format(device=device))
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, program],
            capture_output=True,
            text=True,
            env={**os.environ, "WARP_CUDA_DRIVER": "emulated"},
            timeout=120,
        )
        assert done.returncode == 0 and done.stdout == "ended\n", done.stderr

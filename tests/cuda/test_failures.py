"""Every call of the driver fails once: the error is clear, nothing leaks, and everything works afterwards.

The emulated driver counts its calls and lets one of them fail. Each scenario runs once to learn which functions of the
driver it calls and how often; then it runs again for each of these calls, which fails. `make test` takes every tenth
call, `--large` all of them.
"""

import ast
import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp
from driver_scenarios import DEVICE, SCENARIOS, foreign_captures, full_memory, launches, shout
from emulated_driver import driver_library

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]

UNKNOWN, OUT_OF_MEMORY = 999, 2

STRIDE = 10

KINDS = [b"allocations", b"pinned", b"streams", b"events", b"links"]

FUNCTIONS = re.findall(
    r"^WEFT_DRIVER(?:_RECENT)?\((\w+)",
    Path(__file__).parents[2].joinpath("src/runtime/cuda/driver.def").read_text(),
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def emulator():
    """The driver that the process uses."""
    if not wp.get_device(DEVICE).is_emulated:
        pytest.skip("only the emulated driver fails on demand")
    return driver_library()


def at_rest():
    gc.collect()
    wp.synchronize()
    # The emulated driver is late with what streams have left that are gone; to free pinned memory it does all of it.
    wp.empty(1, dtype=float, device="cpu", pinned=True)


def alive(emulator):
    at_rest()
    full_memory()  # streams give back the memory that they keep for reports: its size depends on earlier tests
    return {kind: emulator.weftEmulatedAlive(kind) for kind in KINDS}


def calls_of(scenario, emulator):
    """(function, which call of it) of a run."""
    emulator.weftEmulatedCalls(None)
    scenario()
    at_rest()
    return [(name, i + 1) for name in FUNCTIONS for i in range(emulator.weftEmulatedCalls(name.encode()))]


def fail_once(scenario, emulator, name, call, code):
    """The error, or None if the scenario did without that call."""
    emulator.weftEmulatedFail(name.encode(), call, code)
    error = None
    try:
        scenario()
        at_rest()
    except Exception as found:  # judged by the caller
        error = found.with_traceback(None)
    emulator.weftEmulatedFail(None, 0, 0)
    try:
        at_rest()  # the rest of the run may report the failure once more
    except RuntimeError:
        at_rest()
    return error


def check(scenario, emulator, failures):
    for _ in range(3):  # kernels are loaded, streams are made
        scenario()
    before = alive(emulator)
    for name, call, code in failures:
        where = f"{scenario.__name__}: call {call} of {name} fails with {code}"
        error = fail_once(scenario, emulator, name, call, code)
        if error is not None:
            said = "CUDA_ERROR_UNKNOWN (999)" if code == UNKNOWN else None
            assert isinstance(error, (RuntimeError, MemoryError)), f"{where}: {error!r}"
            assert said is None or said in str(error), f"{where}: {error}"
            assert code != OUT_OF_MEMORY or isinstance(error, MemoryError), f"{where}: {error!r}"
        scenario()
        assert alive(emulator) == before, where


def failures_of(scenario, emulator):
    for _ in range(2):
        scenario()
    calls = [(name, call, UNKNOWN) for name, call in calls_of(scenario, emulator)]
    assert calls
    return calls + [(name, call, OUT_OF_MEMORY) for name, call, _ in calls if "Alloc" in name]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_some_failing_driver_calls_are_errors_without_leaks(scenario, emulator, capsys):
    check(scenario, emulator, failures_of(scenario, emulator)[:: 2 * STRIDE])


@pytest.mark.large
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_failing_driver_call_is_an_error_without_leaks(scenario, emulator, capsys):
    check(scenario, emulator, failures_of(scenario, emulator))


START = """
import ctypes
from pathlib import Path
import warp as wp

driver = ctypes.CDLL(str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")))
driver.weftEmulatedCalls(None)
for attempt in range(2):
    try:
        x = wp.ones(3, dtype=float, device="cuda:0")
        print("sum", x.numpy().sum(), wp.get_device("cuda:0").is_cuda)
    except RuntimeError as error:
        print("error", error)
    if attempt == 0:
        called = [name for name in %r if driver.weftEmulatedCalls(name.encode())]
print(called)
"""

# The calls before there is an array, and whether CUDA is given up if they fail. A driver that does not start is not
# asked again; everything else is tried anew.
AT_THE_START = {
    "cuInit": True,
    "cuDriverGetVersion": True,
    "cuDeviceGetCount": True,
    "cuDeviceGetName": False,
    "cuDeviceGetAttribute": False,
    "cuDeviceGetUuid_v2": False,
    "cuDeviceGetPCIBusId": False,
    "cuDevicePrimaryCtxRetain": False,
    "cuDeviceGetDefaultMemPool": False,
    "cuMemPoolSetAttribute": False,
    "cuStreamCreate": False,
}


def started(fail=""):
    """The output of a process that makes its first array twice, and the functions that the first one called."""
    done = subprocess.run(
        [sys.executable, "-c", START % FUNCTIONS],
        capture_output=True,
        text=True,
        env={**os.environ, "WEFT_EMULATED_FAIL": fail},
        timeout=120,
    )
    *lines, called = done.stdout.splitlines() or [""]
    assert len(lines) == 2, done.stdout + done.stderr
    return lines, set(ast.literal_eval(called))


@pytest.mark.parametrize("function, lasts", AT_THE_START.items())
def test_a_call_fails_when_cuda_starts(emulator, function, lasts):
    lines, _ = started(f"{function}:1:999")
    assert lines[0].startswith("error") and "CUDA_ERROR_UNKNOWN (999)" in lines[0]
    assert lines[1] == (lines[0] if lasts else "sum 3.0 True")


# Functions of driver.def that no scenario reaches, and why.
NOT_REACHED = {
    "cuGetErrorName": "names failures: a test of its own",
    "cuGetErrorString": "names failures: a test of its own",
    "cuDeviceGet": "is of drivers whose numbers of devices are no handles: it is never called",
    "cuEventElapsedTime": "is called if a driver before 12.8 has no cuEventElapsedTime_v2",
    "cuStreamIsCapturing": "is cuStreamGetCaptureInfo_v3 in the emulated driver, and fails and counts as that",
    "cuFuncSetAttribute": "is of clusters, which need architecture 90: cuda/test_options.py",
    "cuLaunchKernelEx": "is of clusters, which need architecture 90: cuda/test_options.py",
    "cuOccupancyMaxPotentialClusterSize": "is of clusters, which need architecture 90: cuda/test_options.py",
    "cuIpcCloseMemHandle": "is of memory of another process: cuda/test_ipc.py",
    "cuIpcGetMemHandle": "is of memory of another process: cuda/test_ipc.py",
    "cuIpcOpenMemHandle_v2": "is of memory of another process: cuda/test_ipc.py",
    "cuIpcGetEventHandle": "is of an event of several processes: cuda/test_ipc.py",
    "cuIpcOpenEventHandle": "is of an event of another process: cuda/test_ipc.py",
    "cuUserObjectRelease": "is called only where cuGraphRetainUserObject has failed: a test of its own",
}


def test_every_function_that_is_called_fails_in_a_scenario(emulator, capsys):
    """A new function of the driver needs a scenario, or a reason."""
    lines, reached = started()
    assert lines == ["sum 3.0 True"] * 2 and reached >= set(AT_THE_START)
    alone = reached - set(AT_THE_START)  # of these the scenarios let each call fail
    everywhere = set()
    for scenario in SCENARIOS:
        scenario()
        everywhere |= {name for name, _ in calls_of(scenario, emulator)}
    assert alone <= everywhere
    assert set(FUNCTIONS) - everywhere - set(AT_THE_START) == set(NOT_REACHED)


@pytest.mark.parametrize("function", ["cuGetErrorName", "cuGetErrorString"])
def test_a_failure_has_its_number_where_the_driver_has_no_words(emulator, function):
    legacy = wp.Stream(DEVICE, cuda_stream=0)
    emulator.weftEmulatedFail(function.encode(), 1, UNKNOWN)
    with pytest.raises(RuntimeError, match=r"\(900\)") as caught:
        wp.capture_begin(stream=legacy)  # which the driver refuses by itself
    emulator.weftEmulatedFail(None, 0, 0)
    is_named = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)" in str(caught.value)
    assert is_named == (function == "cuGetErrorString") and "cuStreamBeginCapture()" in str(caught.value)
    legacy = None
    launches()


def test_what_a_graph_was_to_keep_is_given_back_where_it_does_not(emulator):
    foreign_captures()
    before = alive(emulator)
    emulator.weftEmulatedCalls(None)
    error = fail_once(foreign_captures, emulator, "cuGraphRetainUserObject", 1, UNKNOWN)
    assert "CUDA_ERROR_UNKNOWN (999)" in str(error)
    assert emulator.weftEmulatedCalls(b"cuUserObjectRelease") == 1
    foreign_captures()
    assert alive(emulator) == before


def test_what_a_launch_prints_is_not_lost_where_reading_it_fails(emulator, capfd):
    x = wp.full(3, 5.5, dtype=float, device=DEVICE)
    for _ in range(2):
        wp.launch(shout, 3, inputs=[x], device=DEVICE)
    emulator.weftEmulatedFail(b"cuMemcpyDtoHAsync_v2", 3, UNKNOWN)  # each launch has its report and its text
    with pytest.raises(RuntimeError, match="cuMemcpyDtoHAsync"):
        wp.synchronize_device(DEVICE)
    emulator.weftEmulatedFail(None, 0, 0)
    wp.synchronize_device(DEVICE)
    assert capfd.readouterr().out == "5.5\n5.5\n"

"""Calls of the driver in a launch, counted by the emulated one: one that gives work, and no memory."""

import ctypes
import re
from pathlib import Path

import pytest
import warp as wp
from emulated_driver import driver_library

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]

DEVICE = "cuda:0"
N = 64
DRIVER_DEF = Path(__file__).resolve().parents[2] / "src" / "runtime" / "cuda" / "driver.def"
FUNCTIONS = re.findall(r"^WEFT_DRIVER\w*\((\w+),", DRIVER_DEF.read_text(), re.MULTILINE)


@wp.struct
class Scaled:
    values: wp.array[float]
    factor: float


@wp.kernel
def add(x: wp.array[float], y: wp.array[float], z: wp.array[float]):
    i = wp.tid()
    z[i] = x[i] + y[i]


@wp.kernel
def scale(of: Scaled):
    i = wp.tid()
    of.values[i] = of.values[i] * of.factor


@wp.kernel
def print_negative(x: wp.array[float]):
    i = wp.tid()
    if x[i] < 0.0:
        print(x[i])


@wp.kernel
def add_neighbours(grid: wp.uint64, points: wp.array[wp.vec3], counts: wp.array[int]):
    i = wp.tid()
    query = wp.hash_grid_query(grid, points[i], 0.5)
    for _ in query:
        counts[i] += 1


@pytest.fixture(scope="module")
def driver():
    if not wp.get_device(DEVICE).is_emulated:
        pytest.skip("only the emulated driver counts its calls")
    library = driver_library()
    library.weftEmulatedCalls(None)
    return library


def calls_of(driver, work, times=8):
    """{function of the driver: calls} in some runs of `work`; it has run before, and the device is idle."""
    work()
    wp.synchronize()
    before = {name: driver.weftEmulatedCalls(name.encode()) for name in FUNCTIONS}
    for _ in range(times):
        work()
    after = {name: driver.weftEmulatedCalls(name.encode()) for name in FUNCTIONS}
    wp.synchronize()
    return {name: after[name] - before[name] for name in FUNCTIONS if after[name] != before[name]}


def numbers(value=1.0):
    return wp.full(N, value, dtype=float, device=DEVICE)


# The context of this thread is asked for, which is a look into its own memory; the launch alone goes to the driver.
ONE_LAUNCH = {"cuCtxGetCurrent": 8, "cuLaunchKernel": 8}


def test_a_launch_with_arrays_is_one_call(driver):
    x, y, z = numbers(), numbers(2.0), numbers()
    assert calls_of(driver, lambda: wp.launch(add, N, inputs=[x, y, z], device=DEVICE)) == ONE_LAUNCH
    assert z.numpy().tolist() == [3.0] * N


def test_a_launch_with_a_struct_is_one_call(driver):
    of = Scaled()
    of.values, of.factor = numbers(), 2.0
    assert calls_of(driver, lambda: wp.launch(scale, N, inputs=[of], device=DEVICE)) == ONE_LAUNCH
    assert of.values.numpy().tolist() == [2.0**9] * N


def test_a_recorded_launch_is_one_call(driver):
    x, y, z = numbers(), numbers(2.0), numbers()
    command = wp.launch(add, N, inputs=[x, y, z], device=DEVICE, record_cmd=True)
    assert calls_of(driver, command.launch) == ONE_LAUNCH


def test_a_launch_with_a_hash_grid_is_one_call(driver):
    points = wp.zeros(N, dtype=wp.vec3, device=DEVICE)
    grid = wp.HashGrid(4, 4, 4, device=DEVICE)
    grid.build(points, 0.5)
    counts = wp.zeros(N, dtype=int, device=DEVICE)
    found = calls_of(driver, lambda: wp.launch(add_neighbours, N, inputs=[grid.id, points, counts], device=DEVICE))
    assert found.get("cuLaunchKernel") == 8
    assert not [name for name in found if "Alloc" in name or "Free" in name], found
    assert counts.numpy().tolist() == [9 * N] * N


def test_launches_that_may_print_use_their_memory_again(driver, capfd):
    """After as many launches have been waited for, there is memory for reports."""
    x = numbers()

    def work():
        for _ in range(2):
            wp.launch(print_negative, N, inputs=[x], device=DEVICE)

    for _ in range(8):
        work()
    wp.synchronize()
    found = calls_of(driver, work, times=4)
    assert found == {"cuCtxGetCurrent": 8, "cuLaunchKernel": 8}
    x[:3].fill_(-1.0)  # a print leaves no trace in the memory of the next launch
    wp.launch(print_negative, N, inputs=[x], device=DEVICE)
    wp.synchronize()
    x.fill_(1.0)
    wp.launch(print_negative, N, inputs=[x], device=DEVICE)
    wp.synchronize()
    assert capfd.readouterr().out.split() == ["-1"] * 3


def test_a_thread_without_a_context_keeps_the_primary_one(driver):
    import threading

    found = []

    def work():
        handle = ctypes.c_void_p()
        driver.cuCtxGetCurrent(ctypes.byref(handle))
        found.append(handle.value)
        wp.launch(add, N, inputs=[x, x, x], device=DEVICE)
        driver.cuCtxGetCurrent(ctypes.byref(handle))
        found.append(handle.value)

    x = numbers()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] is None and found[1] == wp.get_device(DEVICE).context

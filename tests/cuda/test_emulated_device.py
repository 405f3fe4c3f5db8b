"""The emulated device: it finds what kernels do wrong, and is set by the environment."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp
from cuda_programs import run

# ---- what the emulated device finds ----
WRONG = """
import warp as wp
@wp.kernel
def wrong(x: wp.array[float]):
    i = wp.tid()
    x[i + 1000000] = 1.0
x = wp.zeros(10, device="cuda")
wp.launch(wrong, 10, inputs=[x], device="cuda")
try:
    print(x.numpy())
except RuntimeError as error:
    print("caught", error)
"""


def test_a_kernel_that_writes_elsewhere_is_named():
    text = run(WRONG, WARP_CUDA_DRIVER="emulated")
    assert "caught" in text and "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in text
    assert re.search(r"kernel 'weft_0_wrong', thread \(\d, 0, 0\) of block \(0, 0, 0\)", text)  # one of the ten
    assert re.search(r"\n  at .+:6\n  PTX line \d+: st", text)


ONE_OF_TWO = """
import warp as wp
@wp.kernel
def wrong(x: wp.array[float]):
    x[wp.tid() + 1000000] = 1.0
x = wp.zeros(10, dtype=float, device="cuda:1")
wp.launch(wrong, 10, inputs=[x], device="cuda:1")
for device in ("cuda:1", "cuda:0"):
    try:
        with wp.ScopedMempool(device, False):
            wp.zeros(1 << 40, dtype=float, device=device)
            wp.synchronize_device(device)
    except RuntimeError as error:
        print(device, "says", error)
print(wp.ones(3, dtype=float, device="cuda:0").list())
"""


def test_an_error_tells_of_faults_of_its_own_device():
    text = run(ONE_OF_TWO, WARP_CUDA_DRIVER="emulated")
    ours, other = text.split("cuda:0 says")
    assert "out of bounds: a store" in ours and "out of bounds" not in other and "[1.0, 1.0, 1.0]" in other


BESIDE_BYTES = """
import warp as wp
number, size = wp.{type}, {size}
@wp.kernel
def shift(x: wp.array[number], y: wp.array[number]):
    i = wp.tid()
    y[i] = x[i + 1]
@wp.kernel
def count(x: wp.array[number]):
    wp.atomic_add(x, size - 1, number(2))
x = wp.zeros(size, dtype=number, device="cuda")
wp.launch(count, 50, inputs=[x], device="cuda")
print(x.list()[-1])
x.assign(range(1, size + 1))
y = wp.zeros_like(x)
wp.launch(shift, size - 1, inputs=[x, y], device="cuda")
print(y.list())
try:
    wp.launch(shift, size, inputs=[x, y], device="cuda")
    wp.synchronize()
except RuntimeError as error:
    print("caught", error)
"""


@pytest.mark.parametrize("type, size", [("int8", 5), ("uint8", 2), ("int16", 3), ("uint16", 1)])
def test_arrays_of_small_numbers_end_where_they_do(type, size):
    """Their memory is a whole number of words, for atomics, which change whole words."""
    text = run(BESIDE_BYTES.format(type=type, size=size), WARP_CUDA_DRIVER="emulated")
    size_bytes = size * (1 if type.endswith("int8") else 2)
    shifted = [*range(2, size + 1), 0]
    assert text.startswith(f"100\n{shifted}\ncaught") and f"0 bytes behind an allocation of {size_bytes} bytes" in text


ENDLESS = """
import warp as wp
wp.config.lineinfo = True
@wp.kernel
def endless(x: wp.array[int]):
    i = wp.tid()
    while x[0] < 1:
        x[i + 1] = x[i + 1] + 1
@wp.kernel
def count(x: wp.array[int]):
    for _ in range(1000):
        wp.atomic_add(x, 0, 1)
x, other = wp.zeros(100, dtype=int, device="cuda:0"), wp.zeros(3, dtype=int, device="cuda:1")
wp.launch(count, 20 * 256, inputs=[x], device="cuda:0")
print(x.list()[0])
x.zero_()
wp.launch(endless, 50, inputs=[x], device="cuda:0")
for _ in range(2):
    try:
        wp.synchronize_device("cuda:0")
    except RuntimeError as error:
        print("caught", error)
wp.launch(count, 2, inputs=[other], device="cuda:1")
print(other.list(), wp.ones(2, dtype=int, device="cpu").list())
"""


def test_a_kernel_that_does_not_end_is_stopped_where_a_limit_is_set():
    """Each warp of a block may execute as much; the device is lost as after other faults, the others go on."""
    text = run(ENDLESS, WARP_CUDA_DRIVER="emulated", WEFT_EMULATED_LIMIT="500000")
    first, fault, *rest = text.split("caught ")
    assert first == "5120000\n"  # of blocks that execute far more together
    assert "CUDA_ERROR_LAUNCH_TIMEOUT (702)" in fault and "the limit is 500000 (WEFT_EMULATED_LIMIT)" in fault
    assert re.search(r"kernel 'weft_0_endless', thread \(\d+, 0, 0\) of block \(0, 0, 0\)\n  at .*:\d+\n", fault)
    line = int(re.search(r":(\d+)\n", fault[fault.index("\n  at ") :]).group(1))
    assert ENDLESS.splitlines()[line - 1].strip() in ("while x[0] < 1:", "x[i + 1] = x[i + 1] + 1")
    assert "CUDA_ERROR_LAUNCH_TIMEOUT (702)" in rest[0] and rest[0].endswith("[2000, 0, 0] [1, 1]\n")


START = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
driver.weftEmulatedLastFault.restype = ctypes.c_char_p
print(driver.cuInit(0), driver.weftEmulatedLastFault().decode())
"""


def start_emulated_device(**settings):
    """The code that cuInit() of the emulated device gives with these settings, and what it says."""
    library = Path(wp.__file__).parent / "weft-emulated-cuda.so"
    environment = {**os.environ, **{f"WEFT_EMULATED_{name}": text for name, text in settings.items()}}
    done = subprocess.run([sys.executable, "-c", START, library], capture_output=True, text=True, env=environment)
    code, _, said = done.stdout.partition(" ")
    return int(code), said.strip()


@pytest.mark.parametrize(
    "name, wrong, expected",
    [
        ("ARCH", ["sm_90", "9.0", "9", "201", "-1"], "the number of an architecture from 50 to 200, as in 90"),
        (
            "VERSION",
            ["12.8", "1208", "100000", " 13000"],
            "a version of CUDA from 11000 to 99000, as in 12080 for 12.8",
        ),
        ("MEMORY", ["8G", "0x1000", "-5", "0", "18446744073709551616"], "the bytes of a device, as in 8589934592"),
        ("LIMIT", ["1 s", "1e9"], "how many instructions a warp may execute, as in 1000000000; 0: no limit"),
        ("RACES", ["off", "2"], "0 or 1, whether races are looked for"),
        ("STREAMS", ["Eager", "late", "-1", "7 "], "a seed, as in 7, 0 for none, or eager"),
        (
            "FAIL",
            ["cuMemAllocAsync", "cuMemAllocAsync:3", "cuMemAlloc:1:2", "cuInit:0:2", "cuInit:1:0", "cuInit:1:OUT"],
            "a function of the driver as it is exported, which of its calls fails, from 1 on, and with what code",
        ),
    ],
)
def test_a_wrong_setting_of_the_emulated_device_is_named(name, wrong, expected):
    for text in wrong:
        code, said = start_emulated_device(**{name: text})
        assert code == 1 and said.startswith(f"WEFT_EMULATED_{name} is '{text}', expected {expected}")


def test_all_wrong_settings_are_named_together():
    error = run(
        "import warp as wp\ntry:\n    wp.get_device('cuda')\nexcept RuntimeError as error:\n    print(error)",
        WARP_CUDA_DRIVER="emulated",
        WEFT_EMULATED_ARCH="ninety",
        WEFT_EMULATED_RACES="no",
    )
    assert "does not start: CUDA_ERROR_INVALID_VALUE (1)" in error
    assert "WEFT_EMULATED_ARCH is 'ninety', expected" in error and "; WEFT_EMULATED_RACES is 'no', expected" in error


def test_an_empty_setting_of_the_emulated_device_is_none():
    names = ("ARCH", "VERSION", "MEMORY", "LIMIT", "RACES", "STREAMS", "FAIL")
    nothing = {f"WEFT_EMULATED_{name}": "" for name in names}
    program = """
import warp as wp
device = wp.get_device("cuda:0")
print(device.arch, device.total_memory, wp.get_cuda_driver_version(), wp.ones(2, device=device).list())
"""
    assert run(program, WARP_CUDA_DRIVER="emulated", **nothing) == "90 8589934592 (13, 0) [1.0, 1.0]\n"


def test_what_is_set_holds_for_the_emulated_device():
    program = """
import warp as wp
device = wp.get_device("cuda:0")
print(device.arch, device.total_memory, wp.get_cuda_driver_version())
try:
    wp.zeros(3000000, dtype=wp.uint8, device=device)
except RuntimeError as error:
    print(type(error).__name__)
"""
    settings = {"ARCH": "86", "VERSION": "12080", "MEMORY": "2500000"}
    text = run(program, WARP_CUDA_DRIVER="emulated", **{f"WEFT_EMULATED_{name}": of for name, of in settings.items()})
    assert text.splitlines()[0] == "86 2500000 (12, 8)" and "Error" in text.splitlines()[1]


def test_the_report_says_that_the_device_is_emulated():
    done = subprocess.run(
        [sys.executable, "-m", "warp"],
        capture_output=True,
        text=True,
        env={**os.environ, "WARP_CUDA_DRIVER": "emulated"},
    )
    arch = wp.get_device("cuda:0").arch if wp.is_cuda_available() else 90  # $WEFT_EMULATED_ARCH may choose it
    assert f"Device cuda:0: Weft emulated device sm_{arch}, sm_{arch}: an emulated device" in done.stdout
    assert "CUDA:          2 devices" in done.stdout

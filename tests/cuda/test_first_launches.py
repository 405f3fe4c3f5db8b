"""The machine code of several modules is made beside each other, in NVIDIA's library; if that fails, by the driver.

The library is one of the test's own (slow_nvjitlink.cpp), which takes its time and makes images of the emulated driver.
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]

COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
KERNELS = 4
PROGRAM = """
import ctypes, sys
from pathlib import Path
import warp as wp

@wp.kernel
def squares(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] * x[i]

@wp.kernel
def cubes(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] * x[i] * x[i]

@wp.kernel
def doubles(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + x[i]

@wp.kernel
def halves(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] * 0.5

driver = ctypes.CDLL(str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")))
driver.weftEmulatedCalls.argtypes = [ctypes.c_char_p]
driver.weftEmulatedCalls.restype = ctypes.c_uint64
wp.get_device("cuda:0").context
driver.weftEmulatedCalls(None)
wp.load_module(device="cuda:0", max_workers=4)
loads = driver.weftEmulatedCalls(b"cuModuleLoadDataEx")
results = []
for kernel in (squares, cubes, doubles, halves):
    x = wp.full(8, 3.0, dtype=float, device="cuda:0")
    wp.launch(kernel, 8, inputs=[x], device="cuda:0")
    results.append(float(x.numpy()[5]))
print([results, loads, driver.weftEmulatedCalls(b"cuLinkCreate_v2")])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not wp.get_device("cuda:0").is_emulated:
        pytest.skip("the library makes images of the emulated driver")
    if COMPILER is None:
        pytest.skip("there is no C++ compiler on this machine")
    made = tmp_path_factory.mktemp("library") / "libnvJitLink.so.12"
    source = Path(__file__).with_name("slow_nvjitlink.cpp")
    subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", source, "-o", made, "-ldl"], check=True)
    return made


@pytest.fixture
def run(tmp_path):
    """Runs the program: the results, loaded modules, links of the driver, and the log of the library."""
    program, log = tmp_path / "program.py", tmp_path / "log"
    program.write_text(PROGRAM)

    def run_it(**environment):
        log.write_text("")
        settings = {
            **os.environ,
            "WARP_CUDA_DRIVER": "emulated",
            "WARP_CACHE_PATH": str(tmp_path / "cache"),
            "WEFT_TEST_LOG": str(log),
            "WEFT_TEST_DRIVER": str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")),
            **{name: str(value) for name, value in environment.items()},
        }
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=settings, timeout=120)
        assert done.returncode == 0, done.stderr
        results, loads, links = ast.literal_eval(done.stdout.splitlines()[-1])
        assert results == [9.0, 27.0, 6.0, 1.5]
        return loads, links, log.read_text().split()

    return run_it


def most_at_once(log):
    """How many compilations were in progress at a time."""
    inside, most = 0, 0
    for word in log:
        inside += 1 if word == "begin" else -1
        most = max(most, inside)
    return most


def test_modules_are_compiled_beside_each_other(run, library):
    loads, links, log = run(WARP_PTX_COMPILER=library)
    assert loads == KERNELS and links == KERNELS  # the library's own
    assert log.count("begin") == log.count("end") == KERNELS
    assert most_at_once(log) >= 3
    loads, links, log = run(WARP_PTX_COMPILER=library)
    assert (loads, links, log) == (KERNELS, 0, [])  # from the cache


def test_if_the_library_fails_the_driver_compiles(run, library):
    loads, links, log = run(WARP_PTX_COMPILER=library, WEFT_TEST_FAILS=1)
    assert log.count("begin") == KERNELS and loads == links == KERNELS
    loads, links, log = run()
    assert (loads, links, log) == (KERNELS, 0, [])


@pytest.mark.parametrize("named", ["/nowhere/libnvJitLink.so.12", "/nowhere/ptxas"])
def test_a_compiler_that_is_not_there_leaves_it_to_the_driver(run, named):
    loads, links, log = run(WARP_PTX_COMPILER=named)
    assert loads == links == KERNELS and log == []

"""The mathematical functions of both libraries for GPUs, libdevice and libclc, beside their true values."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

HERE = Path(__file__).parent
LIBCLC = Path("/usr/lib/clc/nvptx64--.bc")
pytestmark = pytest.mark.gpu

# Units in the last place that the functions may be off, those of libdevice and those of libclc.
LIMITS = {"erfc": 3.0}
USUAL = 2.0


@pytest.fixture(scope="module", params=["libdevice", "libclc"])
def measured(request):
    """The output of library_accuracy.py for a library."""
    if request.param == "libclc" and not LIBCLC.exists():
        pytest.skip("needs libclc, of the Debian package libclc-22")
    environment = {**os.environ, "WARP_LIBDEVICE": "libclc" if request.param == "libclc" else ""}
    command = [sys.executable, HERE / "library_accuracy.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_functions_are_within_the_stated_error(measured):
    errors = measured["errors"]
    assert len(errors) == 38
    assert {key: error for key, error in errors.items() if error > LIMITS.get(key.split()[0], USUAL)} == {}
    assert errors["mod float32"] == errors["mod float64"] == 0.0


def test_special_values_come_out_as_in_c(measured):
    assert measured["wrong"] == {}


@pytest.mark.skipif(not LIBCLC.exists(), reason="needs libclc, of the Debian package libclc-22")
def test_a_kernel_is_compiled_with_the_library_that_is_named(tmp_path):
    """Also from the cache: a kernel of one library is none of the other."""
    program = (
        "import warp as wp\n"
        "@wp.kernel\n"
        "def k(x: wp.array[float]):\n    x[wp.tid()] = wp.sin(x[wp.tid()])\n"
        "x = wp.full(1, 0.5, dtype=float, device='cuda:0')\n"
        "wp.launch(k, 1, inputs=[x], device='cuda:0')\n"
        "print(float(x.numpy()[0]), 'copysign' in k.listing('optimized_llvm', device='cuda:0'))\n"
    )
    path = tmp_path / "program.py"
    path.write_text(program)
    found = []
    for library in ("", "libclc", str(LIBCLC), ""):
        environment = {**os.environ, "WARP_LIBDEVICE": library, "WARP_CACHE_PATH": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[1] == found[2] and found[0] == found[3]
    files = [path.read_bytes() for path in (tmp_path / "cache").rglob("*.weft")]
    images = [content for content in files if b"weft em" in content]  # that the emulated driver has made of kernels
    assert len(files) == 2 * len(images) == 4


@pytest.mark.skipif(not LIBCLC.exists(), reason="needs libclc, of the Debian package libclc-22")
@pytest.mark.large
def test_the_table_of_builtins_with_libclc():
    """The figures of libdevice hold for libclc, but that its exp of float32, and so erfc, makes no subnormal numbers
    (docs/cuda.md)."""
    table = "tests/builtins/test_table.py"
    without = [f"--deselect={table}::test_values_and_bits[{name}]" for name in ("exp", "erfc")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--device", "cuda:0", table, *without]
    done = subprocess.run(
        command,
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        env={**os.environ, "WARP_LIBDEVICE": "libclc"},
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_a_libclc_that_is_not_there_is_named(tmp_path):
    program = "import warp as wp\n@wp.kernel\ndef k(x: wp.array[float]):\n    x[wp.tid()] = wp.sin(1.0)\n"
    path = tmp_path / "program.py"
    path.write_text(program + "wp.launch(k, 1, inputs=[wp.zeros(1, dtype=float, device='cuda:0')], device='cuda:0')\n")
    environment = {**os.environ, "WARP_LIBDEVICE": str(tmp_path / "nvptx64--.bc")}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode != 0 and "cannot be read as libdevice" in done.stderr and "libclc" in done.stderr
    assert wp.get_device("cuda:0").is_cuda

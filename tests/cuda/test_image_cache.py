"""Machine code that the driver has made lies in the disk cache, and the next process loads it from there.

The emulated driver makes images of its own of PTX, by the calls with which real ones make machine code. Each process
here has a cache of the test's own and says how often it called which function of the driver.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]

PROGRAM = """
import ctypes, os, sys
from pathlib import Path
import warp as wp

driver = ctypes.CDLL(str(Path(wp._weft.__file__).with_name("weft-emulated-cuda.so")))
driver.weftEmulatedCalls.argtypes = driver.weftEmulatedAlive.argtypes = [ctypes.c_char_p]
driver.weftEmulatedCalls.restype = driver.weftEmulatedAlive.restype = ctypes.c_uint64
driver.weftEmulatedCalls(None)
wp.config.cache_kernels = os.environ.get("NO_CACHE") is None

@wp.kernel
def squares(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i] + 1.0

x = wp.array([float(i) for i in range(100)], dtype=float, device="cuda:0")
y = wp.zeros(100, dtype=float, device="cuda:0")
wp.launch(squares, 100, inputs=[x, y], device="cuda:0")
result = y.numpy().tolist()
names = ("cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy", "cuModuleLoadDataEx")
calls = {name: driver.weftEmulatedCalls(name.encode()) for name in names}
print({"result": result, "links": driver.weftEmulatedAlive(b"links"), **calls})
"""


@pytest.fixture
def run(tmp_path):
    """Runs the program in a process of its own; its answer."""
    if not wp.get_device("cuda:0").is_emulated:
        pytest.skip("only the emulated driver counts its calls")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def run_it(**environment):
        done = subprocess.run(
            [sys.executable, program],
            capture_output=True,
            text=True,
            env={**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache"), **environment},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        answer = ast.literal_eval(done.stdout.splitlines()[-1])
        x = np.arange(100, dtype=np.float64)
        np.testing.assert_allclose(answer["result"], np.sin(x) * x + 1.0, rtol=3e-6, atol=1e-5)
        assert answer["links"] == 0, "a link that was not given back"
        return answer

    return run_it


def files(tmp_path):
    return sorted((tmp_path / "cache").rglob("*.weft"))


def images(tmp_path):
    """Files of the cache with machine code in them."""
    return [path for path in files(tmp_path) if b"\x7fELF\x02\x01\x01\x00\x08weft em" in path.read_bytes()]


def test_the_next_process_compiles_nothing(run, tmp_path):
    first = run()
    made = first["cuLinkCreate_v2"]
    assert made >= 1 and first["cuModuleLoadDataEx"] == made == len(images(tmp_path))
    for name in ("cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy"):
        assert first[name] == made
    second = run()
    assert second["cuLinkCreate_v2"] == 0 and second["cuModuleLoadDataEx"] == made
    assert second["result"] == first["result"]


def test_other_drivers_and_other_gpus_have_images_of_their_own(run, tmp_path):
    made = run()["cuLinkCreate_v2"]
    assert run(WEFT_EMULATED_VERSION="12090")["cuLinkCreate_v2"] == made
    assert run(WEFT_EMULATED_ARCH="80")["cuLinkCreate_v2"] == made
    assert len(images(tmp_path)) == 3 * made
    for environment in ({}, {"WEFT_EMULATED_VERSION": "12090"}, {"WEFT_EMULATED_ARCH": "80"}):
        assert run(**environment)["cuLinkCreate_v2"] == 0


def test_damaged_images_are_made_anew(run, tmp_path):
    made = run()["cuLinkCreate_v2"]
    before = {path: path.read_bytes() for path in images(tmp_path)}
    for path, content in before.items():
        path.write_bytes(content[:-7] + bytes([content[-7] ^ 1]) + content[-6:])
    assert run()["cuLinkCreate_v2"] == made
    assert {path: path.read_bytes() for path in images(tmp_path)} == before


def test_an_image_that_the_driver_refuses_is_made_anew(run, tmp_path):
    made = run()["cuLinkCreate_v2"]
    refused = run(WEFT_EMULATED_FAIL="cuModuleLoadDataEx:1:209")
    assert refused["cuLinkCreate_v2"] == 1 and refused["cuModuleLoadDataEx"] == made + 1
    assert run()["cuLinkCreate_v2"] == 0 and len(images(tmp_path)) == made


@pytest.mark.parametrize("name", ["cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy"])
def test_where_a_link_fails_the_text_is_loaded(run, tmp_path, name):
    """A link that cannot be given back is given back at the second attempt, and its image is as good as any."""
    first = run(WEFT_EMULATED_FAIL=f"{name}:1:999")
    lost = int(name != "cuLinkDestroy")
    assert len(images(tmp_path)) == first["cuLinkCreate_v2"] - lost
    second = run()
    assert second["cuLinkCreate_v2"] == lost and second["result"] == first["result"]


def test_where_a_fresh_image_is_refused_the_text_is_loaded(run, tmp_path):
    first = run(WEFT_EMULATED_FAIL="cuModuleLoadDataEx:1:200")
    assert len(images(tmp_path)) == first["cuLinkCreate_v2"] - 1
    assert first["cuModuleLoadDataEx"] == first["cuLinkCreate_v2"] + 1


def test_nothing_is_kept_where_kernels_are_not(run, tmp_path):
    first = run(NO_CACHE="1")
    assert first["cuLinkCreate_v2"] == 0 and first["cuModuleLoadDataEx"] >= 1
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_written_costs_the_keeping(run, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    assert run()["cuLinkCreate_v2"] >= 1
    assert (tmp_path / "cache").read_text() == "no folder"


def test_clearing_the_cache_removes_images_too(run, tmp_path):
    run()
    assert images(tmp_path)
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    clear = "import warp as wp; wp.clear_kernel_cache()"
    subprocess.run([sys.executable, "-c", clear], check=True, env=environment, timeout=120)
    assert files(tmp_path) == []


def test_texts_are_where_kernels_lie(run, tmp_path):
    """One cache: kernels as PTX, and the machine code of each."""
    run()
    texts = [path for path in files(tmp_path) if path not in images(tmp_path)]
    assert len(texts) == 1 and b".target sm_" in texts[0].read_bytes()
    assert all(Path(path).suffix == ".weft" for path in images(tmp_path))

"""PTX in files, for tools: files that a run writes, and files that it reads; kernels that are compiled and loaded
before their first launch."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]

PROGRAM = """
import warp as wp
@wp.kernel
def triple(x: wp.array[float]):
    i = wp.tid()
    x[i] = 3.0 * x[i]
x = wp.array([1.0, 2.0], dtype=float, device="cuda:0", requires_grad=True)
with wp.Tape() as tape:
    y = wp.clone(x)
    wp.launch(triple, 2, inputs=[y], device="cuda:0")
tape.backward(grads={y: wp.ones(2, device="cuda:0")})
print(y.numpy().tolist(), x.grad.numpy().tolist())
"""

LARGEST = """
import warp as wp
@wp.kernel
def largest(x: wp.array[float], most: wp.array[float]):
    wp.atomic_max(most, 0, x[wp.tid()] * 2.0)
x = wp.array([1.0, 2.0], dtype=float, device="cuda:0", requires_grad=True)
most = wp.zeros(1, dtype=float, device="cuda:0", requires_grad=True)
with wp.Tape() as tape:
    wp.launch(largest, 2, inputs=[x, most], device="cuda:0")
tape.backward(grads={most: wp.ones(1, device="cuda:0")})
print(most.numpy().tolist(), x.grad.numpy().tolist())
"""


def run(folder, program=PROGRAM, **environment):
    """The output of the program; its disk cache stays in the folder."""
    file = folder / "program.py"
    file.write_text(program)
    settings = {**os.environ, "WARP_CACHE_PATH": str(folder / "cache"), **environment}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=settings, timeout=120)
    return (done.stdout + done.stderr).strip()


def kept(folder):
    return {path.read_text().split("\n", 1)[0]: path for path in folder.glob("*.ptx")}


def test_a_run_leaves_its_texts_with_the_names_of_their_kernels(tmp_path):
    texts = tmp_path / "ptx"
    texts.mkdir()
    assert run(tmp_path, WEFT_KEEP_PTX=str(texts)) == "[3.0, 6.0] [3.0, 3.0]"
    files = kept(texts)
    assert {"// kernel triple", "// adjoint of kernel triple"} <= set(files)
    for file in files.values():
        assert len(file.stem) == 64 and ".visible .entry weft_" in file.read_text()
    assert all(file.suffix == ".ptx" for file in texts.iterdir())


def test_a_tape_keeps_what_atomics_gave_with_code_for_packed_arrays(tmp_path):
    texts = tmp_path / "ptx"
    texts.mkdir()
    assert run(tmp_path, LARGEST, WEFT_KEEP_PTX=str(texts)) == "[4.0] [0.0, 2.0]"
    launches = [text for text in map(Path.read_text, texts.glob("*.ptx")) if text.startswith("// kernel largest\n")]
    keeping = [text for text in launches if "st.global" in text]
    # An address with a stride that is not the element's size is a product of two registers.
    by_stride = re.compile(r"mad\.lo\.s64\s+%rd\d+, %rd\d+, %rd\d+")
    assert keeping and not any(by_stride.search(text) for text in launches)


def test_a_text_in_a_folder_is_taken_in_place_of_the_compiler_s(tmp_path):
    texts = tmp_path / "ptx"
    texts.mkdir()
    run(tmp_path, WEFT_KEEP_PTX=str(texts))
    file = kept(texts)["// kernel triple"]
    changed = re.sub(r"(mul\.rn\.f32\s+%r\d+, %r\d+, )0f40400000", r"\g<1>0f40A00000", file.read_text())
    assert changed != file.read_text()
    file.write_text(changed)
    # Past the disk cache, which has the compiler's, and which does not get the other one.
    assert run(tmp_path, WEFT_TAKE_PTX=str(texts)) == "[5.0, 10.0] [3.0, 3.0]"
    assert run(tmp_path) == "[3.0, 6.0] [3.0, 3.0]"
    # Kernels that the folder lacks come from the compiler.
    file.unlink()
    assert run(tmp_path, WEFT_TAKE_PTX=str(texts)) == "[3.0, 6.0] [3.0, 3.0]"


def test_folders_that_cannot_be_used_are_named(tmp_path):
    missing = str(tmp_path / "missing")
    text = run(tmp_path, WEFT_KEEP_PTX=missing, WARP_CACHE_PATH=str(tmp_path / "other"))
    assert f"WEFT_KEEP_PTX is '{missing}', and no file can be written there" in text
    text = run(tmp_path, WEFT_TAKE_PTX=missing)
    assert f"WEFT_TAKE_PTX is '{missing}', and that is no folder" in text


# ---- before the first launch ----


def kernel_of(number):
    @wp.kernel(module="unique")
    def fill(x: wp.array[float]):
        x[wp.tid()] = float(number)

    return fill


def test_a_kernel_is_compiled_for_the_device_that_is_named():
    kernel = kernel_of(31)
    assert not kernel.compile("cuda:0")["from_cache"]
    lanes = kernel.compile("cpu")["lanes"]
    assert lanes > 1 and kernel.compile("cuda:0")["lanes"] == 1
    x = wp.empty(3, dtype=float, device="cuda:0")
    wp.launch(kernel, 3, inputs=[x], device="cuda:0")
    np.testing.assert_array_equal(x.numpy(), 31.0)
    with pytest.raises(wp.UsageError, match=r"a device is a name like 'cpu', a Device or None"):
        kernel.compile(7)


LOADED = """
import warp as wp
@wp.kernel
def noisy(x: wp.array[float]):
    x[wp.tid()] = 1.0
wp.config.log_level = wp.LOG_DEBUG
wp.load_module(device=[DEVICES])
print("launch")
wp.launch(noisy, 1, inputs=[wp.zeros(1, device="cuda:0")], device="cuda:0")
"""


@pytest.mark.parametrize("devices, before", [("'cpu'", False), ("'cpu', 'cuda:0'", True)])
def test_a_module_is_loaded_on_the_devices_that_are_named(tmp_path, devices, before):
    file = tmp_path / "program.py"
    file.write_text(LOADED.replace("DEVICES", devices))
    settings = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-u", file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=settings
    )
    assert done.returncode == 0, done.stdout
    first, second = done.stdout.split("launch\n", 1)
    assert ("for sm_" in first) is before and ("for sm_" in second) is not before

"""Operators of PyTorch with tensors on a CUDA device: PyTorch's own autograd over memory of the emulated devices.

The build of PyTorch is one for the CPU. A library of the test tells it of CUDA devices before it is imported, and a few
operators for them are kernels of Weft (tests/support/torch_on_emulated_device.py). So the checks, which are those of
torch_cuda_program.py, run in a process of their own.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("torch"),
    pytest.mark.cpu_only("runs a program of its own on the emulated device, which says what failed"),
]

PROGRAM = Path(__file__).with_name("torch_cuda_program.py")
SUPPORT = Path(__file__).parents[1] / "support"


def checks():
    """The names of the program's checks, without importing it."""
    for statement in ast.parse(PROGRAM.read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "CHECKS":
            return [name.id for name in statement.value.elts]
    raise AssertionError("the program has no CHECKS")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch has a GPU")
    folder = Path(torch.__file__).parent
    library = tmp_path_factory.mktemp("torch") / "torch_on_emulated_device.so"
    source = SUPPORT / "torch_on_emulated_device.cpp"
    libraries = [f"-L{folder / 'lib'}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{folder / 'lib'}"]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-shared", "-fPIC", f"-I{folder / 'include'}"]
    subprocess.run([*command, str(source), "-o", str(library), *libraries], check=True)
    environment = {**os.environ, "WARP_CUDA_DRIVER": "emulated"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(library)], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("check", checks())
def test_operators_with_tensors_on_a_cuda_device(output, check):
    found = output.partition(f"{check}: ")[2]
    assert found.startswith("passed\n"), found or output

"""Captures, conditions and checks of CUDA devices: what the CPU cannot show of them."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.gpu
DEVICE = "cuda:0"


@pytest.fixture
def run(tmp_path):
    """What a program prints in a process of its own: an error of the device ends its use of CUDA."""

    def run(code):
        program = tmp_path / "program.py"
        program.write_text("import numpy as np\nimport warp as wp\n" + textwrap.dedent(code))
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


# ---- verify_cuda ----


@pytest.mark.seed("S-INI-007", "P-44")
def test_verify_cuda_names_the_kernel_that_failed_and_its_line(run):
    printed = run("""
        wp.config.verify_cuda = True
        wp.init()

        @wp.kernel
        def fine(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + 1.0

        @wp.kernel
        def wrong(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i + 1000000] = 1.0

        x = wp.zeros(10, device="cuda:0")
        wp.launch(fine, dim=10, inputs=[x], device="cuda:0")
        try:
            wp.launch(wrong, dim=10, inputs=[x], device="cuda:0")
        except RuntimeError as error:
            print("launch:", error)
        try:
            x.zero_()
        except RuntimeError as error:
            print("zero_:", error)
    """)
    launch, zero = printed.split("zero_:")
    assert launch.startswith("launch: launch(): kernel 'wrong' (") and "program.py:13:" in launch, launch
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in launch and "CUDA_ERROR_ILLEGAL_ADDRESS" in zero


@pytest.mark.seed("S-INI-007")
def test_without_verify_cuda_the_error_comes_from_who_waits(run):
    printed = run("""
        @wp.kernel
        def wrong(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i + 1000000] = 1.0

        x = wp.zeros(10, device="cuda:0")
        wp.launch(wrong, dim=10, inputs=[x], device="cuda:0")
        print("launched")
        try:
            wp.synchronize_device("cuda:0")
        except RuntimeError as error:
            print("waited:", error)
    """)
    assert printed.startswith("launched\nwaited: ") and "CUDA_ERROR_ILLEGAL_ADDRESS" in printed

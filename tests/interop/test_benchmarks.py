"""The benchmarks of interop by their names, and their output."""

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@pytest.mark.seed("P-20", "P-43", "S-BEN-001", "S-BEN-002", "S-BEN-003")
@pytest.mark.seed("S-BEN-004", waits="cuda")
@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_lines_of_the_benchmark(framework):
    name = f"warp.examples.benchmarks.benchmark_interop_{framework}"
    command = [sys.executable, "-m", name, "--rounds", "20", "--device", "cpu"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in out if line.startswith("dtype=")] == [
        "dtype=default",
        "dtype=float32",
        "dtype=vec3f",
        "dtype=mat22f",
    ]
    labels = [f"from_{framework}(...)", f"from_{framework}(..., return_ctype=True)", f"direct from {framework}"]
    lines = [line for line in out if not line.startswith("dtype=")]
    assert len(lines) == 12
    for line, label in zip(lines, labels * 4, strict=True):
        assert re.fullmatch(r" *\d+ ms  " + re.escape(label), line) and line.index(" ms") >= 5

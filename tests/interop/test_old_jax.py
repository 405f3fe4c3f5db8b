"""Programs as the documents of 2024 print them, with a JAX of that age: `make test-interop-old` installs it beside."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.interop_old


def run(name: str, processes: int = 0) -> str:
    """What a program of the folder `old` prints, alone or under mpirun."""
    command = [str(ROOT / ".venv-interop-old/bin/python"), str(ROOT / f"tests/interop/old/{name}.py")]
    if processes:
        options = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none"]
        command = ["mpirun", *options, "-np", str(processes), *command]
    path = str(Path(wp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.seed("P-24", "P-25", "S-DST-001", "S-DST-003", "S-DST-006")
@pytest.mark.parametrize("processes", [2, 3])
def test_a_kernel_in_shard_map(processes):
    lines = run("multiply", processes).splitlines()
    values = np.arange(5.0 * processes)
    assert lines == [
        f"Running on {processes} GPU(s)",
        "Test distributed multiplication using JAX + Warp",
        f"Input array: {values}",
        f"Warp Output: {2 * values}",
    ]


@pytest.mark.seed("P-27", "S-DST-004", "S-DST-005", "S-JAX-014")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_matrix_product_by_rows(processes):
    output = run("matmul", processes)
    a = np.arange(32.0 * processes).reshape(8 * processes, 4)
    b = np.arange(24.0).reshape(4, 6)
    of_kernel = re.search(r"Warp Output:\n(.*?)\nJAX Output:", output, re.DOTALL)[1]
    np.testing.assert_array_equal(np.array(re.sub(r"[\[\]]", " ", of_kernel).split(), float).reshape(-1, 6), a @ b)
    assert output.endswith(
        f"Expected shape: {(8 * processes, 6)}\nWarp output shape: {(8 * processes, 6)}\n"
        f"JAX output shape: {(8 * processes, 6)}\nAllclose: True\n"
    )


@pytest.mark.seed("P-33", "P-34", "S-DLP-005", "D-13")
def test_capsules_go_both_ways():
    assert run("capsules") == "shared\n"

"""The benchmarks for GPUs run, on the emulated device: each checks what it computes before it is timed."""

import importlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_tools import of_a_toolkit

BENCH = Path(__file__).resolve().parents[2] / "bench" / "gpu"


needs_nvcc = pytest.mark.skipif(of_a_toolkit("nvcc") is None, reason="needs nvcc, of the CUDA toolkit")
IN_CPP = pytest.param("bandwidth.py --small", "cpp", marks=needs_nvcc)


@pytest.mark.parametrize(
    "program, implementation",
    [*itertools.product(["bandwidth.py --small", "graph.py"], ["weft", "driver"]), IN_CPP],
)
def test_each_gpu_benchmark_runs_on_the_emulated_device(program, implementation):
    name, *options = program.split()
    command = [sys.executable, BENCH / name, "--with", implementation, "--seconds", "0.001", *options]
    settings = {**os.environ, "WARP_CUDA_DRIVER": "emulated"}
    done = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == (5 if options else 2) and all(row["ms"] > 0 for row in rows)


def test_run_lists_each_program_for_gpus(monkeypatch):
    """Also new ones: a program names those who can run it in its call of measure.arguments()."""
    monkeypatch.syspath_prepend(str(BENCH.parent))
    run = importlib.import_module("run")
    listed = {program.path.name: [i.name for i in program.implementations] for program in run.gpu_programs()}
    programs = {path.name for path in BENCH.glob("*.py") if "__main__" in path.read_text()}
    assert set(listed) == programs >= {"bandwidth.py", "geometry.py", "graph.py"}
    assert listed["bandwidth.py"] == ["weft", "driver", "cpp"] and all("weft" in names for names in listed.values())
    assert all(program in run.PROGRAMS for program in run.gpu_programs())

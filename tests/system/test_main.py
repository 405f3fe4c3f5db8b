"""`python -m warp` tells what Weft found on the machine."""

import os
import subprocess
import sys

import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")


def report(**environment):
    """The lines of `python -m warp` as {label: text}."""
    command = [sys.executable, "-m", "warp"]
    text = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout
    return {label.strip(): value.strip() for label, value in (line.split(":", 1) for line in text.splitlines())}


def test_the_report_names_version_processor_lanes_and_cuda():
    lines = report()
    assert lines["Weft"].startswith(wp.config.weft_version)
    assert lines["Device cpu"]
    bits = wp._weft.build_info()["vector_bits"]
    assert lines["Vector lanes"].startswith(f"{bits // 32} of 32 bits")
    assert "CUDA" in lines


def test_the_report_follows_the_environment(tmp_path):
    lines = report(WARP_CPU_THREADS="3", WARP_CACHE_PATH=str(tmp_path))
    assert lines["CPU threads"].startswith("3 ")
    assert str(tmp_path) in lines["Kernel cache"]

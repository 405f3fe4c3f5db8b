"""Numbers of lanes for all tests of tiles, and imports of what stands beside them."""

import sys
from pathlib import Path

import pytest
import warp as wp

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "gradients")]


@pytest.fixture
def blocks(monkeypatch):
    """Blocks have as many lanes as a launch asks for."""
    if not wp.get_device().is_cpu:
        pytest.skip("is about the CPU: blocks of GPUs have one lane")
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", True)


@pytest.fixture(params=[1, 64], ids=["one_lane", "many_lanes"])
def lanes(request, monkeypatch):
    """The `block_dim` of a launch. Each test that takes it runs with blocks of one lane and of 64 lanes, and means the
    same."""
    if request.param > 1 and not wp.get_device().is_cpu:
        pytest.skip("is about the CPU: blocks of GPUs have one lane")
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", request.param > 1)
    return request.param

"""The device library's PTX, which the C++ tests write, and that of the runtime's kernels for hash grids and
products are what NVIDIA's assembler takes."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from cuda_tools import PTXAS, needs_ptxas

pytestmark = pytest.mark.cpu_only("takes the emulated device by itself, whatever the default device is")

ROOT = Path(__file__).resolve().parents[2]
PROCESSORS = ("sm_75", "sm_90")
KERNELS = {
    "inlined": [f"call_closest_edge_edge{derivative}" for derivative in ("", "_tangent", "_adjoint")],
    "traversals": [
        *(f"call_mesh_ray_{what}" for what in ("nearest", "any", "count")),
        *(f"call_mesh_point_{what}" for what in ("closest", "side", "furthest")),
        *(f"call_bvh_next_{shape}" for shape in ("box", "sphere", "ray", "capsule")),
        *(f"call_mesh_next_{shape}" for shape in ("box", "sphere")),
        *(f"call_volume_{what}" for what in ("stencil", "lookup", "store")),
        *(f"call_mesh_{what}" for what in ("winding", "parity", "group_root")),
        "call_bvh_group_root",
        "call_triangles_meet",
    ],
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The folder of PTX texts."""
    folder = tmp_path_factory.mktemp("ptx")
    tests = ROOT / os.environ.get("BUILD", "build") / "test_jit"
    command = [str(tests), "--gtest_filter=*DevlibPtx*"]
    done = subprocess.run(command, env={**os.environ, "WEFT_PTX": str(folder)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@needs_ptxas
@pytest.mark.parametrize("part", KERNELS)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_ptxas_takes_the_library(texts, tmp_path, processor, part):
    for kind in ("f32", "f64"):
        cubin = tmp_path / f"{kind}.cubin"
        command = [PTXAS, f"--gpu-name={processor}", "--verbose", str(texts / f"{processor}_{kind}_{part}.ptx")]
        done = subprocess.run([*command, "-o", str(cubin)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert cubin.read_bytes()[:4] == b"\x7fELF"
        for kernel in KERNELS[part]:
            assert f"'{kernel}_{kind}' for '{processor}'" in done.stderr


@needs_ptxas
@pytest.mark.parametrize("processor", PROCESSORS)
def test_ptxas_takes_the_kernels_of_hash_grids(tmp_path, processor):
    text = ROOT / os.environ.get("BUILD", "build") / "devlib/cuda/hash_grid.ptx"
    command = [PTXAS, f"--gpu-name={processor}", "--verbose", str(text), "-o", str(tmp_path / "cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kernels = [f"weft_grid_{name}" for name in ("cells_f16", "cells_f32", "cells_f64", "end")]
    assert all(f"'{kernel}' for '{processor}'" in done.stderr for kernel in kernels)
    assert done.stderr.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(kernels)
    registers = [int(number) for number in re.findall(r"Used (\d+) registers", done.stderr)]
    assert max(registers) <= 96, "blocks of 256 threads: two of them on a multiprocessor at least"


@needs_ptxas
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_ptxas_takes_the_kernels_of_radix_sorts(tmp_path, processor, bits):
    text = ROOT / os.environ.get("BUILD", "build") / f"devlib/cuda/radix_sort_{bits}.ptx"
    command = [PTXAS, f"--gpu-name={processor}", "--verbose", str(text), "-o", str(tmp_path / "cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == 6
    found = dict(re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", done.stderr, re.DOTALL))
    assert len(found) == 6
    for kernel, registers in found.items():
        is_small = bits < 64 and kernel.endswith("_4")
        assert int(registers) <= (80 if is_small else 128), f"{kernel}: three blocks of 256 threads, or two"


@pytest.mark.seed("S-MUL-004")
@needs_ptxas
@pytest.mark.parametrize("module", ["f32", "f64", "f16", "bf16", "tf32"])
def test_products_keep_their_sums_in_registers(module, tmp_path):
    text = ROOT / os.environ.get("BUILD", "build") / f"devlib/cuda/matmul_{module}.ptx"
    bounds = re.findall(r"\.entry (\w+)\([^{]*?\.maxntid (\d+)", text.read_text(), re.DOTALL)
    assert len(bounds) == {"f32": 6, "f64": 6, "f16": 8, "bf16": 8, "tf32": 16}[module]
    for processor in ("sm_75", "sm_90") if module in ("f32", "f64") else ("sm_80", "sm_90"):
        command = [PTXAS, f"--gpu-name={processor}", "--verbose", str(text), "-o", str(tmp_path / "x")]
        log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        spills = [int(number) for number in re.findall(r"(\d+) bytes spill stores", log)]
        # some registers of the addresses outside of the inner products, at most
        assert len(spills) == len(bounds) and max(spills) <= 64, log

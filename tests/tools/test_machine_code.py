"""Paths through machine code of GPUs, and the rows that tools/gpu/compare_machine_code.py compares."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# A loop with a slow path and an unrolled main part of two elements, and a remainder of one.
TEXT = """
\t.section\t.text.total,"ax",@progbits
total:
.text.total:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/               @P0 BRA `(.L_x_3) ;
.L_x_1:
        /*0020*/                   LDG.E R4, desc[UR6][R2.64] ;
        /*0030*/                   LDG.E.64 R6, desc[UR6][R2.64+0x8] ;
        /*0040*/                   FADD R8, R4, R7 ;
        /*0050*/              @!P1 BRA `(.L_x_2) ;
        /*0060*/                   CALL.REL.NOINC `($total$slow) ;
        /*0070*/                   FMUL R8, R8, R8 ;
.L_x_2:
        /*0080*/                   STG.E desc[UR6][R2.64], R8 ;
        /*0090*/               @P2 BRA `(.L_x_1) ;
        /*00a0*/                   NOP ;
.L_x_4:
        /*00b0*/                   LDG.E R4, desc[UR6][R2.64] ;
        /*00c0*/                   BRA P0, `(.L_x_4) ;
.L_x_3:
        /*00d0*/                   RED.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR6][R2.64], R8 ;
        /*00e0*/                   EXIT ;
$total$slow:
        /*00f0*/                   RET.REL.NODEC R4 `(total) ;
.L_x_5:
        /*0100*/                   BRA `(.L_x_5);
\t.section\t.text.other,"ax",@progbits
        /*0000*/              @!P0 EXIT ;
        /*0010*/                   BRA `(.L_x_9) ;
        /*0020*/                   MOV R1, R2 ;
.L_x_9:
        /*0030*/                   STG.E.128 desc[UR6][R2.64], R4 ;
        /*0040*/                   EXIT ;
"""


def test_the_path_has_the_most_units_and_else_the_fewest_instructions(tool):
    functions = tool("machine_code").parse(TEXT)
    whole = functions["total"].path("LDG", 1)
    # Both loops once, without the slow path.
    assert [i.opcode.split(".")[0] for i in whole.instructions] == [
        *("S2R", "BRA", "LDG", "LDG", "FADD", "BRA", "STG", "BRA", "LDG", "BRA", "RED", "EXIT")
    ]
    assert whole.elements == 3 and whole.count("RED") == 1
    other = functions["other"].path("STG", 1)
    assert [i.opcode for i in other.instructions] == ["EXIT", "BRA", "STG.E.128", "EXIT"]
    assert other.widths("STG") == [16]
    assert functions["other"].path("LDG", 1) is None


def test_loops_are_ordered_by_their_units_and_loads_are_counted_up_to_the_first_wait(tool):
    main, rest = tool("machine_code").parse(TEXT)["total"].loops("LDG", 1)
    assert (main.elements, len(main.instructions), rest.elements, len(rest.instructions)) == (2, 6, 1, 2)
    assert main.per_element() == 3 and main.widths("LDG") == [4, 8]
    # The sum needs the second half of the second load.
    assert main.loads_before_wait() == 2


@pytest.mark.parametrize(
    "registers, shared, threads, held",
    [(32, 0, 256, 2048), (33, 0, 256, 1536), (64, 0, 1024, 1024), (255, 0, 256, 256), (16, 100_000, 256, 512)],
)
def test_occupancy_is_bounded_by_registers_and_shared_memory(tool, registers, shared, threads, held):
    """The numbers of the CUDA occupancy calculator for compute capability 9.0."""
    assert tool("machine_code").occupancy(registers, shared, threads) == held


def test_each_row_has_a_kernel_in_cpp_and_one_that_compiles():
    program = (
        "import machine_code_kernels as k\n"
        "for row in k.ROWS:\n"
        "    ptx = row.kernel.listing('assembly', adjoint=row.adjoint, device='cuda:0')\n"
        "    print(row.reference, ptx.count('.entry'))"
    )
    settings = {**os.environ, "WARP_CUDA_DRIVER": "emulated", "PYTHONPATH": str(ROOT / "tools/gpu")}
    settings["PYTHONPATH"] += os.pathsep + os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=settings, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    kernels = re.findall(r"__global__ void (\w+)", (ROOT / "bench/gpu/reference.cu").read_text())
    assert len(rows) > 10 and all(entries == "1" for _, entries in rows)
    assert {name for name, _ in rows} <= set(kernels)

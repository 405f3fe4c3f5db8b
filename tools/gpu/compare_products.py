"""Machine code of the products of matrices, without a GPU: what `ptxas` makes of Weft's kernels, beside CUDA C++ by
hand (`bench/gpu/products.cu`, `nvcc -O3`).

A row a kernel: registers, spills, shared memory, warps of a multiprocessor, and the main loop: its instructions, how
many of them multiply (FFMA, DFMA, HMMA), loads of global memory in flight, accesses of shared memory. Needs `ptxas`
and `nvdisasm` (PATH, or pip install nvidia-cuda-nvdisasm); `nvcc` for the last row.

    python tools/gpu/compare_products.py build [--arch sm_90]
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

import toolkit

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("matmul_f32", "matmul_f64", "matmul_f16", "matmul_bf16", "matmul_tf32")
MULTIPLIES = ("FFMA", "DFMA", "HMMA", "DMMA")


def count(code, opcodes):
    return sum(instruction.opcode.split(".")[0] in opcodes for instruction in code)


def main_loop(function):
    """The instructions of the loop that multiplies most."""
    code = function.instructions
    bodies = [code[i.target : at + 1] for at, i in enumerate(code) if i.branches() and i.target < at]
    return max(bodies, key=lambda body: count(body, MULTIPLIES), default=[])


def rows(kernels, threads):
    for name, (function, needs) in kernels.items():
        loop = main_loop(function)
        multiplies = count(loop, MULTIPLIES)
        yield (
            name.removeprefix("weft_matmul_"),
            needs.registers,
            needs.spilled,
            needs.shared,
            needs.threads_at_once(threads[name]) // 32,
            len(loop),
            multiplies,
            f"{100 * multiplies / len(loop):.0f} %",
            *(count(loop, opcodes) for opcodes in (("LDG", "LDGSTS"), ("LDS", "LDSM", "STS"), ("LDL", "STL"))),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the build folder")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--all", action="store_true", help="kernels of small tiles and of other layouts, too")
    options = parser.parse_args()
    heads = (
        "kernel",
        "registers",
        "spills",
        "shared",
        "warps",
        "loop",
        "multiply",
        "share",
        "global",
        "shared",
        "local",
    )
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "x.cubin"
        for module in MODULES:
            text = options.build / "devlib" / "cuda" / f"{module}.ptx"
            bounds = re.findall(r"\.entry (\w+)\([^{]*?\.maxntid (\d+)", text.read_text(), re.DOTALL)
            kernels = toolkit.of_ptx(text, cubin, options.arch)
            for row in rows(kernels, {name: int(threads) for name, threads in bounds}):
                if options.all or (
                    re.search(r"128x(128|64)", row[0]) and row[0].split("_")[-1] not in ("kk", "mk", "mn")
                ):
                    print("| " + " | ".join(map(str, row)) + " |")
        if shutil.which("nvcc"):
            source = ROOT / "bench" / "gpu" / "products.cu"
            for row in rows(toolkit.of_cuda(source, cubin, options.arch), {"product_f32": 256}):
                print("| " + " | ".join(("nvcc: " + row[0], *map(str, row[1:]))) + " |")


if __name__ == "__main__":
    try:
        main()
    except toolkit.ToolError as error:
        sys.exit(f"compare_products.py: {error}")

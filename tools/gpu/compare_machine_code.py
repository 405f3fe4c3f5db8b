"""Machine code of Weft's kernels beside that of the same kernels in CUDA C++ (bench/gpu/reference.cu), without a GPU.

    compare_machine_code.py                     all rows, for sm_90
    compare_machine_code.py --only noise csr    rows whose names contain one of these words
    compare_machine_code.py --markdown          a table for documents
    compare_machine_code.py --keep FOLDER       leaves PTX and SASS there

Weft's PTX goes through `ptxas -arch=sm_90`, the CUDA C++ through `nvcc -O3 -arch=sm_90`; `nvdisasm` reads both. Needs
the CUDA toolkit, and nvdisasm from it or from PyPI (nvidia-cuda-nvdisasm), which `make gpu-code` installs.

Figures are those of the path that most threads take (machine_code.py):

    registers, spilled bytes, shared memory   of a thread, a thread, a block
    threads         of 2048 that a multiprocessor holds at once, in blocks of 256
    instructions    for each element
    loads, stores   of global memory for each element, with their bytes
    in flight       loads before the first instruction that waits for one of them
    atomics         of global memory, for each element
"""

import argparse
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import toolkit
from toolkit import ToolError

ARCHITECTURE = "sm_90"
REFERENCE = Path(__file__).resolve().parent.parent.parent / "bench/gpu/reference.cu"
BLOCK = 256
WORSE = 1.05


class Compilers:
    def __init__(self, folder):
        self.folder = folder

    def of_reference(self):
        return toolkit.of_cuda(REFERENCE, self.folder / "reference.cubin", ARCHITECTURE)

    def of_weft(self, row):
        name = re.sub(r"\W+", "_", row.name)
        text = self.folder / f"{name}.ptx"
        text.write_text(row.kernel.listing("assembly", adjoint=row.adjoint, device="cuda:0"))
        (kernel,) = toolkit.of_ptx(text, self.folder / f"{name}.cubin", ARCHITECTURE).values()
        return kernel


@dataclass
class Figures:
    needs: toolkit.Needs
    paths: list

    def sum(self, opcode="."):
        return sum(path.per_element(opcode) for path in self.paths)

    def instructions(self):
        return self.sum()

    def accesses(self, opcode):
        widths = sorted({width for path in self.paths for width in path.widths(opcode)})
        count = f"{self.sum(opcode):.2f}".rstrip("0").rstrip(".")
        return f"{count} x {'/'.join(map(str, widths))}" if widths else "0"

    def cells(self):
        needs = self.needs
        return [
            str(needs.registers),
            str(needs.spilled),
            str(needs.stack),
            str(needs.shared),
            str(needs.threads_at_once(BLOCK)),
            f"{self.instructions():.1f}",
            self.accesses(r"LDG|LD\."),
            self.accesses(r"STG|ST\."),
            str(max(path.loads_before_wait() for path in self.paths)),
            f"{self.sum('RED|ATOMG|ATOM.E'):.2f}".rstrip("0").rstrip("."),
        ]


COLUMNS = [
    *("registers", "spilled", "stack", "shared", "threads", "instructions", "loads", "stores", "in flight", "atomics")
]


def figures(row, function, needs, per_element):
    if row.loops:
        paths = function.loops(row.unit, per_element)[: row.loops]
    else:
        paths = [path for path in [function.path(row.unit, per_element)] if path]
    if not paths:
        raise ToolError(f"{row.name}: the code has no path with {row.unit}")
    return Figures(needs, paths)


def print_table(lines, as_markdown):
    if as_markdown:
        lines = [lines[0], ["---", "---", *["---:"] * (len(lines[0]) - 2)], *lines[1:]]
        for cells in lines:
            print("| " + " | ".join(cells) + " |")
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], help="rows whose names contain one of these words")
    parser.add_argument("--markdown", action="store_true", help="a table for documents")
    parser.add_argument("--keep", type=Path, help="a folder that gets PTX and SASS")
    options = parser.parse_args()
    os.environ.setdefault("WARP_CUDA_DRIVER", "emulated")
    import machine_code_kernels

    rows = machine_code_kernels.ROWS
    if options.only:
        rows = [row for row in rows if any(word.lower() in row.name.lower() for word in options.only)]
        if not rows:
            raise ToolError(f"no row has one of {options.only} in its name")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        compilers = Compilers(folder)
        references = compilers.of_reference()
        lines, behind = [["kernel, per", "code", *COLUMNS]], []
        for row in rows:
            name = row.reference
            ours = figures(row, *compilers.of_weft(row), row.per_element)
            of_reference = row.per_reference_element or row.per_element
            theirs = figures(row, *references[name], of_reference)
            lines.append([f"{row.name}, {row.element}", "Weft", *ours.cells()])
            lines.append(["", "nvcc", *theirs.cells()])
            ratio = ours.instructions() / theirs.instructions()
            if ratio > WORSE:
                behind.append(f"{row.name} {ratio:.2f}")
    print_table(lines, options.markdown)
    print(f"\nrows with more than {WORSE} times the instructions of nvcc: {', '.join(behind) or 'none'}")


if __name__ == "__main__":
    try:
        main()
    except ToolError as error:
        sys.exit(f"compare_machine_code.py: {error}")

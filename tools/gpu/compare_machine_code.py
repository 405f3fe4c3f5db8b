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
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

import machine_code

ARCHITECTURE = "sm_90"
REFERENCE = Path(__file__).resolve().parent.parent.parent / "bench/gpu/reference.cu"
BLOCK = 256
WORSE = 1.05


class ToolError(Exception):
    pass


def find_tool(name, package):
    purelib = Path(sysconfig.get_paths()["purelib"], "nvidia")
    for path in [*purelib.glob(f"*/bin/{name}"), shutil.which(name), f"/usr/local/cuda/bin/{name}"]:
        if path and Path(path).exists():
            return str(path)
    raise ToolError(f"there is no {name}, on PATH or in /usr/local/cuda/bin. help: {package}")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


@dataclass
class Needs:
    registers: int
    spilled: int
    stack: int
    shared: int


def needs_of(said):
    """{kernel: Needs} from what `ptxas -v` says."""
    found = {}
    for part in re.split(r"Compiling entry function '", said)[1:]:
        name = part.split("'")[0]
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        shared = re.search(r"(\d+) bytes smem", part)
        found[name] = Needs(
            int(re.search(r"Used (\d+) registers", part)[1]),
            int(memory[2]) + int(memory[3]),
            int(memory[1]),
            int(shared[1]) if shared else 0,
        )
    return found


class Compilers:
    def __init__(self, folder):
        toolkit = "the CUDA toolkit"
        self.nvcc, self.ptxas = find_tool("nvcc", toolkit), shutil.which("ptxas", path="/usr/local/cuda/bin")
        # That of the compiler for CUDA C++, so that both go through the same one.
        self.ptxas = self.ptxas or find_tool("ptxas", toolkit)
        self.nvdisasm = find_tool("nvdisasm", "pip install nvidia-cuda-nvdisasm, or make gpu-code")
        self.folder = folder

    def disassembled(self, image, said):
        text = run([self.nvdisasm, "-c", image])
        image.with_suffix(".sass").write_text(text)
        return machine_code.parse(text), needs_of(said)

    def of_reference(self):
        image = self.folder / "reference.cubin"
        flags = ["-O3", f"-arch={ARCHITECTURE}", "-cubin", "-Xptxas", "-v"]
        return self.disassembled(image, run([self.nvcc, *flags, REFERENCE, "-o", image]))

    def of_weft(self, row):
        name = re.sub(r"\W+", "_", row.name)
        text, image = self.folder / f"{name}.ptx", self.folder / f"{name}.cubin"
        ptx = row.kernel.listing("assembly", adjoint=row.adjoint, device="cuda:0")
        text.write_text(ptx)
        functions, needs = self.disassembled(image, run([self.ptxas, "-v", f"-arch={ARCHITECTURE}", text, "-o", image]))
        (symbol,) = needs
        return functions[symbol], needs[symbol]


@dataclass
class Figures:
    needs: Needs
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
            str(machine_code.occupancy(needs.registers, needs.shared, BLOCK)),
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
        references, needs_of_references = compilers.of_reference()
        lines, behind = [["kernel, per", "code", *COLUMNS]], []
        for row in rows:
            name = row.reference
            ours = figures(row, *compilers.of_weft(row), row.per_element)
            of_reference = row.per_reference_element or row.per_element
            theirs = figures(row, references[name], needs_of_references[name], of_reference)
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

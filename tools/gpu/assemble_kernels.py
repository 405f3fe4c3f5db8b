"""Kernels of the test suites through `ptxas`, NVIDIA's compiler: it takes them all, and none needs more registers, more
memory of its own or more spills than the table beside this file says.

    run_tests.py --only "emulated CUDA" --keep-ptx FOLDER    leaves the texts of a run
    assemble_kernels.py FOLDER                               checks them all
    assemble_kernels.py FOLDER --share 10                    a tenth of the kernels
    assemble_kernels.py FOLDER --large                       those of more than 1 MB as well
    assemble_kernels.py FOLDER --update                      writes the results to the table

A row is a kernel on an architecture, by its name and the function that encloses it, according to its line tables. Of
several such kernels (a test with parameters) it has the greatest numbers. The table has the kernels that need more than
USUAL. If all are checked, a kernel without a row must not need more. Numbers are compared if `ptxas` has the version
of the table.
"""

import argparse
import ast
import functools
import os
import re
import subprocess
import sys
import sysconfig
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import toolkit
from toolkit import ToolError

TABLE = Path(__file__).with_name("assembled_kernels.tsv")
COLUMNS = ("registers", "stack bytes", "spilled bytes")
USUAL = (64, 0, 0)  # with 64 registers a block may have all of its 1,024 threads
# The architectures that the suites run on. Tests that compile for others ask the compilers themselves, of which each
# knows other ones.
PROCESSORS = ("sm_75", "sm_90")
LARGEST_TEXT = 1 << 20  # for larger ones ptxas takes half a minute and more, and a gigabyte for 1.5 MB
SECONDS, SECONDS_OF_LARGE = 120, 1800  # for one text


def find_ptxas():
    """That of this environment first: the table was made with its version."""
    package = Path(sysconfig.get_paths()["purelib"], "nvidia", "cuda_nvcc", "bin", "ptxas")
    found = str(package) if package.exists() else toolkit.find("ptxas")
    text = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    return found, re.search(r"release ([\d.]+)", text)[1]


@functools.cache
def functions_of(path):
    """[(first line, last line, name)] of the outermost functions and classes of a file."""
    try:
        tree = ast.parse(Path(path).read_text())
    except (OSError, SyntaxError):
        return []  # a program that a test has written
    kinds = ast.FunctionDef, ast.ClassDef
    return [(node.lineno, node.end_lineno, node.name) for node in tree.body if isinstance(node, kinds)]


def place_of(path, line, kernel):
    """The file of a kernel, from the tests' folder or the package on, and the function that it stands in."""
    match = re.search(r"/(?:tests/|(?=warp/|bench/))(.*)$", path)
    place = match[1] if match else "a program"
    around = [name for first, last, name in functions_of(path) if first <= line <= last and name != kernel]
    return ":".join([place, *around])


@dataclass
class Text:
    """A PTX file of a run."""

    path: Path
    kernels: list
    arch: str

    @classmethod
    def read(cls, path):
        """The text of a file; its first lines name the kernels and the architecture."""
        text = path.read_text()
        heads = re.findall(r"^// (adjoint of kernel .*|kernel .*)$", text, re.MULTILINE)
        arch = re.search(r"^\.target (\w+)", text, re.MULTILINE)
        if not heads or not arch:
            raise ToolError(f"{path} is no text that WEFT_KEEP_PTX has left: it names no kernel or no target")
        files = dict(re.findall(r'^\s*\.file\s+(\d+) "([^"]*)"', text, re.MULTILINE))
        # For inlined code, the line of the kernel that calls it.
        line = re.search(r"^\s*\.loc\s+(?:.*inlined_at )?(\d+) (\d+)", text, re.MULTILINE)
        place = place_of(files[line[1]], int(line[2]), heads[0].split()[-1]) + " " if line and line[1] in files else ""
        return cls(path, [place + head.removeprefix("kernel ") for head in heads], arch[1])

    def is_large(self):
        return self.path.stat().st_size > LARGEST_TEXT

    def rows(self):
        return [(name, self.arch) for name in self.kernels]


def assemble(ptxas, text):
    """The numbers of the text's kernels, or the errors of ptxas."""
    command = [ptxas, "-v", f"--gpu-name={text.arch}", "-o", os.devnull, text.path]
    seconds = SECONDS_OF_LARGE if text.is_large() else SECONDS
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, f"ptxas was stopped after {seconds} s"
    said = done.stdout + done.stderr
    if done.returncode:
        return None, said.strip()
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
    memory = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", said)
    if not registers or not memory:
        return None, "ptxas does not say what the kernel uses:\n" + said.strip()
    stacks, spills = [int(row[0]) for row in memory], [int(row[1]) + int(row[2]) for row in memory]
    return (max(registers), max(stacks), max(spills)), None


def read_table():
    """(version of ptxas, {(kernel, arch): numbers})"""
    if not TABLE.exists():
        return None, {}
    first, _, *lines = TABLE.read_text().splitlines()
    rows = (line.split("\t") for line in lines)
    return first.removeprefix("# ptxas "), {(name, arch): tuple(map(int, numbers)) for name, arch, *numbers in rows}


def write_table(version, rows):
    lines = [f"# ptxas {version}", "\t".join(("kernel", "arch", *COLUMNS))]
    lines += ["\t".join((*key, *map(str, numbers))) for key, numbers in sorted(rows.items())]
    TABLE.write_text("\n".join(lines) + "\n")


def greatest(one, other):
    return tuple(map(max, one, other)) if one else other


def worse(before, now):
    """The numbers that have grown, in words."""
    return ", ".join(f"{what} {a} -> {b}" for what, a, b in zip(COLUMNS, before, now, strict=True) if b > a)


def is_chosen(kernel, share):
    """By name, so that all texts of a row are in or out, independently of the run's other texts."""
    return zlib.crc32(kernel.encode()) % share == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="what WEFT_KEEP_PTX has left")
    parser.add_argument("--share", type=int, default=1, help="one of so many kernels; default: all")
    parser.add_argument("--large", action="store_true", help="texts of more than 1 MB as well")
    parser.add_argument("--update", action="store_true", help="write the table")
    options = parser.parse_args()
    ptxas, version = find_ptxas()
    texts = [Text.read(path) for folder in options.folders for path in sorted(folder.glob("*.ptx"))]
    if not texts:
        raise ToolError(f"there is no text in {', '.join(map(str, options.folders))}")
    texts = [
        text
        for text in texts
        if text.arch in PROCESSORS and any(is_chosen(name, options.share) for name in text.kernels)
    ]
    small = [text for text in texts if not text.is_large()]
    large = [text for text in texts if text.is_large()] if options.large else []
    chosen = small + large
    left_out = len(texts) - len(chosen)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(lambda text: assemble(ptxas, text), small))
    results += [assemble(ptxas, text) for text in large]  # one at a time: 5 MB of text take 10 GB and more

    failures, found = [], {}
    for text, (numbers, problem) in zip(chosen, results, strict=True):
        if problem:
            failures.append(f"{', '.join(text.kernels)} ({text.arch}, {text.path.name}): {problem}")
            continue
        for row in text.rows():
            found[row] = greatest(found.get(row), numbers)
    of_table, table = read_table()
    new = [row for row in found if row not in table and worse(USUAL, found[row])]
    if options.update:
        kept = (
            table
            if of_table == version and options.share > 1
            else {row: numbers for row, numbers in table.items() if row[1] not in {arch for _, arch in found}}
        )
        write_table(version, {row: numbers for row, numbers in {**kept, **found}.items() if worse(USUAL, numbers)})
    elif of_table == version:
        for row in sorted(set(found) & set(table) | set(new if options.share == 1 else ())):
            if grown := worse(table.get(row, USUAL), found[row]):
                failures.append(f"{row[0]} ({row[1]}) needs more than in {TABLE.name}: {grown}")
    taken = sum(problem is None for _, problem in results)
    compared = "" if of_table in (version, None) else f"; the table is of {of_table} and was not compared"
    print(
        f"ptxas {version} took {taken} of {len(chosen)} texts; {left_out} larger than {LARGEST_TEXT >> 20} MB were"
        f" left out; {len(found)} kernels, {len(new)} new in the table{compared}"
    )
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures and not options.update:
        print("help: where this is meant, run with --update", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ToolError as error:
        sys.exit(f"assemble_kernels.py: {error}")

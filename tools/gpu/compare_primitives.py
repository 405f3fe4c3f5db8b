"""Machine code of sums, running sums and runs beside CUB's, on sm_90, without a GPU.

    compare_primitives.py BUILD        the PTX in BUILD/devlib/cuda through ptxas; CUB through nvcc -O3

Needs nvdisasm as well, of the toolkit or the package nvidia-cuda-nvdisasm.

Columns: registers, spilled bytes, shared memory of a block; threads that an SM holds; bytes that these threads read at
once, before any of them waits; instructions an element; kernels a call; bytes that move an element. Instructions are
those on the shortest way of a warp through the wide loads, and the wide stores if there are any; for sums, those of the
loop. Loops that wait are passed once. Bytes are the elements read and written, and the state of tiles.
"""

import argparse
import heapq
import re
import sys
import tempfile
from pathlib import Path

import toolkit
from toolkit import ToolError, find, run

ARCH = "sm_90"
SIZES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8}
# work: module, kernel by type, elements and threads of a block, kernels a call
OURS = {
    "scan": ("scan", {"f32": "f32", "f64": "f64", "i32": "u32", "i64": "u64"}, 16, 256, 1),
    "sum": ("reduce", {"f32": "f32", "f64": "f64", "i32": "w32", "i64": "w64"}, None, 256, 1),
    "runs": ("run_length_encode", {"f32": "f32", "f64": "f64", "i32": "u32", "i64": "u64"}, 16, 256, 1),
}
PREFIX = {"scan": "weft_scan_", "sum": "weft_sum_lines_", "runs": "weft_runs_"}
CUB = {"scan": r"16DeviceScanKernel", "sum": r"18DeviceReduceKernel", "runs": r"23DeviceReduceByKeyKernel"}
CUB_KERNELS = 2  # scans and runs begin with a kernel that clears the state, sums end with one that adds the blocks
LETTERS = {"f32": "f", "f64": "d", "i32": "i", "i64": "x"}


def width_of(instruction):
    """The bytes that a load or store of global memory moves; 0 for other instructions."""
    is_access = instruction.opcode.split(".")[0] in ("LDG", "STG") and ".STRONG" not in instruction.opcode
    return instruction.width() if is_access else 0


class Kernel:
    def __init__(self, function, needs):
        self.instructions, self.needs = list(function.instructions), needs
        while self.instructions and self.instructions[-1].opcode == "NOP":
            self.instructions.pop()
        self.blocks = self.find_blocks()

    def find_blocks(self):
        """Basic blocks by the index of their first instruction: (instructions, indices that follow)."""
        code = self.instructions
        ends = [i.branches() or i.opcode.split(".")[0] in ("EXIT", "RET") for i in code]
        leaders = {0} | {i.target for i in code if i.branches()} | {at + 1 for at, is_end in enumerate(ends) if is_end}
        blocks, current = {}, None
        for at, instruction in enumerate(code):
            if at in leaders:
                current = blocks[at] = ([], [])
            current[0].append(instruction)
            if instruction.branches():
                current[1].append(instruction.target)
            if at + 1 in leaders and instruction.falls_through():
                current[1].append(at + 1)
        return blocks

    def moved(self, block, kind):
        return sum(width_of(i) for i in self.blocks[block][0] if i.opcode.startswith(kind))

    def shortest_way(self, kinds, bytes_at_least):
        """The instructions on the shortest way through blocks that move so many bytes, for each kind in turn."""
        queue, seen = [(0, 0, 0)], set()
        while queue:
            length, block, passed = heapq.heappop(queue)
            if block not in self.blocks or (block, passed) in seen:
                continue
            seen.add((block, passed))
            while passed < len(kinds) and self.moved(block, kinds[passed]) >= bytes_at_least:
                passed += 1
            code, following = self.blocks[block]
            length += len(code)
            if passed == len(kinds) and any(i.opcode == "EXIT" for i in code):
                return length
            for each in following:
                heapq.heappush(queue, (length, each, passed))
        return None

    def loop(self):
        """The instructions of the loop that loads most, and the bytes that it loads."""
        best = (0, 0)
        for at, instruction in enumerate(self.instructions):
            if instruction.branches() and instruction.target <= at:
                within = self.instructions[instruction.target : at + 1]
                loaded = sum(width_of(i) for i in within if i.opcode.startswith("LDG"))
                # of nested loops the inner one
                if loaded and (loaded / len(within) > best[1] / max(best[0], 1)):
                    best = (len(within), loaded)
        return best

    def bytes_before_wait(self):
        """The greatest number of bytes that a block loads before it uses one of them."""
        return max(self.loaded_before_use(code) for code, _ in self.blocks.values())

    @staticmethod
    def loaded_before_use(code):
        loaded, registers = 0, set()
        for instruction in code:
            used = instruction.registers()
            if instruction.opcode.startswith("LDG"):
                registers |= set(range(used[0], used[0] + max(1, width_of(instruction) // 4)))
                loaded += width_of(instruction)
            elif registers.intersection(used):
                break
        return loaded


def row(work, dtype, whose, kernel, items, threads, kernels, state_bytes):
    size, needs = SIZES[dtype], kernel.needs
    if work == "sum":
        length, loaded = kernel.loop()
        items = loaded // size
        moved = size
    else:
        # A few elements of a tile may be loaded on their own.
        length = kernel.shortest_way(("LDG", "STG") if work == "scan" else ("LDG",), items * size * 3 // 4)
        moved = size * (2 if work == "scan" else 1) + state_bytes / (items * threads)
    at_once = kernel.bytes_before_wait()
    each = "?" if not length or not items else f"{length / items:.1f}"
    held = needs.threads_at_once(threads)
    return (
        f"| {work} {dtype} | {whose} | {needs.registers} | {needs.spilled} | {needs.shared} | {held} "
        f"| {at_once * held >> 10} KB | {each} | {kernels} | {moved:.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        ours = {}
        for module in {module for module, *_ in OURS.values()}:
            text = options.build / "devlib" / "cuda" / f"{module}.ptx"
            ours |= toolkit.of_ptx(text, folder / f"{module}.cubin", ARCH)
        source = Path(__file__).with_name("cub_primitives.cu")
        theirs = toolkit.of_cuda(source, folder / "cub.cubin", ARCH, "-std=c++17")
        run(find("nvcc"), f"-arch={ARCH}", "-O3", "-std=c++17", source, "-o", folder / "policies")
        policies = {tuple(p[:2]): p[2:] for p in map(str.split, run(folder / "policies").splitlines())}
    print(
        "| work | whose | registers | spilled bytes | shared | threads of an SM | loads in flight | instructions "
        "| kernels | bytes |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for work, (_, names, items, threads, kernels) in OURS.items():
        for dtype, name in names.items():
            # Entries of 2 words for each 32 bits of a sum; of the number of runs and a begin.
            state = {"scan": 2 * max(SIZES[dtype], 8 if dtype == "f32" else 0), "runs": 32, "sum": 0}[work]
            kernel = Kernel(*ours[PREFIX[work] + name])
            print(row(work, dtype, "ours", kernel, items, threads, kernels, 2 * state))
            pattern = re.compile(rf"{CUB[work]}.*PK{LETTERS[dtype]}")
            kernel = Kernel(*next(found for mangled, found in theirs.items() if pattern.search(mangled)))
            items_of, threads_of = map(int, policies[work, dtype])
            state = {"scan": 2 * max(SIZES[dtype], 4), "runs": 16, "sum": 0}[work]
            print(row(work, dtype, "CUB", kernel, items_of, threads_of, CUB_KERNELS, 3 * state))


if __name__ == "__main__":
    try:
        main()
    except ToolError as error:
        sys.exit(f"compare_primitives.py: {error}")

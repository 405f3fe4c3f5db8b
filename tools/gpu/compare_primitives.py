"""Machine code of sums, running sums and runs beside CUB's, on sm_90, without a GPU.

    compare_primitives.py BUILD        the PTX in BUILD/devlib/cuda through ptxas; CUB through nvcc -O3

The programs `nvcc` and `ptxas` come from /usr/local/cuda/bin or the PATH, `cuobjdump` from there, or from the folder
that --cuobjdump names (the packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm).

Columns: registers, spilled bytes, shared memory of a block; threads that an SM holds; bytes that these threads read at
once, before any of them waits; instructions an element; kernels a call; bytes that move an element. Instructions are
those on the shortest way of a warp through the wide loads, and the wide stores if there are any; for sums, those of the
loop. Loops that wait are passed once. Bytes are the elements read and written, and the state of tiles.
"""

import argparse
import heapq
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ARCH = "sm_90"
REGISTERS, SHARED, THREADS, BLOCKS = 65536, 228 << 10, 2048, 32  # of an SM
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


def tool(name, folder=None):
    found = shutil.which(name, path=folder) if folder else None
    found = found or shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if not found:
        sys.exit(f"there is no {name}. help: the CUDA toolkit, or a package of PyPI: see --help")
    return found


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr or done.stdout}")
    return done.stdout


@dataclass
class Instruction:
    address: int
    text: str
    is_conditional: bool

    @property
    def opcode(self):
        return self.text.split()[0]

    @property
    def target(self):
        found = re.search(r"0x([0-9a-f]+)", self.text)
        return int(found[1], 16) if self.opcode.startswith("BRA") and found else None

    @property
    def ends(self):
        return self.opcode.split(".")[0] in ("BRA", "EXIT", "RET")


def width_of(instruction):
    """The bytes that a load or store of global memory moves; 0 for other instructions."""
    if instruction.opcode.split(".")[0] not in ("LDG", "STG") or ".STRONG" in instruction.opcode:
        return 0
    for part, width in ((".128", 16), (".64", 8), (".U16", 2), (".U8", 1)):
        if part in instruction.opcode:
            return width
    return 4


class Kernel:
    def __init__(self, name, code):
        self.name = name
        self.instructions = []
        for address, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", code):
            guard = re.match(r"@!?U?P\w+\s+", text)
            self.instructions.append(Instruction(int(address, 16), text[guard.end() :] if guard else text, bool(guard)))
        while self.instructions and self.instructions[-1].opcode == "NOP":
            self.instructions.pop()
        self.blocks = self.find_blocks()

    def find_blocks(self):
        """Basic blocks by address: (instructions, addresses that follow)."""
        code = self.instructions
        leaders = {code[0].address} | {i.target for i in code if i.target is not None}
        leaders |= {after.address for i, after in zip(code, code[1:], strict=False) if i.ends}
        blocks, current = {}, None
        for i, instruction in enumerate(code):
            if instruction.address in leaders:
                current = blocks[instruction.address] = ([], [])
            current[0].append(instruction)
            follows = code[i + 1].address if i + 1 < len(code) else None
            if instruction.target is not None:
                current[1].append(instruction.target)
            if follows in leaders and (not instruction.ends or instruction.is_conditional):
                current[1].append(follows)
        return blocks

    def moved(self, block, kind):
        return sum(width_of(i) for i in self.blocks[block][0] if i.opcode.startswith(kind))

    def shortest_way(self, kinds, bytes_at_least):
        """The instructions on the shortest way through blocks that move so many bytes, for each kind in turn."""
        start = self.instructions[0].address
        queue, seen = [(0, start, 0)], set()
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
        for address, (code, _) in self.blocks.items():
            for instruction in code:
                if instruction.target is not None and instruction.target <= address:
                    within = [i for i in self.instructions if instruction.target <= i.address <= instruction.address]
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
            used = {int(r) for r in re.findall(r"\bR(\d+)\b", instruction.text)}
            if instruction.opcode.startswith("LDG"):
                first = int(re.search(r"\bR(\d+)\b", instruction.text)[1])
                registers |= set(range(first, first + max(1, width_of(instruction) // 4)))
                loaded += width_of(instruction)
            elif used & registers:
                break
        return loaded


def kernels_of(cubin, cuobjdump):
    environment = {"PATH": f"{Path(cuobjdump).parent}:/usr/local/cuda/bin:/usr/bin:/bin"}
    texts = run(cuobjdump, "-sass", cubin, env=environment).split("Function : ")[1:]
    usage = run(cuobjdump, "--dump-resource-usage", cubin, env=environment)
    resources = dict(re.findall(r"Function (\S+):\s*\n\s*(REG.*)", usage))
    found = {}
    for text in texts:
        name = text.split("\n", 1)[0].strip()
        found[name] = Kernel(name, text), resources[name]
    return found


def number(resources, name):
    return int(re.search(rf"{name}:(\d+)", resources)[1])


def row(work, dtype, whose, kernel, resources, items, threads, kernels, state_bytes):
    size = SIZES[dtype]
    registers, shared = number(resources, "REG"), number(resources, "SHARED")
    per_warp = -(-registers // 8) * 8 * 32
    blocks = min(REGISTERS // (per_warp * threads // 32), SHARED // shared, THREADS // threads, BLOCKS)
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
    held = blocks * threads
    return (
        f"| {work} {dtype} | {whose} | {registers} | {number(resources, 'LOCAL')} | {shared} | {held} "
        f"| {at_once * held >> 10} KB | {each} | {kernels} | {moved:.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--cuobjdump", help="the folder of cuobjdump and nvdisasm")
    options = parser.parse_args()
    cuobjdump = tool("cuobjdump", options.cuobjdump)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        ours = {}
        for module in {module for module, *_ in OURS.values()}:
            cubin = folder / f"{module}.cubin"
            run(tool("ptxas"), f"-arch={ARCH}", options.build / "devlib" / "cuda" / f"{module}.ptx", "-o", cubin)
            ours |= kernels_of(cubin, cuobjdump)
        source = Path(__file__).with_name("cub_primitives.cu")
        nvcc = (tool("nvcc"), f"-arch={ARCH}", "-O3", "-std=c++17")
        run(*nvcc, "-cubin", source, "-o", folder / "cub.cubin")
        run(*nvcc, source, "-o", folder / "policies")
        policies = {tuple(p[:2]): p[2:] for p in map(str.split, run(folder / "policies").splitlines())}
        theirs = kernels_of(folder / "cub.cubin", cuobjdump)
    print(
        "| work | whose | registers | local bytes | shared | threads of an SM | loads in flight | instructions "
        "| kernels | bytes |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for work, (_, names, items, threads, kernels) in OURS.items():
        for dtype, name in names.items():
            # Entries of 2 words for each 32 bits of a sum; of the number of runs and a begin.
            state = {"scan": 2 * max(SIZES[dtype], 8 if dtype == "f32" else 0), "runs": 32, "sum": 0}[work]
            kernel = ours[PREFIX[work] + name]
            print(row(work, dtype, "ours", *kernel, items, threads, kernels, 2 * state))
            pattern = re.compile(rf"{CUB[work]}.*PK{LETTERS[dtype]}")
            kernel = next(found for mangled, found in theirs.items() if pattern.search(mangled))
            items_of, threads_of = map(int, policies[work, dtype])
            state = {"scan": 2 * max(SIZES[dtype], 4), "runs": 16, "sum": 0}[work]
            print(row(work, dtype, "CUB", *kernel, items_of, threads_of, CUB_KERNELS, 3 * state))


if __name__ == "__main__":
    main()

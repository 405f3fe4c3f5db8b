"""The machine code of sorts beside CUB's, for a machine without a GPU: registers, shared memory, occupancy,
instructions, bytes and kernels of a sort of pairs with 32- and 64-bit keys, and of its segmented form.

    compare_sorts.py                    build/devlib/cuda/radix_sort_*.ptx beside CUB of nvcc's toolkit, for sm_90
    compare_sorts.py --cuobjdump PATH   with the tool of the package nvidia-cuda-cuobjdump

Instructions are those in the machine code, divided by the pairs of a thread. Loops over pairs are unrolled in both, so
that the division is fair. Both have code for full tiles and for the last one, of which a tile runs one: the numbers are
bounds from above. Votes and shared accesses by class show the work itself.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARCH = "sm_90"
# Of a multiprocessor.
REGISTERS, SHARED, WARPS = 65536, 233472, 64
RESERVED = 1024  # shared memory of each block for the system
TILE = 4096  # of ours
KEYS = {"u32": "unsigned", "f32": "float", "u64": "unsigned long long", "f64": "double"}
VALUES = {4: "unsigned", 8: "unsigned long long"}

CUB = r"""
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cstdio>
template <typename K, typename V>
void sorts(const char* name) {
    using Onesweep = typename cub::detail::radix::policy_hub<K, V, unsigned>::Policy900::OnesweepPolicy;
    std::printf("%s %d %d\n", name, int(Onesweep::BLOCK_THREADS), int(Onesweep::ITEMS_PER_THREAD));
    void* none = nullptr;
    std::size_t bytes = 0;
    K* keys = nullptr;
    V* values = nullptr;
    int* ends = nullptr;
    cub::DeviceRadixSort::SortPairs(none, bytes, keys, keys, values, values, 32000000u);
    if constexpr (sizeof(K) == 4 && sizeof(V) == 4)
        cub::DeviceSegmentedSort::SortPairs(none, bytes, keys, keys, values, values, 1000000, 1000, ends, ends);
}
int main() {
%s
}
"""


class ToolError(Exception):
    pass


def tool(name, *more):
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin") or next(filter(None, more), None)
    if not found:
        raise ToolError(f"there is no {name}: pip install nvidia-cuda-{name}, or the CUDA toolkit")
    return found


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def opcodes(cuobjdump, cubin):
    """{kernel: Counter of its machine instructions}"""
    found, counts = {}, None
    for line in run(cuobjdump, "-sass", cubin).splitlines():
        if match := re.search(r"Function : (\S+)", line):
            counts = found[match[1]] = collections.Counter()
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9]+)", line):
            counts[match[1]] += match[1] != "NOP"
    return found


def resources(text):
    """{kernel: (registers, shared bytes, spilled bytes)} of the words of ptxas."""
    found = {}
    for part in text.split("Compiling entry function '")[1:]:
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        shared = re.search(r"(\d+) bytes smem", part)
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        found[part.split("'")[0]] = (registers, int(shared[1]) if shared else 0, int(spills[1]) + int(spills[2]))
    return found


def resident_warps(registers, shared, threads):
    of_warp = -(-registers // 8) * 8 * 32
    warps = -(-threads // 32)
    return min(REGISTERS // of_warp // warps, SHARED // (shared + RESERVED), WARPS // warps) * warps


def ours(cuobjdump, ptxas, folder):
    """[(row, threads, items, resources, opcodes)], and the kernels by names"""
    rows, kernels = [], {}
    for name in ("radix_sort_32", "radix_sort_64", "sort_segments"):
        text = ROOT / os.environ.get("BUILD", "build") / f"devlib/cuda/{name}.ptx"
        cubin = folder / f"{name}.cubin"
        said = resources(run(ptxas, f"-arch={ARCH}", "-v", text, "-o", cubin))
        found = opcodes(cuobjdump, cubin)
        kernels |= {kernel: (said[kernel], found[kernel]) for kernel in said}
    for key in KEYS:
        for value in VALUES:
            threads = 512 if key == "u64" or (key != "f64" and value == 8) else 256  # sort_threads()
            kernel = f"weft_sort_pass_{key}_{value}"
            rows.append(((key, value), threads, TILE // threads, *kernels[kernel]))
    return rows, kernels


def cubs(cuobjdump, nvcc, folder):
    calls = [f'sorts<{KEYS[k]}, {VALUES[v]}>("{k} {v}");' for k in KEYS for v in VALUES]
    source = folder / "cub.cu"
    source.write_text(CUB.replace("%s\n}", "\n".join(calls) + "\n}"))
    cubin = folder / "cub.cubin"
    options = ("-std=c++17", "-O3", f"-arch={ARCH}", "-Wno-deprecated-gpu-targets")
    said = resources(run(nvcc, *options, "-cubin", "-Xptxas", "-v", source, "-o", cubin))
    found = opcodes(cuobjdump, cubin)
    run(nvcc, *options, source, "-o", folder / "policies")
    # The calls of CUB fail without a GPU, which the program does not look at.
    shapes = {}
    for line in run(folder / "policies").splitlines():
        key, value, threads, items = line.split()
        shapes[key, int(value)] = int(threads), int(items)
    plain = dict(zip(said, run(tool("cu++filt", shutil.which("c++filt")), *said).splitlines(), strict=True))
    rows = []
    for (key, value), (threads, items) in shapes.items():
        kind = f"policy_hub<{KEYS[key]}, {VALUES[value]}, unsigned int>".replace("unsigned,", "unsigned int,")
        found_here = [
            kernel for kernel, name in plain.items() if "OnesweepKernel" in name and normal(kind) in normal(name)
        ]
        if len(found_here) != 1:
            raise ToolError(f"CUB has {len(found_here)} kernels for {kind}")
        rows.append(((key, value), threads, items, said[found_here[0]], found[found_here[0]]))
    kernels = {plain[kernel]: (said[kernel], found[kernel]) for kernel in said}
    return rows, kernels


def normal(name):
    return re.sub(r"\bunsigned\b(?! (int|long))", "unsigned int", name)


CLASSES = {"votes": ("VOTE", "MATCH"), "shared": ("LDS", "STS"), "shared atomics": ("ATOMS",)}
HEAD = ("key", "value", "", "tile", "registers", "spills", "shared", "warps", "instructions", *CLASSES, "bytes")


def print_passes(rows):
    print("A pass; instructions, accesses and bytes of memory per pair, as they stand in the code:")
    print("".join(f"{name:>16}" if name in CLASSES else f"{name:>13}" for name in HEAD))
    for of, (key, value), threads, items, (registers, shared, spills), counts in rows:
        tile, key_bytes = threads * items, int(key[1:]) // 8
        # Pairs in and out; of each tile's 256 words: cleared, written twice, read once at least.
        moved = 2 * (key_bytes + value) + 4 * 256 * 4 / tile
        warps = resident_warps(registers, shared, threads)
        whole = "".join(f"{each:>13}" for each in (key, value, of, tile, registers, spills, shared, warps))
        classes = "".join(f"{sum(counts[code] for code in codes) / items:16.1f}" for codes in CLASSES.values())
        print(f"{whole}{counts.total() / items:13.1f}{classes}{moved:13.1f}")


def print_others(title, kernels, wanted):
    print(title)
    for name, ((registers, shared, spills), counts) in sorted(kernels.items()):
        found = next((short for short, pattern in wanted.items() if re.search(pattern, name)), None)
        if found:
            memory = f"{shared:6} shared {spills:4} spilled"
            print(f"  {found:28}{registers:4} registers {memory} {counts.total():6} instructions")


OURS = {
    "digits, 32 bits": "digits_u32",
    "digits, 64 bits": "digits_u64",
    "segments: lists": "segments_list",
    "segments: warps, 32 bits": "short_32",
    "segments: blocks, 32 bits": "middle_32",
}
CUBS = {
    "digits, 32 bits": r"HistogramKernel<.*policy_hub<unsigned int, unsigned int",
    "digits, 64 bits": r"HistogramKernel<.*policy_hub<unsigned long long, unsigned int",
    "segments: small and medium": r"SegmentedSortKernelSmall<.*policy_hub<unsigned int, unsigned int",
    "segments: large": r"SegmentedSortKernelLarge<.*policy_hub<unsigned int, unsigned int",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuobjdump", help="path of the tool")
    options = parser.parse_args()
    cuobjdump = options.cuobjdump or tool("cuobjdump")
    with tempfile.TemporaryDirectory() as made:
        our_rows, our_kernels = ours(cuobjdump, tool("ptxas"), Path(made))
        cub_rows, cub_kernels = cubs(cuobjdump, tool("nvcc"), Path(made))
    both = [row for pair in zip(our_rows, cub_rows, strict=True) for row in zip(("weft", "cub"), pair, strict=True)]
    print_passes([(of, *row) for of, row in both])
    print()
    print_others("Other kernels of Weft:", our_kernels, OURS)
    print_others("Other kernels of CUB:", cub_kernels, CUBS)
    print()
    print("A sort of P passes: Weft P + 2 kernels and 1 fill, CUB P + 2 kernels and P + 2 fills.")
    print("Up to 2,048 pairs: Weft 1 kernel; CUB 1 up to the tile of its kernel for one block.")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ToolError as error:
        sys.exit(f"compare_sorts.py: {error}")

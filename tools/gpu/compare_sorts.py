"""The machine code of sorts beside CUB's, for a machine without a GPU: registers, shared memory, occupancy,
instructions, bytes and kernels of a sort of pairs with 32- and 64-bit keys, and of its segmented form.

    compare_sorts.py        build/devlib/cuda/radix_sort_*.ptx beside CUB of nvcc's toolkit, for sm_90

Needs nvdisasm as well, of the toolkit or the package nvidia-cuda-nvdisasm.

Instructions are those in the machine code, divided by the pairs of a thread. Loops over pairs are unrolled in both, so
that the division is fair. Both have code for full tiles and for the last one, of which a tile runs one: the numbers are
bounds from above. Votes and shared accesses by class show the work itself.
"""

import argparse
import collections
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import toolkit
from toolkit import ToolError, find, run

ROOT = Path(__file__).resolve().parents[2]
ARCH = "sm_90"
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


def counts_of(function):
    return collections.Counter(i.opcode.split(".")[0] for i in function.instructions if i.opcode != "NOP")


def ours(folder):
    """[(row, threads, items, needs, opcodes)], and the kernels by names"""
    rows, kernels = [], {}
    for name in ("radix_sort_32", "radix_sort_64", "sort_segments"):
        text = ROOT / os.environ.get("BUILD", "build") / f"devlib/cuda/{name}.ptx"
        for kernel, (function, needs) in toolkit.of_ptx(text, folder / f"{name}.cubin", ARCH).items():
            kernels[kernel] = needs, counts_of(function)
    for key in KEYS:
        for value in VALUES:
            threads = 512 if key == "u64" or (key != "f64" and value == 8) else 256  # sort_threads()
            kernel = f"weft_sort_pass_{key}_{value}"
            rows.append(((key, value), threads, TILE // threads, *kernels[kernel]))
    return rows, kernels


def cubs(folder):
    calls = [f'sorts<{KEYS[k]}, {VALUES[v]}>("{k} {v}");' for k in KEYS for v in VALUES]
    source = folder / "cub.cu"
    source.write_text(CUB.replace("%s\n}", "\n".join(calls) + "\n}"))
    options = ("-std=c++17", "-Wno-deprecated-gpu-targets")
    found = toolkit.of_cuda(source, folder / "cub.cubin", ARCH, *options)
    run(find("nvcc"), "-O3", f"-arch={ARCH}", *options, source, "-o", folder / "policies")
    # The calls of CUB fail without a GPU, which the program does not look at.
    shapes = {}
    for line in run(folder / "policies").splitlines():
        key, value, threads, items = line.split()
        shapes[key, int(value)] = int(threads), int(items)
    plain = dict(zip(found, run(shutil.which("cu++filt") or find("c++filt"), *found).splitlines(), strict=True))
    kernels = {plain[kernel]: (needs, counts_of(function)) for kernel, (function, needs) in found.items()}
    rows = []
    for (key, value), (threads, items) in shapes.items():
        kind = f"policy_hub<{KEYS[key]}, {VALUES[value]}, unsigned int>".replace("unsigned,", "unsigned int,")
        found_here = [name for name in kernels if "OnesweepKernel" in name and normal(kind) in normal(name)]
        if len(found_here) != 1:
            raise ToolError(f"CUB has {len(found_here)} kernels for {kind}")
        rows.append(((key, value), threads, items, *kernels[found_here[0]]))
    return rows, kernels


def normal(name):
    return re.sub(r"\bunsigned\b(?! (int|long))", "unsigned int", name)


CLASSES = {"votes": ("VOTE", "MATCH"), "shared": ("LDS", "STS"), "shared atomics": ("ATOMS",)}
HEAD = ("key", "value", "", "tile", "registers", "spills", "shared", "warps", "instructions", *CLASSES, "bytes")


def print_passes(rows):
    print("A pass; instructions, accesses and bytes of memory per pair, as they stand in the code:")
    print("".join(f"{name:>16}" if name in CLASSES else f"{name:>13}" for name in HEAD))
    for of, (key, value), threads, items, needs, counts in rows:
        tile, key_bytes = threads * items, int(key[1:]) // 8
        # Pairs in and out; of each tile's 256 words: cleared, written twice, read once at least.
        moved = 2 * (key_bytes + value) + 4 * 256 * 4 / tile
        warps = needs.threads_at_once(threads) // 32
        whole = "".join(
            f"{each:>13}" for each in (key, value, of, tile, needs.registers, needs.spilled, needs.shared, warps)
        )
        classes = "".join(f"{sum(counts[code] for code in codes) / items:16.1f}" for codes in CLASSES.values())
        print(f"{whole}{counts.total() / items:13.1f}{classes}{moved:13.1f}")


def print_others(title, kernels, wanted):
    print(title)
    for name, (needs, counts) in sorted(kernels.items(), key=lambda kernel: kernel[0]):
        found = next((short for short, pattern in wanted.items() if re.search(pattern, name)), None)
        if found:
            memory = f"{needs.shared:6} shared {needs.spilled:4} spilled"
            print(f"  {found:28}{needs.registers:4} registers {memory} {counts.total():6} instructions")


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
    parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        our_rows, our_kernels = ours(Path(made))
        cub_rows, cub_kernels = cubs(Path(made))
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

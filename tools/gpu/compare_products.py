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
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("matmul_f32", "matmul_f64", "matmul_f16", "matmul_bf16", "matmul_tf32")
REGISTERS, WARPS, SHARED = 65536, 64, 233472  # of a multiprocessor of sm_90
MULTIPLIES = re.compile(r"\b(FFMA|DFMA|HMMA|DMMA)\b")


def tool(name):
    found = shutil.which(name) or next(
        (str(path) for folder in sys.path for path in Path(folder).glob(f"nvidia/*/bin/{name}")), None
    )
    if found is None:
        sys.exit(f"compare_products: there is no {name} on PATH, and no package of NVIDIA with it")
    return found


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare_products: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def resources(log):
    """kernel: (registers, bytes of spills, bytes of shared memory), by the log of ptxas -v."""
    found, name, spills = {}, None, 0
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name = match[1]
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spills = int(match[1]) + int(match[2])
        elif (match := re.search(r"Used (\d+) registers", line)) and name:
            shared = re.search(r"(\d+) bytes smem", line)
            found[name] = (int(match[1]), spills, int(shared[1]) if shared else 0)
    return found


def loops(listing):
    """kernel: the instructions of the loop that multiplies most."""
    found, name, code = {}, None, []

    def close():
        labels = {text: at for at, (is_label, text) in enumerate(code) if is_label}
        best = []
        for at, (is_label, text) in enumerate(code):
            back = None if is_label else re.search(r"\bBRA\b.*`\((\.L_\w+)\)", text)
            if back and labels.get(back[1], at) < at:
                body = [line for is_label, line in code[labels[back[1]] : at + 1] if not is_label]
                best = max(best, body, key=lambda lines: sum(bool(MULTIPLIES.search(line)) for line in lines))
        if name:
            found[name] = best

    for line in listing.splitlines():
        if match := re.match(r"\.text\.(\w+):", line):
            close()
            name, code = match[1], []
        elif match := re.match(r"(\.L_\w+):", line.strip()):
            code.append((True, match[1]))
        elif match := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            code.append((False, match[1]))
    close()
    return found


def warps_of(registers, shared, threads):
    warps = -(-threads // 32)
    by_registers = REGISTERS // (-(-registers * 32 // 256) * 256 * warps)
    by_shared = SHARED // (shared + 1024)
    return min(by_registers, by_shared, WARPS // warps) * warps


def count(loop, names):
    return sum(bool(re.search(rf"\b({names})\b", line)) for line in loop)


def rows(cubin, log, threads):
    of_loops = loops(run(tool("nvdisasm"), "-c", cubin))
    for name, (registers, spills, shared) in resources(log).items():
        loop = of_loops[name]
        multiplies = sum(bool(MULTIPLIES.search(line)) for line in loop)
        yield (
            name.removeprefix("weft_matmul_"),
            registers,
            spills,
            shared,
            warps_of(registers, shared, threads[name]),
            len(loop),
            multiplies,
            f"{100 * multiplies / len(loop):.0f} %",
            *(count(loop, names) for names in ("LDG|LDGSTS", "LDS|LDSM|STS", "LDL|STL")),
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
            log = run(tool("ptxas"), f"-arch={options.arch}", "-v", text, "-o", cubin)
            for row in rows(cubin, log, {name: int(threads) for name, threads in bounds}):
                if options.all or (
                    re.search(r"128x(128|64)", row[0]) and row[0].split("_")[-1] not in ("kk", "mk", "mn")
                ):
                    print("| " + " | ".join(map(str, row)) + " |")
        if shutil.which("nvcc"):
            source = ROOT / "bench" / "gpu" / "products.cu"
            log = run("nvcc", "-O3", f"-arch={options.arch}", "-cubin", "-Xptxas", "-v", source, "-o", cubin)
            for row in rows(cubin, log, {"product_f32": 256}):
                print("| " + " | ".join(("nvcc: " + row[0], *map(str, row[1:]))) + " |")


if __name__ == "__main__":
    main()

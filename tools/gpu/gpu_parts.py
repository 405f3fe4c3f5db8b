"""The parts of `make gpu-check` that are programs of their own: examples, benchmarks, machine code, compute-sanitizer.

Each part has a time limit and gives a dict for the report: `outcome` is "passed", "failed" or "left out", `why` says
the reason of the last two. A part that fails leaves the others alone.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTPUT_KEPT = 20_000  # characters of a program that failed

# Tests that compute-sanitizer repeats: it makes kernels 10 to 100 times slower.
SANITIZED = [
    "tests/cuda/test_cuda.py",
    "tests/cuda/test_thread_coarsening.py",
    "tests/cuda/test_primitives.py",
    "tests/builtins/test_atomics.py",
    "tests/arrays/test_indexed.py",
    "tests/geometry/test_mesh.py",
]
SANITIZERS = ("memcheck", "racecheck")
TIMED_OUT = "was stopped after {:.0f} s"


def environment_for(driver):
    return {**os.environ, **({"WARP_CUDA_DRIVER": driver} if driver else {})}


def run(command, driver, seconds, folder=ROOT):
    """(exit status or None, output, seconds) of a program, which is stopped after `seconds`."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        try:
            status = subprocess.run(
                [str(word) for word in command],
                cwd=folder,
                env=environment_for(driver),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=max(seconds, 0.1),
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        except OSError as error:
            return -1, str(error), time.monotonic() - start
        file.seek(0)
        return status, file.read(), time.monotonic() - start


def result(status, output, seconds, limit, **more):
    found = {"outcome": "passed" if status == 0 else "failed", "seconds": round(seconds, 1), **more}
    if status != 0:
        found["why"] = TIMED_OUT.format(limit) if status is None else f"exit status {status}"
        found["output"] = output[-OUTPUT_KEPT:]
    return found


def left_out(why):
    return {"outcome": "left out", "seconds": 0.0, "why": why}


def show(name, found):
    why = f", {found['why']}" if "why" in found else ""
    print(f"{name}: {found['outcome']}, {found['seconds']} s{why}", flush=True)


# ---- examples ----


def example_runs():
    """{example: options for a small run}, those of the tests."""
    sys.path[:0] = [str(ROOT / "tests" / "examples")]
    try:
        import test_examples
    finally:
        sys.path.pop(0)
    return {name: options for name, (options, _) in test_examples.RUNS.items()}


def examples(driver, seconds, names=None):
    """Each example of the gallery, small, on the GPU: it ends well and writes its pictures."""
    try:
        import PIL  # noqa: F401
        import pytest  # noqa: F401
    except ImportError as error:
        return left_out(f"the examples need {error.name}. help: pip install {error.name}")
    deadline = time.monotonic() + seconds
    runs, found = example_runs(), {}
    # the examples take the default device
    starts = "import sys, runpy, warp; warp.set_device('cuda:0'); runpy.run_module(sys.argv.pop(1), None, '__main__')"
    for name in names or runs:
        left = deadline - time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", starts, f"warp.examples.{name}", "--out", folder, *runs[name]]
            status, output, took = run(command, driver, left) if left > 0 else (None, "", 0.0)
            found[name] = result(status, output, took, seconds, pictures=len(list(Path(folder).iterdir())))
        if found[name]["outcome"] == "passed" and found[name]["pictures"] == 0:
            found[name] |= {"outcome": "failed", "why": "it wrote no picture"}
        show(f"example {name}", found[name])
    return gathered(found)


def gathered(found):
    """One outcome of several programs'."""
    failed = [name for name, one in found.items() if one["outcome"] == "failed"]
    total = round(sum(one["seconds"] for one in found.values()), 1)
    every = {"outcome": "failed" if failed else "passed", "seconds": total, "programs": found}
    if failed:
        every["why"] = "failed: " + ", ".join(failed)
    return every


# ---- compute-sanitizer ----


def find_sanitizer():
    named = shutil.which("compute-sanitizer")
    return named or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer")


def sanitizer(driver, seconds, tests=None):
    """A chosen set of tests under memcheck and racecheck, which find accesses that are out of bounds, and races."""
    program = find_sanitizer()
    if program is None:
        return left_out("there is no compute-sanitizer, of the CUDA toolkit")
    chosen = [name for name in tests or SANITIZED if (ROOT / name).exists()]
    deadline, found = time.monotonic() + seconds, {}
    for tool in SANITIZERS:
        # what is left is shared by the tools that are left
        limit = (deadline - time.monotonic()) / (len(SANITIZERS) - len(found))
        command = [program, "--tool", tool, "--target-processes", "all", "--error-exitcode", "99", sys.executable]
        command += ["-m", "pytest", "-q", "-x", "--device", "cuda:0", *chosen]
        status, output, took = run(command, driver, limit)
        found[tool] = result(status, output, took, limit, tests=chosen)
        show(f"compute-sanitizer {tool}", found[tool])
    return gathered(found)


# ---- benchmarks ----


def bench(driver, seconds, quick=False, small=False, only="gpu"):
    """`bench/run.py --only gpu` beside the peers that are there: the table, and all figures."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, ROOT / "bench" / "run.py", "--only", only, "--found", "--least", "5"]
        command += ["--minutes", f"{0.9 * seconds / 60:.3f}"]
        command += ["--quick"] if quick else ["--rounds", "3"]
        command += ["--small", "--seconds", "0.001"] if small else []
        built = Path(os.environ.get("WEFT_BENCH_BUILD", folder))
        environment = os.environ.get("WEFT_BENCH_BUILD")
        os.environ["WEFT_BENCH_BUILD"] = str(built)
        try:
            status, output, took = run(command, driver, seconds)
        finally:
            if environment is None:
                del os.environ["WEFT_BENCH_BUILD"]
        rows = built / "results.jsonl"
        lines = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    figures = [line for line in lines if "ms" in line]
    found = result(status, output, took, seconds, figures=figures, table=output[-OUTPUT_KEPT:])
    if status == 0 and not any(line["with"] == "weft" for line in figures):
        found |= {"outcome": "failed", "why": "Weft gave no figure"}
    show("benchmarks", found)
    return found


# ---- machine code ----


def machine_code(driver, seconds):
    """Machine code of kernels beside that of nvcc, for which no GPU is needed."""
    script = ROOT / "tools" / "gpu" / "compare_machine_code.py"
    if shutil.which("nvcc", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin") is None:
        return left_out("there is no nvcc, of the CUDA toolkit")
    status, output, took = run([sys.executable, script], driver, seconds)
    found = result(status, output, took, seconds, table=output[-OUTPUT_KEPT:])
    show("machine code", found)
    return found

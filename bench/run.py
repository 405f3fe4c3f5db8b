"""Runs Weft and its peers side by side and prints their times, with ratios: `make bench`.

Every measurement is a fresh process of a program of `throughput/`, `compile/`, `latency/` or, if `--only` asks for
them, `gradients/`, `interop/` and `gpu/`. A round runs all implementations of one program back to back, then those of
the next. A ratio is taken within a round, and the table shows the median over the rounds, so that a machine that slows
down for a while slows both sides of a ratio. README.md explains the rows and how to repeat one.

The peers' environments are made at the first run: `.venv-bench` (Numba), `.venv-frameworks` (JAX and PyTorch) and
`.venv-peer` (the established `warp` package) next to `.venv`, and the C++ loops in `build/bench`. A peer that cannot be
had, or a program that fails, becomes a line below the table with the reason.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import table
from measure import BUILT, ROOT

BENCH = Path(__file__).resolve().parent
COMPILER = os.environ.get("CXX", "g++")
# -fno-math-errno and -fno-trapping-math change no value: they let the strict loops use vector square roots.
STRICT = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"]
FAST = ["-O3", "-march=native", "-ffast-math"]
ALWAYS = ["-std=c++20", "-fopenmp", "-fPIC", "-shared", "-fvisibility=hidden"]


@dataclass(frozen=True)
class Implementation:
    """One column of the table."""

    name: str
    fast: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} fast" if self.fast else self.name


WEFT, PEER, NUMBA, CPP, NUMPY, JAX, TORCH = (
    Implementation(name) for name in ("weft", "peer", "numba", "cpp", "numpy", "jax", "torch")
)
WEFT_FAST, NUMBA_FAST, CPP_FAST = (Implementation(name, True) for name in ("weft", "numba", "cpp"))
ALL = (WEFT, CPP, WEFT_FAST, CPP_FAST, NUMBA, NUMBA_FAST, PEER)
GRADIENTS = (WEFT, CPP, WEFT_FAST, CPP_FAST, JAX, TORCH, PEER)


@dataclass(frozen=True)
class Program:
    """One file, and the implementations that can run it."""

    name: str
    path: Path
    implementations: tuple[Implementation, ...]
    arguments: tuple[str, ...] = ()


def gpu_programs() -> list[Program]:
    """Those of `gpu/`: each file that calls `measure.arguments()`, which says who can run it."""
    found = []
    for path in sorted((BENCH / "gpu").glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            is_of_measure = isinstance(call, ast.Call) and ast.unparse(call.func) == "measure.arguments"
            if is_of_measure and len(call.args) == 3 and isinstance(call.args[2], ast.Tuple):
                names = ast.literal_eval(call.args[2])
                found.append(Program(f"gpu_{path.stem}", path, tuple(Implementation(name) for name in names)))
    return found


PROGRAMS = tuple(
    [
        Program(name, BENCH / "throughput" / f"{name}.py", ALL)
        for name in (
            "saxpy",
            "chain",
            "laplacian",
            "particles",
            "nbody",
            "mandelbrot",
            "spmv",
            "reduce",
            "histogram",
            "own",
            "scatter",
        )
    ]
    + [
        Program("tiles", BENCH / "throughput" / "tiles.py", (WEFT, PEER)),
        Program("bodies", BENCH / "throughput" / "bodies.py", (WEFT, PEER)),
        Program("pieces", BENCH / "throughput" / "pieces.py", (WEFT,)),
        Program("whole", BENCH / "throughput" / "whole.py", (WEFT, NUMPY)),
        Program("trivial", BENCH / "compile" / "trivial.py", (WEFT, PEER, NUMBA)),
        Program("medium", BENCH / "compile" / "medium.py", (WEFT, PEER)),
        Program("gradient", BENCH / "compile" / "gradient.py", (WEFT, PEER)),
        Program("trivial_ptx", BENCH / "compile" / "trivial.py", (WEFT,), ("--cuda",)),
        Program("medium_ptx", BENCH / "compile" / "medium.py", (WEFT,), ("--cuda",)),
        Program("gradient_ptx", BENCH / "compile" / "gradient.py", (WEFT,), ("--cuda",)),
        Program("twenty", BENCH / "compile" / "twenty.py", (WEFT, PEER)),
        Program("hundred", BENCH / "compile" / "hundred.py", (WEFT, PEER)),
        Program("longest", BENCH / "compile" / "longest.py", (WEFT, PEER)),
        Program("loops", BENCH / "compile" / "loops.py", (WEFT, PEER)),
        Program("breaks", BENCH / "compile" / "breaks.py", (WEFT, PEER)),
        Program("sets", BENCH / "compile" / "sets.py", (WEFT, PEER)),
        Program("start", BENCH / "compile" / "start.py", (WEFT, PEER, NUMBA)),
        Program("launch", BENCH / "latency" / "launch.py", (WEFT, PEER, NUMBA)),
        Program("cuda_launch", BENCH / "latency" / "cuda_launch.py", (WEFT,)),
        Program("arrays", BENCH / "latency" / "arrays.py", (WEFT, PEER)),
        Program("values", BENCH / "latency" / "values.py", (WEFT, PEER)),
        Program("tape", BENCH / "gradients" / "memory.py", (WEFT,)),
        Program("queries", BENCH / "geometry" / "queries.py", (WEFT, PEER)),
        Program("neighbours", BENCH / "geometry" / "neighbours.py", (WEFT, PEER, CPP)),
        Program("volume", BENCH / "geometry" / "volume.py", (WEFT, PEER, CPP)),
    ]
    + [
        Program(name, BENCH / "gradients" / f"{name}.py", GRADIENTS)
        for name in ("elementwise", "stencil", "rollout", "recurrence", "jacobi", "pairs")
    ]
    + [Program(name, BENCH / "interop" / f"{name}.py", (WEFT,)) for name in ("torch", "paddle")]
    + [Program("jax", BENCH / "interop" / "jax_calls.py", (WEFT, JAX))]
    + gpu_programs()
)

# Environments of peers that `run.py` makes, with their packages.
ENVIRONMENTS = {
    "numba": (ROOT / ".venv-bench", ["numba", "numpy"]),
    "peer": (ROOT / ".venv-peer", ["warp-lang", "numpy"]),
    "jax": (ROOT / ".venv-frameworks", ["jax", "torch", "numpy"]),
    "torch": (ROOT / ".venv-frameworks", ["jax", "torch", "numpy"]),
}


@dataclass
class Results:
    """All measurements and failures."""

    # (workload, variant) → column title → [(median, least) in ms, one per round]
    rows: dict[tuple[str, str], dict[str, list[tuple[float, float] | None]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, round_number: int, title: str, line: dict) -> None:
        name = f"{line['workload']} {line['variant']} with {title}"
        if "error" in line:
            self.failures.setdefault(name, line["error"])
            return
        figures = self.rows.setdefault((line["workload"], line["variant"]), {}).setdefault(title, [])
        # Rounds keep their places, so that ratios compare figures of the same round.
        figures += [None] * (round_number + 1 - len(figures))
        figures[round_number] = (line["ms"], line["ms_min"])


# ---- the peers' environments ----


def ensure_environment(folder: Path, packages: list[str]) -> str | None:
    """Makes a virtual environment with the packages; returns why it could not, or None."""
    if (folder / "installed").exists():
        return None
    print(f"making {folder.name} with {' and '.join(packages)} …", file=sys.stderr, flush=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip + packages):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-600:]}"
    (folder / "installed").write_text("\n".join(packages) + "\n")
    return None


def build_loops(programs: list[Program]) -> dict[str, str]:
    """Builds the C++ loops that are missing or older than their sources; returns why not, by program."""
    BUILT.mkdir(parents=True, exist_ok=True)
    common = BENCH / "throughput" / "loops.h"
    failures = {}
    for program in programs:
        source = program.path.with_suffix(".cpp")
        if CPP not in program.implementations or not source.exists():  # those of GPUs compile theirs themselves
            continue
        for suffix, options in (("", STRICT), ("-fast", FAST)):
            target = BUILT / f"{program.name}{suffix}.so"
            if target.exists() and target.stat().st_mtime > max(f.stat().st_mtime for f in (source, common)):
                continue
            command = [COMPILER, *options, *ALWAYS, str(source), "-o", str(target)]
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except FileNotFoundError:
                return {p.name: f"there is no C++ compiler called {COMPILER}; set CXX" for p in programs}
            if done.returncode:
                failures[program.name] = f"{' '.join(command)}: {done.stderr.strip()[-600:]}"
    return failures


# Peers that are packages of Python: GPUs' builds of them are where the user has put them.
PACKAGES = ("numba", "jax", "torch", "cupy", "triton", "paddle")


class Runner:
    """Starts the programs, each with the Python of its implementation."""

    def __init__(self, options: argparse.Namespace, programs: list[Program], names: set[str]):
        self.seconds, self.threads, self.small = options.seconds, options.threads, options.small
        self.pythons: dict[str, Path] = {}
        self.absent: dict[str, str] = {}
        asked = {i.name for program in programs for i in program.implementations if i.name in names}
        for name in sorted(asked):
            self.pythons[name] = Path(options.python)
            is_here = name not in ENVIRONMENTS and name not in PACKAGES
            if options.found:
                is_here |= name in PACKAGES and importlib.util.find_spec(name) is not None
            if is_here:
                continue
            if name not in ENVIRONMENTS:
                if not importlib.util.find_spec(name):
                    self.absent[name] = f"there is no Python package {name} here"
                continue
            folder, packages = ENVIRONMENTS[name]
            self.pythons[name] = folder / "bin" / "python"
            if not options.found:
                why = ensure_environment(folder, packages)
            else:
                why = None if (folder / "installed").exists() else f"there is neither {name} here nor {folder.name}"
            if why:
                self.absent[name] = why
        self.not_built = build_loops(programs) if "cpp" in names else {}
        self.environment = dict(os.environ)
        # No bound for Weft's own search path; the others must not find Weft on it.
        self.others = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        if options.threads:
            count = str(options.threads)
            for environment in (self.environment, self.others):
                for variable in ("WARP_CPU_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
                    environment[variable] = count

    def keep_to_processors(self) -> None:
        """Keeps a process to as many processors as it may have threads: not every library asks the environment."""
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-self.threads :])

    def run(self, program: Program, implementation: Implementation, timeout: float) -> list[dict]:
        """The JSON lines of one process; a line with an `error` if it gave none."""

        def failed(why: str) -> list[dict]:
            return [{"workload": program.name, "variant": "all", "error": why}]

        name = implementation.name
        if name in self.absent:
            return failed(self.absent[name])
        if name == "cpp" and program.name in self.not_built:
            return failed(self.not_built[program.name])
        command = [str(self.pythons[name]), str(program.path), "--with", name, "--seconds", str(self.seconds)]
        command += [*program.arguments, *(["--fast"] if implementation.fast else [])]
        is_on_gpu = program.path.parent.name == "gpu"
        if self.small and is_on_gpu and '"--small"' in program.path.read_text():
            command.append("--small")
        environment = self.environment if name == "weft" or is_on_gpu else self.others
        try:
            keep_to = {"preexec_fn": self.keep_to_processors} if self.threads else {}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, **keep_to)
        except subprocess.TimeoutExpired:
            return failed(f"was stopped after {timeout:.0f} s")
        except OSError as error:
            return failed(str(error))
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode < 0 or not lines:
            lines += failed(f"exit status {done.returncode}: {done.stderr.strip()[-1000:]}")
        return lines


def machine() -> dict:
    """The machine of the figures."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    flags = info.read_text() if info.exists() else ""
    simd = next((name for name, flag in (("AVX-512", "avx512f"), ("AVX2", "avx2")) if flag in flags), "SSE2")
    return {
        "processor": model,
        "simd": simd,
        "cpus": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "load": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def measure_all(options, programs: list[Program], names: set[str]) -> Results:
    runner = Runner(options, programs, names)
    results = Results()
    deadline = time.monotonic() + options.minutes * 60
    jobs = [(p, i) for p in programs for i in p.implementations if i.name in names]
    BUILT.mkdir(parents=True, exist_ok=True)
    with open(BUILT / "results.jsonl", "w") as file:
        file.write(json.dumps({"machine": machine()}) + "\n")
        for round_number in range(options.rounds):
            for done, (program, implementation) in enumerate(jobs):
                left = deadline - time.monotonic()
                if left <= 0:
                    print(f"\nstopped in round {round_number + 1}: {options.minutes} minutes are over", file=sys.stderr)
                    return results
                print(
                    f"\rround {round_number + 1}/{options.rounds}  {done + 1:3}/{len(jobs)}  "
                    f"{program.name} {implementation.title}".ljust(60),
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
                for line in runner.run(program, implementation, max(left, options.least)):
                    results.add(round_number, implementation.title, line)
                    file.write(json.dumps({"round": round_number, **line, "with": implementation.title}) + "\n")
                file.flush()
    print(file=sys.stderr)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="default 5; with --quick 1")
    parser.add_argument(
        "--only",
        help="programs, by commas; `gradients`, `interop`, `gpu` for those: " + ",".join(p.name for p in PROGRAMS),
    )
    parser.add_argument(
        "--with", dest="implementations", help="implementations, by commas: weft,cpp,numba,peer,jax,torch,driver"
    )
    parser.add_argument("--found", action="store_true", help="only peers that are installed: makes no environments")
    parser.add_argument("--small", action="store_true", help="programs of gpu/ take a few thousand elements")
    parser.add_argument("--least", type=float, default=30.0, help="seconds that each process has at least; default 30")
    parser.add_argument("--quick", action="store_true", help="one short round: at most 3 minutes")
    parser.add_argument("--seconds", type=float, help="time for each figure; default 0.25, with --quick 0.08")
    parser.add_argument("--minutes", type=float, help="time for everything; default 15, with --quick 3")
    parser.add_argument("--threads", type=int, help="threads of all implementations; default: one per CPU")
    parser.add_argument("--best", action="store_true", help="compare the least times instead of the medians")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs Weft")
    parser.add_argument("--build", action="store_true", help="only build what the peers need")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.seconds = options.seconds or (0.08 if options.quick else 0.25)
    options.minutes = options.minutes or (3.0 if options.quick else 15.0)
    known = {p.name for p in PROGRAMS}
    groups = {
        group: {p.name for p in PROGRAMS if p.path.parent.name == group} for group in ("gradients", "interop", "gpu")
    }
    wanted = set(options.only.split(",")) if options.only else known.difference(*groups.values())
    for group, names in groups.items():
        if group in wanted:
            wanted = wanted - {group} | names
    everybody = {implementation.name for p in PROGRAMS for implementation in p.implementations}
    names = set(options.implementations.split(",")) if options.implementations else everybody
    for given, possible, what in ((wanted, known, "program"), (names, everybody, "peer")):
        if given - possible:
            parser.error(
                f"there is no {what} {', '.join(sorted(given - possible))}; expected {', '.join(sorted(possible))}"
            )
    programs = [p for p in PROGRAMS if p.name in wanted]
    if options.build:
        runner = Runner(options, programs, names)
        for name, why in {**runner.absent, **runner.not_built}.items():
            print(f"{name}: {why}", file=sys.stderr)
        return 1 if runner.absent or runner.not_built else 0
    about = machine()
    if about["load"] > 0.5 * about["cpus"]:
        print(f"the machine is busy (load {about['load']}): trust ratios, not times", file=sys.stderr)
    results = measure_all(options, programs, names)
    print(f"{about['processor']} ({about['simd']}), {about['cpus']} CPUs, {about['date']}, load {about['load']}\n")
    table.print_tables(results.rows, best=options.best)
    for name, why in results.failures.items():
        print(f"no figure for {name}: {why}")
    print(f"\nall figures: {BUILT / 'results.jsonl'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

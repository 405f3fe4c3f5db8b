"""All Python tests, in parts that run beside each other: as many at a time as there are processors, four at most.

    python tools/run_tests.py --report FILE        writes the result of each test, as `pytest --report FILE` does
    python tools/run_tests.py --keep-ptx FOLDER    leaves the kernels of the emulated CUDA device in a fresh folder
    python tools/run_tests.py --only PART          the parts whose names begin so
    python tools/run_tests.py --folders NAME...    these folders of tests/ on the CPU, as `make quick` does
    python tools/run_tests.py --long               the tests of minutes on the emulated device, too
    python tools/run_tests.py --at-a-time N        so many parts beside each other, on any machine;
                                                   WEFT_TESTS_AT_A_TIME says it to `make test`
    python tools/run_tests.py --other-numbers      launches on the emulated device are done with other numbers, too
                                                   (tests/support/other_numbers)

A test uses one processor nearly all of its time. The parts of the CPU are all of tests/ in folders, so that a new file
belongs to one without being named here. The others are suites that run once more, with another default device. Marks
in a file's `pytestmark` say which (pyproject.toml describes them): each file runs on the emulated CUDA device, but for
those with `cpu_only`; those with `protected` run on `cpu:protected`. A test that is skipped in one part and passes in
another has passed: tests that need a CUDA device run on the emulated one.
"""

import argparse
import ast
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_AT_A_TIME = 4

# Folders of tests that run no kernels of their own: they run on the CPU only, and their files need no mark.
WITHOUT_KERNELS = {"tools"}
# The emulated device runs these in one part and the other folders in a second one, which takes about as long.
ARRAYS = {"arrays", "examples", "geometry", "gradients", "graphs", "launches", "structs"}


@functools.cache
def marks(file):
    """{name: arguments} of the marks in the `pytestmark` of a file."""
    found, text = {}, (ROOT / file).read_text()
    for node in ast.parse(text).body if "pytestmark" in text else ():
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "pytestmark"
        ):
            for mark in node.value.elts if isinstance(node.value, ast.List) else [node.value]:
                called = isinstance(mark, ast.Call)
                name = mark.func if called else mark
                if isinstance(name, ast.Attribute):
                    found[name.attr] = [ast.literal_eval(argument) for argument in mark.args] if called else []
    return found


def files():
    """All files of tests, by name."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def folder_of(file):
    return file.split("/")[1]


def files_on_cuda():
    return [file for file in files() if folder_of(file) not in WITHOUT_KERNELS and "cpu_only" not in marks(file)]


def folders():
    """The folders of tests/ that have tests of their own, the long ones first."""
    longest = ["builtins", "interop", "gradients", "geometry", "language"]
    return longest + sorted({folder_of(file) for file in files()} - set(longest))


def parts(keep_ptx=None, other_numbers=False, long=False):
    """(name, arguments of pytest, settings of the environment, whether it belongs to the report)"""
    no_gpu = {"WARP_CUDA_DRIVER": "none"}  # that of the machine would be the default device
    yield (
        "second device",
        ["--device", "cpu:protected", *(file for file in files() if "protected" in marks(file))],
        no_gpu,
        False,
    )
    settings = {"WARP_CUDA_DRIVER": "emulated", **({"WEFT_KEEP_PTX": str(keep_ptx)} if keep_ptx else {})}
    options = ["--device", "cuda:0", *(["--other-numbers"] if other_numbers else [])]
    left_out = [*(["own_launches"] if other_numbers else []), *([] if long else ["minutes_on_cuda"])]
    if left_out:
        options += ["-m", " and ".join(f"not {mark}" for mark in left_out)]
    chosen = [file for file in files_on_cuda() if not (other_numbers and "own_launches" in marks(file))]
    for name, is_arrays, arch in (("arrays, gradients and programs", True, 90), ("language", False, 75)):
        on_arch = {**settings, "WEFT_EMULATED_ARCH": os.environ.get("WEFT_EMULATED_ARCH", str(arch))}
        suites = [file for file in chosen if (folder_of(file) in ARRAYS) == is_arrays]
        yield f"emulated CUDA: {name}", [*options, *suites], on_arch, True
    for folder in folders():
        yield folder, [f"tests/{folder}"], no_gpu, True


# From the outcome that says least about a test to the one that says most.
OUTCOMES = ["skipped", "passed", "xfailed", "not run", "failed"]


def merged(reports):
    """One report of those of the parts."""
    tests = {}
    for report in reports:
        for name, test in report.items():
            known = tests.setdefault(name, test)
            if OUTCOMES.index(test["outcome"]) > OUTCOMES.index(known["outcome"]):
                tests[name] = test
    in_order = sorted(tests, key=lambda name: name.split("::")[0])
    return {name: tests[name] for name in in_order}


def run(part, reports):
    name, arguments, settings, is_reported = part
    command = [sys.executable, "-m", "pytest", "-q", "--durations=3", *arguments]
    if is_reported:
        command += ["--report", reports / f"{name}.json"]
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(f"-- {name}: {time.monotonic() - start:.0f} s\n{done.stdout}", end="", flush=True)
    return done.returncode == 0


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, not {number}")
    return number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", type=Path, help="where what each test showed is written")
    parser.add_argument("--keep-ptx", type=Path, help="where the texts of kernels for CUDA devices are left")
    parser.add_argument("--only", help="how the names of the parts begin")
    parser.add_argument("--folders", nargs="+", help="folders of tests/, on the CPU only")
    parser.add_argument("--long", action="store_true", help="run the tests of minutes on the emulated device, too")
    parser.add_argument("--other-numbers", action="store_true", help="compare launches on the emulated device")
    forced = os.environ.get("WEFT_TESTS_AT_A_TIME")
    parser.add_argument("--at-a-time", type=positive, default=forced, help="how many parts run beside each other")
    options = parser.parse_args()
    if options.keep_ptx:
        shutil.rmtree(options.keep_ptx, ignore_errors=True)
        options.keep_ptx.mkdir(parents=True)
        options.keep_ptx = options.keep_ptx.resolve()
    every = list(parts(options.keep_ptx, options.other_numbers, options.long))
    if options.only:
        names = [part[0] for part in every]
        every = [part for part in every if part[0].startswith(options.only)]
        if not every:
            parser.error(f"there is no part '{options.only}'; expected {', '.join(names)}")
    if options.folders:
        if unknown := set(options.folders) - set(folders()):
            parser.error(f"there is no tests/{min(unknown)}; expected some of {', '.join(folders())}")
        every = [part for part in every if part[0] in options.folders]
    with tempfile.TemporaryDirectory() as temporary:
        reports = Path(temporary)
        by_itself = min(MOST_AT_A_TIME, len(os.sched_getaffinity(0)))
        with ThreadPoolExecutor(options.at_a_time or by_itself) as pool:
            passed = list(pool.map(lambda part: run(part, reports), every))
        if options.report:
            found = [json.loads(file.read_text()) for file in sorted(reports.glob("*.json"))]
            options.report.write_text(json.dumps(merged(found), indent=1))
    failed = [part[0] for part, is_fine in zip(every, passed, strict=True) if not is_fine]
    if failed:
        print(f"parts that failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

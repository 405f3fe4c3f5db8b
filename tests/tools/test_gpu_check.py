"""tools/gpu/gpu_check.py with the emulated device in the place of a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda_tools import PTXAS, needs_ptxas

ROOT = Path(__file__).resolve().parents[2]


def test_it_writes_one_report(tmp_path):
    report = tmp_path / "report.json"
    command = [sys.executable, ROOT / "tools/gpu/gpu_check.py", "--driver", "emulated", "--report", report]
    done = subprocess.run(
        [*command, "--suites", "tests/cuda/test_cuda.py"], capture_output=True, text=True, env=os.environ
    )
    found = json.loads(report.read_text())
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["opcodes"]["agree"] > 1470 and found["opcodes"]["differ"] == {} and found["device"].startswith("Weft")
    assert found["suites"]["tests/cuda/test_cuda.py"]["passed"] > 40


WITHOUT_PACKAGES = """
import importlib.machinery
find = importlib.machinery.PathFinder.find_spec
def find_spec(cls, name, path=None, target=None):
    return None if name.split(".")[0] in ("hypothesis", "scipy") else find(name, path, target)
importlib.machinery.PathFinder.find_spec = classmethod(find_spec)
"""


def test_a_machine_with_pytest_alone_runs_what_it_can(tmp_path):
    """No hypothesis, no SciPy, and nothing that is built with the tests."""
    report = tmp_path / "report.json"
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_PACKAGES)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    names = ["launches/test_second_device", "arrays/test_shapes", "arrays/test_data", "gradients/test_verify"]
    suites = [f"tests/{name}.py" for name in names]
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tools/gpu/gpu_check.py",
            "--driver",
            "emulated",
            "--report",
            report,
            "--suites",
            *suites,
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "BUILD": str(tmp_path / "no build")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: 1 files or tests need hypothesis. help: pip install hypothesis" in done.stdout
    second, shapes, data, verify = json.loads(report.read_text())["suites"].values()
    assert second["skips"] == {"needs libprotected_memory.so, which is built with the tests": second["skipped"]}
    assert shapes["skips"] == {"needs the Python package hypothesis": 1}
    assert data["passed"] > 5 and verify["passed"] > 5


def test_a_suite_that_cannot_run_is_named(tmp_path):
    report = tmp_path / "report.json"
    command = [sys.executable, ROOT / "tools/gpu/gpu_check.py", "--driver", "emulated", "--report", report]
    done = subprocess.run([*command, "--suites", "tests/nowhere.py"], capture_output=True, text=True)
    assert done.returncode == 1 and "tests/nowhere.py: pytest gave 4, see 'output' in the report" in done.stdout
    assert "file or directory not found" in json.loads(report.read_text())["suites"]["tests/nowhere.py"]["output"]


def test_without_a_gpu_it_says_so():
    command = [sys.executable, ROOT / "tools/gpu/gpu_check.py", "--driver", "/nowhere/libcuda.so.1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "there is no GPU to check" in done.stderr


# ---- the other parts ----


@pytest.fixture(scope="module")
def parts(tool):
    return tool("gpu_parts")


def test_examples_run_on_the_device(parts):
    pytest.importorskip("PIL", reason="the examples write pictures with Pillow")
    found = parts.examples("emulated", 300, ["mandelbrot", "gray_scott"])
    assert found["outcome"] == "passed", found
    assert found["programs"]["mandelbrot"]["pictures"] == 1


def test_each_example_of_the_gallery_is_among_them(parts):
    folder = ROOT / "python" / "warp" / "examples"
    names = {path.stem for path in folder.glob("[a-z]*.py")}
    assert set(parts.example_runs()) == names


def test_an_example_that_takes_too_long_is_stopped(parts):
    pytest.importorskip("PIL", reason="the examples write pictures with Pillow")
    found = parts.examples("emulated", 0.02, ["mandelbrot", "gray_scott"])
    assert found["outcome"] == "failed" and found["why"] == "failed: mandelbrot, gray_scott"
    assert found["programs"]["mandelbrot"]["why"].startswith("was stopped after 0")
    assert found["seconds"] < 60  # two programs that run for minutes on the emulated device


# In the place of compute-sanitizer: runs the program that follows the options; racecheck finds something.
SANITIZER = """#!/bin/sh
[ "$1" = --tool ] || exit 3
tool=$2
while [ "$1" != {python} ]; do shift; done
"$@" || exit $?
[ $tool = memcheck ] || exit 99
"""


@pytest.fixture
def sanitizer_on_path(tmp_path, monkeypatch):
    program = tmp_path / "compute-sanitizer"
    program.write_text(SANITIZER.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


def test_the_sanitizer_runs_each_tool(parts, sanitizer_on_path):
    found = parts.sanitizer("emulated", 300, ["tests/arrays/test_data.py"])
    assert found["outcome"] == "failed" and found["why"] == "failed: racecheck"
    assert found["programs"]["memcheck"]["outcome"] == "passed"
    assert found["programs"]["racecheck"]["why"] == "exit status 99"


def test_all_chosen_tests_are_there(check, parts):
    for name in [*parts.SANITIZED, *check.QUICK_SUITES]:
        assert (ROOT / name).exists(), name


def test_benchmarks_give_their_figures(parts):
    found = parts.bench("emulated", 200, quick=True, small=True, only="gpu_graph")
    assert found["outcome"] == "passed", found
    rows = {(line["workload"], line["variant"], line["with"]) for line in found["figures"]}
    variants = ("graph of 100", "launch")
    assert rows == {("gpu graph", variant, name) for variant in variants for name in ("weft", "driver")}
    assert "| gpu graph | launch" in found["table"]


def test_a_part_that_fails_leaves_the_others(tmp_path):
    report = tmp_path / "report.json"
    command = [sys.executable, ROOT / "tools/gpu/gpu_check.py", "--driver", "emulated", "--report", report]
    command += [
        "--quick",
        "--parts",
        "machine_code",
        "suites",
        "--suites",
        "tests/nowhere.py",
        "tests/arrays/test_data.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    found = json.loads(report.read_text())
    assert done.returncode == 1 and found["parts"] == ["machine_code", "suites"]
    assert found["suites"]["tests/arrays/test_data.py"]["passed"] > 5
    assert found["failures"][0].startswith("tests/nowhere.py: pytest gave 4")
    text = done.stdout
    assert "-- 2 of 2: suites" in text and "-- summary" in text and "machine_code: " in text.split("-- summary")[1]
    assert set(found["seconds"]) == {"machine_code", "suites"}


def test_suites_that_have_no_time_left_are_named(check):
    class Options:
        quick, suites, jobs, driver = True, ["tests/arrays/test_data.py"], 1, "emulated"

    known = dict(check.QUICK_SECONDS)
    check.QUICK_SECONDS["suites"] = 0
    try:
        report = {"suites": check.run_suites(Options)}
    finally:
        check.QUICK_SECONDS.update(known)
    (line,) = check.failures_of(report)
    assert line.startswith("tests/arrays/test_data.py: pytest gave not begun: the time of the suites was over")


@pytest.mark.parametrize(
    "opcode, expected, found, differs",
    [
        ("add.u32", 5, 6, True),
        ("add.f32", 0x3F800000, 0x3F800001, True),  # an exact result
        ("add.f32", 0x7FC00000, 0x7FFFFFFF, False),  # NaNs
        ("add.f32", 0, 0x80000000, True),  # the sign of a zero
        ("sin.approx.f32", 0x3F800000, 0x3F7FFFF8, False),
        ("sin.approx.f32", 0x3F800000, 0x3F7F0000, True),
        ("add.f16x2", 0x3C007E00, 0x3C007FFF, False),
        ("add.f16x2", 0x3C007E00, 0x3C017FFF, True),
    ],
)
def test_what_counts_as_a_difference(check, opcode, expected, found, differs):
    one, two = (np.array([[word, 0]], dtype=np.uint64) for word in (expected, found))
    assert len(check.differing(opcode, np.ones((1, 4), dtype=np.uint64), one, two)) == differs


def test_a_carry_counts_too(check):
    one, two = (np.array([[7, carry]], dtype=np.uint64) for carry in (0, 1))
    assert len(check.differing("add.cc.u32", np.ones((1, 4), dtype=np.uint64), one, two)) == 1


def test_divisions_that_ptx_does_not_define_are_left_out(check):
    inputs = np.array([[8, 0, 0, 0], [0x80000000, 0xFFFFFFFF, 0, 0], [8, 2, 0, 0]], dtype=np.uint64)
    assert check.undefined("div.s32", inputs).tolist() == [True, True, False]


def test_what_ptx_leaves_open_is_left_out(check):
    fields = np.array([[7, 3, 4, 0], [7, 256, 4, 0], [7, 3, 256, 0]], dtype=np.uint64)
    assert check.undefined("bfe.u64", fields).tolist() == [False, True, True]
    assert check.undefined("bfi.b64", fields).tolist() == [False, False, True]
    angles = np.zeros((3, 4), dtype=np.uint64)
    angles[:, 0] = np.array([-6.0, 7.0, np.nan], np.float32).view(np.uint32)
    assert check.undefined("sin.approx.ftz.f32", angles).tolist() == [False, True, True]


def test_a_wrong_opcode_is_found(check, emulated):
    """The kernel of one opcode runs in the place of another one."""
    opcodes = {name: slots for name, slots in check.opcodes_of(emulated).items() if name in ("min.s32", "add.f64")}
    inputs = check.inputs_for(opcodes)
    right = check.run_opcodes(emulated, 90, opcodes, inputs)
    module = emulated.load(
        check.module_text(emulated, 90, {"a": "min.u32", "b": "sub.f64"}, check.opcodes_of(emulated))
    )
    for name, opcode in (("a", "min.s32"), ("b", "add.f64")):
        wrong = emulated.run(module, name, inputs[opcode], 2)
        assert len(check.differing(opcode, inputs[opcode], right[opcode], wrong)) > 100
        assert len(check.differing(opcode, inputs[opcode], right[opcode], right[opcode])) == 0


@needs_ptxas
def test_the_kernels_of_opcodes_are_ptx(check, emulated, tmp_path):
    opcodes = check.opcodes_of(emulated)
    exact = [
        name for name in opcodes if name.split(".")[0] in ("add", "addc", "subc", "lop3", "prmt", "setp", "fma", "shf")
    ]
    names = {f"op_{i}": name for i, name in enumerate(n for n in exact if "f32x2" not in n)}
    text = check.module_text(emulated, 90, names, opcodes)
    text = text.replace(f".version {emulated.ptx}", ".version 8.0", 1)  # older ptxas take it, too
    file = tmp_path / "opcodes.ptx"
    file.write_text(text)
    done = subprocess.run([PTXAS, "-arch=sm_90", file, "-o", os.devnull], capture_output=True, text=True)
    assert len(names) > 100 and done.returncode == 0, done.stdout + done.stderr

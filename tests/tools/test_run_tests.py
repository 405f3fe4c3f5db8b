"""The parts in which `make test` runs the Python tests."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_belongs_to_one_part_on_the_cpu(tool):
    on_cpu = [arguments for _, arguments, _, _ in tool("run_tests").parts() if "--device" not in arguments]
    folders = [folder for arguments in on_cpu for folder in arguments]
    for file in (ROOT / "tests").rglob("test_*.py"):
        assert sum(file.is_relative_to(ROOT / folder) for folder in folders) == 1, file


def test_files_of_other_devices_are_there(tool):
    others = [arguments for _, arguments, _, _ in tool("run_tests").parts() if "--device" in arguments]
    named = [argument for arguments in others for argument in arguments if argument.startswith("tests/")]
    assert len(named) > 50 and all((ROOT / name).exists() for name in named)


# The text of a file that stays on the CPU for this reason. A reason that is true no longer has no such file.
REASONS = {
    "other frameworks are built for the CPU here; their GPUs come later": (
        r"torch|jax|paddle|numba|dlpack|mpi|from_numpy|library|framework"
    ),
    "needs a GPU, and other frameworks for it: `make gpu-check`": r"torch|jax",
    "is about the CPU's lanes": r"lane",
    "is about the order of threads that launches on the CPU take from a grid": r"\bordered\b",
    "is about a process without a GPU: its default device, what it logs and answers": r"sys\.executable|cpu|logg",
    "runs no kernel: names, syntax trees, errors of the compiler": r"^(?![\s\S]*wp\.launch\()",
    "takes the emulated device by itself, whatever the default device is": r"emulated|ptxas",
    "runs a program of its own on the emulated device, which says what failed": r"emulated",
    "is about errors of the compiler": r"raises",
    "nothing is computed, but for one picture": r"warp\.examples",
}


def test_files_that_stay_on_the_cpu_say_why_and_the_reason_is_true(tool):
    marks = tool("run_tests").marks
    reasons = {file: marks(file)["cpu_only"] for file in tool("run_tests").files() if "cpu_only" in marks(file)}
    assert {reason for (reason,) in reasons.values()} == set(REASONS)
    untrue = [
        file
        for file, (reason,) in reasons.items()
        if not re.search(f"(?i){REASONS[reason]}", (ROOT / file).read_text())
    ]
    assert not untrue


def test_files_without_kernels_need_no_mark_and_the_others_run_on_the_emulated_device(tool):
    run_tests = tool("run_tests")
    assert set(run_tests.folders()) >= run_tests.WITHOUT_KERNELS | run_tests.ARRAYS
    parts = [arguments for name, arguments, _, _ in run_tests.parts() if name.startswith("emulated CUDA")]
    first, second = ({argument for argument in arguments if argument.startswith("tests/")} for arguments in parts)
    assert not first & second and first | second == set(run_tests.files_on_cuda())
    assert {"tests/cuda/test_cuda.py", "tests/gradients/test_kernels.py"} < first | second
    assert not [file for file in first | second if file.startswith(("tests/tools/", "tests/interop/test_torch"))]


def test_marks_are_read_without_importing_the_file(tool, tmp_path):
    file = tmp_path / "test_a.py"
    file.write_text('import no_such_module\npytestmark = [pytest.mark.gpu, pytest.mark.cpu_only("why"), needs_it]\n')
    assert tool("run_tests").marks(str(file)) == {"gpu": [], "cpu_only": ["why"]}
    file = tmp_path / "test_b.py"
    file.write_text("pytestmark = pytest.mark.protected\ndef test_b(): pytestmark = pytest.mark.gpu\n")
    assert tool("run_tests").marks(str(file)) == {"protected": []}


def test_tests_of_minutes_and_those_with_launches_of_their_own_are_left_out_where_nobody_asks_for_them(tool):
    def on_cuda(**options):
        parts = tool("run_tests").parts(**options)
        return {word for name, arguments, _, _ in parts if name.startswith("emulated CUDA") for word in arguments}

    plain, every, others = on_cuda(), on_cuda(long=True), on_cuda(other_numbers=True)
    assert plain - every == {"-m", "not minutes_on_cuda"}
    assert others - plain == {"--other-numbers", "not own_launches and not minutes_on_cuda"}
    assert {Path(file).name for file in plain - others} >= {"test_failures.py", "test_graphs.py"}
    assert "tests/gradients/test_kernels.py" in others and "tests/cuda/test_cuda.py" in others


def test_a_test_that_one_part_skips_and_another_shows_has_passed(tool):
    def report(**outcomes):
        return {f"tests/{name}.py::test": {"outcome": outcome} for name, outcome in outcomes.items()}

    cpu = report(b="skipped", a="passed", c="skipped", d="failed")
    cuda = report(a="skipped", b="passed", c="skipped", d="passed")
    for parts in ([cpu, cuda], [cuda, cpu]):
        merged = tool("run_tests").merged(parts)
        assert [test["outcome"] for test in merged.values()] == ["passed", "passed", "skipped", "failed"]
        assert list(merged) == [f"tests/{name}.py::test" for name in "abcd"]


def test_a_part_that_fails_is_named_and_the_others_run(tool, tmp_path, monkeypatch, capsys):
    good, bad = tmp_path / "test_good.py", tmp_path / "test_bad.py"
    good.write_text("def test_good(): pass\n")
    bad.write_text("def test_bad(): assert False\n")
    run_tests = tool("run_tests")
    parts = [("bad", [str(bad)], {}, False), ("good", [str(good)], {}, False)]
    monkeypatch.setattr(run_tests, "parts", lambda *_: iter(parts))
    monkeypatch.setattr("sys.argv", ["run_tests.py"])
    assert run_tests.main() == 1
    shown = capsys.readouterr()
    assert "1 passed" in shown.out and "parts that failed: bad" in shown.err
    # One of them.
    monkeypatch.setattr("sys.argv", ["run_tests.py", "--only", "good"])
    assert run_tests.main() == 0 and "1 failed" not in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "setting", "expected"), [([], "8", 8), (["--at-a-time", "3"], "8", 3)])
def test_how_many_parts_run_beside_each_other_can_be_said(tool, monkeypatch, arguments, setting, expected):
    run_tests, used = tool("run_tests"), []
    monkeypatch.setattr(run_tests, "run", lambda part, reports: True)
    monkeypatch.setattr(run_tests, "parts", lambda *_: iter([("a part", [], {}, False)]))
    monkeypatch.setattr(run_tests, "ThreadPoolExecutor", lambda n: used.append(n) or ThreadPoolExecutor(n))
    monkeypatch.setattr("sys.argv", ["run_tests.py", *arguments])
    monkeypatch.setenv("WEFT_TESTS_AT_A_TIME", setting)
    assert run_tests.main() == 0 and used == [expected]
    monkeypatch.setenv("WEFT_TESTS_AT_A_TIME", "0")
    monkeypatch.setattr("sys.argv", ["run_tests.py"])
    with pytest.raises(SystemExit):
        run_tests.main()

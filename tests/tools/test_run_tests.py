"""The parts in which `make test` runs the Python tests."""

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


def test_every_file_runs_on_the_emulated_device_or_says_why_not(tool):
    run_tests = tool("run_tests")
    on_cuda = run_tests.files_on_cuda()
    left_out = run_tests.files(*run_tests.NOT_ON_CUDA.values())
    listed = [*on_cuda, *left_out]
    there = {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py")}
    assert sorted(listed) == sorted(there), "a file that is in no list, is in two, or is gone"
    assert all(len(reason) > 10 for reason in run_tests.NOT_ON_CUDA)


def test_tests_of_minutes_are_there_and_left_out_of_short_runs(tool):
    run_tests = tool("run_tests")

    def options(**chosen):
        parts = run_tests.parts(**chosen)
        return [option for name, given, _, _ in parts if name.startswith("emulated CUDA") for option in given]

    for test in run_tests.LONG_ON_CUDA:
        file, name = test.split("::")
        assert f"\ndef {name}(" in (ROOT / file).read_text() and file in run_tests.files_on_cuda()
        assert options().count(f"--deselect={test}") == 1
    assert not [option for option in options(long=True) if option.startswith("--deselect")]
    assert set(options(long=True)) < set(options())


def test_other_numbers_are_for_what_kernels_compute(tool):
    def on_cuda(**options):
        parts = tool("run_tests").parts(**options)
        return {file for name, arguments, _, _ in parts if name.startswith("emulated CUDA") for file in arguments}

    plain, others = on_cuda(), on_cuda(other_numbers=True)
    assert "--other-numbers" in others and others - plain == {"--other-numbers"}
    assert {Path(file).name for file in plain - others} >= {"test_cuda_failures.py", "test_graphs.py"}
    assert "tests/gradients/test_kernels.py" in others and "tests/python/test_cuda.py" in others


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

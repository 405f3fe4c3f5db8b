"""The parts in which `make test` runs the Python tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_belongs_to_one_part_of_the_report(tool):
    parts = tool("run_tests").parts()
    reported = [argument for _, arguments, _, is_reported in parts if is_reported for argument in arguments]
    for file in (ROOT / "tests").rglob("test_*.py"):
        assert sum(file.is_relative_to(ROOT / folder) for folder in reported) == 1, file


def test_files_of_other_devices_are_there(tool):
    others = [arguments for _, arguments, _, is_reported in tool("run_tests").parts() if not is_reported]
    named = [argument for arguments in others for argument in arguments if argument.startswith("tests/")]
    assert len(named) > 50 and all((ROOT / name).exists() for name in named)


def test_a_part_that_fails_is_named_and_the_others_run(tool, tmp_path, monkeypatch, capsys):
    good, bad = tmp_path / "test_good.py", tmp_path / "test_bad.py"
    good.write_text("def test_good(): pass\n")
    bad.write_text("def test_bad(): assert False\n")
    run_tests = tool("run_tests")
    parts = [("bad", [str(bad)], {}, False), ("good", [str(good)], {}, False)]
    monkeypatch.setattr(run_tests, "parts", lambda: iter(parts))
    monkeypatch.setattr("sys.argv", ["run_tests.py"])
    assert run_tests.main() == 1
    shown = capsys.readouterr()
    assert "1 passed" in shown.out and "parts that failed: bad" in shown.err

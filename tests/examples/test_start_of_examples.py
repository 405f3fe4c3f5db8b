"""The list of examples, the packages that they look for at their start, and the progress that they tell."""

import json
import subprocess
import sys

import pytest
from warp.examples import _show
from warp.examples.__main__ import examples

pytestmark = pytest.mark.cpu_only("nothing is computed, but for one picture")

# Runs each of these examples with its own folder for pictures, as `python -m warp.examples NAME --out FOLDER` does, in
# one process without a package; prints what each ended with.
START_ALL = """
import json, runpy, sys

hidden, folder, *names = sys.argv[1:]
sys.modules[hidden] = None
ends = {}
for name in names:
    sys.argv = ["examples", name, "--out", f"{folder}/{name}"]
    try:
        runpy.run_module("warp.examples", run_name="__main__")
        ends[name] = None
    except SystemExit as end:
        ends[name] = end.code
print(json.dumps(ends))
"""


def run_examples(*arguments):
    command = [sys.executable, "-m", "warp.examples", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def ends_without(package, names, folder):
    """{name: the last words of the example}, at sizes at which some would run for minutes."""
    command = [sys.executable, "-c", START_ALL, package, folder, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_list_has_every_example_with_its_sentence():
    done = run_examples()
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert listed == sorted(examples()) and "lagoon" in listed
    assert "A dam breaks" in done.stdout and "weft-lang[examples]" in done.stdout


def test_an_example_runs_by_its_name(tmp_path):
    pytest.importorskip("PIL.Image", reason="the examples write pictures with Pillow")
    done = run_examples("mandelbrot", "--size", 64, "--out", tmp_path)
    assert done.returncode == 0 and (tmp_path / "mandelbrot.png").exists()
    assert "--samples" in run_examples("mandelbrot", "--help").stdout


def test_a_name_that_is_not_there_says_which_is_near():
    done = run_examples("lagon")
    assert done.returncode == 1 and "'lagon': did you mean lagoon?" in done.stderr


def test_pillow_is_looked_for_before_anything_is_computed(tmp_path):
    ends = ends_without("PIL", sorted(examples()), tmp_path)
    for name in examples():
        assert "pip install 'weft-lang[examples]'" in str(ends[name]), f"{name} ended with {ends[name]!r}"
    assert not list(tmp_path.iterdir())


def test_matplotlib_is_looked_for_before_anything_is_computed(tmp_path):
    pytest.importorskip("PIL.Image", reason="the examples write pictures with Pillow")
    names = ["rocket", "shape_wave", "still_life", "throw"]
    ends = ends_without("matplotlib", names, tmp_path)
    for name in names:
        assert "pip install 'weft-lang[examples]'" in str(ends[name]), f"{name} ended with {ends[name]!r}"
    assert not list(tmp_path.iterdir())


def test_progress_is_told_where_there_is_no_terminal(monkeypatch, capsys):
    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(_show.time, "perf_counter", lambda: next(clock))
    assert list(_show.progress(6, "waves")) == list(range(6))
    assert capsys.readouterr().err.splitlines() == ["waves: 2 of 6, 6 s", "waves: 5 of 6, 12 s"]


def test_progress_is_a_bar_on_a_terminal_from_the_start(monkeypatch, capsys):
    monkeypatch.setattr(_show.sys.stderr, "isatty", lambda: True, raising=False)
    steps = _show.progress(2, "waves")
    next(steps)
    assert "waves ░" in capsys.readouterr().err
    list(steps)
    assert capsys.readouterr().err.endswith(" s\n")

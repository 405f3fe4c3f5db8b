"""tools/mutate.py: which mutants are drawn, what becomes of them, what is kept. Nothing is built here."""

import itertools
import json

import pytest

FILES = {
    "src/runtime/a.cpp": "x = a + b;\ny = f(a, b);\nif (a < b && c) y = 3;\n" * 20,
    "src/bindings/b.cpp": "x = a - b;\ny = f(a, b);\nif (a == b || !c) y = 4;\n" * 40,
    "python/warp/c.py": "def f(a, b):\n    x = a + 1\n    return a and b\n",
}


class Tree:
    """Files in a folder, and tests that look for words in them: a test fails where its word is gone."""

    def __init__(self, folder, tests, refuses="~"):
        self.folder, self.tests, self.refuses = folder, tests, refuses
        self.ran = []
        for path, text in FILES.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    def build(self, path, limit):
        return self.refuses not in (self.folder / path).read_text()

    def units(self, chosen):
        return [name for name in self.tests if not chosen or any(word in name for word in chosen)]

    def test(self, units, limit):
        text = "".join((self.folder / path).read_text() for path in FILES)
        for unit in units:
            self.ran.append(unit)
            answer = self.tests[unit](text)
            code = (0 if answer else 1) if isinstance(answer, bool) else answer
            if code not in (0, 5):
                break
        return code, unit, "output"

    def seconds(self):
        return {unit: 1.0 for unit in self.ran}


@pytest.fixture
def campaign(tool, tmp_path):
    mutate = tool("mutate")

    def make(tests, **options):
        tree = Tree(tmp_path / "tree", tests, **options)
        return mutate.Campaign(tree, tmp_path / "results", 100.0)

    make.mutate, make.root = mutate, tmp_path / "tree"
    return make


def drawn(campaign, seed):
    campaign({})
    found = campaign.mutate.candidates(campaign.root, [])
    return list(campaign.mutate.draws(found, seed))


def test_a_seed_draws_the_same_mutants_each_once(campaign):
    first = drawn(campaign, 5)
    assert first == drawn(campaign, 5) and first != drawn(campaign, 6)
    found = campaign.mutate.candidates(campaign.root, [])
    assert len(set(first)) == len(first) == sum(map(len, found.values()))


def test_two_of_three_are_where_mistakes_are_silent_and_of_every_kind(campaign):
    sample = [m for seed in range(60) for m in itertools.islice(iter(drawn(campaign, seed)), 10)]
    silent = sum(m.path.startswith("src/runtime/") for m in sample) / len(sample)
    assert 0.55 < silent < 0.78
    assert {m.kind for m in sample} >= {"comparison", "sign", "constant", "argument", "condition", "statement"}


def test_only_some_files(campaign):
    campaign({})
    found = campaign.mutate.candidates(campaign.root, ["src/bind", "python/"])
    assert sorted(found) == ["python/warp/c.py", "src/bindings/b.cpp"]


def test_the_fastest_tests_run_first_until_one_fails(campaign):
    runs = campaign({"slow": lambda text: True, "quick": lambda text: "x = a + b" in text})
    seconds = [(0.1, "quick"), (9.0, "slow")]
    found = campaign.mutate.candidates(campaign.root, ["src/runtime"])["src/runtime/a.cpp"]
    (sign,) = [m for m in found if m.line == 0 and m.kind == "sign"]
    before = (campaign.root / sign.path).read_text()
    assert runs.judge(sign, seconds) == ("survived", "")  # 19 other lines still have the word
    assert runs.tree.ran == ["quick", "slow"]
    runs.tree.tests["quick"] = lambda text: text.count("x = a + b") == 20
    runs.tree.ran.clear()
    assert runs.judge(sign, seconds) == ("noticed", "quick") and runs.tree.ran == ["quick"]
    assert (campaign.root / sign.path).read_text() == before


def test_tests_that_noticed_a_change_nearby_and_those_of_its_name_run_first(campaign):
    mutate = campaign.mutate
    units = [(0.1, "tests/python/test_names.py"), (0.2, "tests/python/test_launch.py"), (2.0, "build/test_transform")]
    units += [(3.0, "tests/gradients/test_kernels.py"), (4.0, "tests/python/test_lanes.py")]

    def order(path, noticed=()):
        return [unit.split("test_")[1].split(".")[0] for _, unit in mutate.ordered(units, path, noticed)]

    assert order("src/ir/value.cpp") == ["names", "launch", "transform", "kernels", "lanes"]  # the fastest first
    assert order("src/program/launch.cpp")[:2] == ["launch", "names"]
    assert set(order("src/transform/adjoint/stale.cpp")[:2]) == {"transform", "kernels"}
    assert set(order("src/transform/vectorize/phi.cpp")[:3]) == {"transform", "kernels", "lanes"}
    seen = [("src/ir/block.cpp", "tests/python/test_lanes.py")]
    assert order("src/ir/value.cpp", seen)[0] == "lanes"
    assert order("src/runtime/cpu/value.cpp", seen)[0] == "names"  # far away


def test_python_tests_share_a_process_as_long_as_it_is_short(campaign):
    units = [(1.0, "build/test_a"), (0.5, "tests/b.py"), (8.0, "tests/c.py"), (8.0, "tests/d.py"), (1.0, "tests/e.py")]
    units.append((1.0, "build/test_f"))
    shared = [[unit for _, unit in batch] for batch in campaign.mutate.batches(units)]
    assert shared == [["build/test_a"], ["tests/b.py", "tests/c.py", "tests/d.py"], ["tests/e.py"], ["build/test_f"]]


def test_a_test_that_hangs_has_noticed(campaign):
    runs = campaign({"stuck": lambda text: None})
    (mutant, *_) = drawn(campaign, 1)
    assert runs.judge(mutant, [(1.0, "stuck")]) == ("noticed", "stuck (it hangs)")


def test_a_mutant_meets_only_the_tests_that_run_its_function(campaign):
    class Reach:
        def units(self, path, line, units):
            return [unit for unit in units if unit == f"of line {line}"]

    runs = campaign({"of line 1": lambda text: False, "of line 2": lambda text: True, "other": lambda text: False})
    runs.reach = Reach()
    units = [(1.0, unit) for unit in runs.tree.tests]
    found = campaign.mutate.candidates(campaign.root, ["src/runtime"])["src/runtime/a.cpp"]
    first, second, third = (next(m for m in found if m.line == line) for line in (0, 1, 2))
    assert runs.judge(first, units) == ("noticed", "of line 1") and runs.tree.ran == ["of line 1"]
    assert runs.judge(second, units) == ("survived", "")
    assert runs.judge(third, units) == ("survived", "no test runs it")


def test_functions_and_lines_that_tests_ran(tool, tmp_path):
    reach = tool("reach").Reach(tmp_path, "commit", "ninja")
    functions = {(3, 9), (5, 6), (20, 30)}
    reach.lines["a.cpp"] = {"x": ({1, 4}, functions), "y": ({1, 5, 25}, functions), "z": (set(), set())}
    answers = {4: ["x", "y"], 5: ["x", "y"], 9: ["x", "y"], 20: ["y"], 1: ["x", "y"], 15: ["x", "y"]}
    for line, units in answers.items():
        assert reach.units("a.cpp", line, ["x", "y", "z"]) == units
    assert reach.units("a.py", 4, ["x", "y", "z"]) == ["x", "y", "z"]
    reach.lines["b.cpp"] = {unit: (set(), set()) for unit in "xyz"}
    assert reach.units("b.cpp", 4, ["x", "y", "z"]) == ["x", "y", "z"]  # nothing is known of it


def test_counts_are_made_once(tool, tmp_path):
    made, ran = [], []

    def run(unit, build, environment):
        ran.append(unit)
        return environment["GCOV_PREFIX"].endswith(unit) and unit != "bad"

    for commit in ("one", "one", "another"):
        reach = tool("reach").Reach(tmp_path, commit, "ninja")
        reach.measure(["x", "y"], lambda build, options: made.append(build), run)
    assert ran == ["x", "y"] * 2 and len(made) == 2
    del ran[:2], made[0]
    assert ran == ["x", "y"] and len(made) == 1
    with pytest.raises(SystemExit, match="bad fails in the build with coverage"):
        reach.measure(["x", "bad"], lambda build, options: made.append(build), run)
    assert ran == ["x", "y", "bad"] and len(made) == 2


def test_what_does_not_compile_is_drawn_again_and_not_counted(campaign):
    runs = campaign({"all": lambda text: False}, refuses="x = a - b;\ny = f(a, b);\nif (a < b")
    mutants = [m for m in drawn(campaign, 2) if m.path == "src/runtime/a.cpp" and m.kind in ("sign", "comparison")]
    assert any(m.kind == "sign" for m in mutants[:15])
    done = runs.run(iter(mutants), 10, [(1.0, "all")], "commit", lambda text: None)
    assert len(done) == 10 and {r["outcome"] for r in done} == {"noticed"}
    assert {r["kind"] for r in done} == {"comparison"}
    assert any(r["outcome"] == "refused" for r in runs.results.values())


def test_a_run_goes_on_where_it_was_stopped(campaign):
    runs = campaign({"all": lambda text: False})
    mutants = drawn(campaign, 3)
    first = runs.run(iter(mutants), 4, [(1.0, "all")], "commit", lambda text: None)
    again = campaign({"all": lambda text: True})
    again.load("commit")
    both = again.run(iter(mutants), 6, [(1.0, "all")], "commit", lambda text: None)
    assert both[:4] == first and [r["outcome"] for r in both[4:]] == ["survived"] * 2
    more = campaign({"all": lambda text: True, "keen": lambda text: False})
    more.load("commit")
    both = more.run(iter(mutants), 6, [(1.0, "all"), (2.0, "keen")], "commit", lambda text: None)
    assert both[:4] == first and [r["by"] for r in both[4:]] == ["keen"] * 2  # survivors meet the tests that are new
    another = campaign({"all": lambda text: True})
    another.load("another commit")
    assert another.results == {}
    assert {path for path, _ in another.noticed} <= set(FILES) and len(another.noticed) == 6
    assert another.survivors == set()  # they survived first, and were noticed later


def test_survivors_of_other_commits_are_known(campaign):
    runs = campaign({"all": lambda text: True})
    done = runs.run(iter(drawn(campaign, 4)), 3, [(1.0, "all")], "commit", lambda text: None)
    later = campaign({"all": lambda text: False})
    later.load("another commit")
    assert later.survivors == {result["key"] for result in done} and len(done) == 3


def test_the_baseline_must_pass_and_is_measured_once(campaign):
    runs = campaign({"a": lambda text: True, "b": lambda text: True, "skipped": lambda text: 5})
    units = runs.measure("commit", [])
    assert sorted(unit for _, unit in units) == ["a", "b", "skipped"] and sorted(units) == units
    runs.measure("commit", ["a"])
    assert runs.tree.ran == ["a", "b", "skipped"]
    assert json.loads((runs.folder / "baseline.json").read_text())["commit"] == "commit"
    runs.tree.tests["b"] = lambda text: False
    with pytest.raises(SystemExit, match="b fails without a change"):
        runs.measure("another commit", [])


def test_the_summary_counts_survivors_that_are_not_known_to_change_nothing(campaign):
    common = {"path": "src/a.cpp", "line": 3, "before": " < ", "after": " <= ", "text": "if (a < b)"}
    results = [
        {"key": key, "outcome": outcome, **common}
        for key, outcome in (("k1", "noticed"), ("k2", "survived"), ("k3", "survived"), ("k4", "unfinished"))
    ]
    lines = campaign.mutate.summary(results, {"k3": "both sides are never equal"})
    assert lines[-1] == "4 mutants: 1 noticed, 1 that change nothing, 1 survived, 1 unfinished"
    assert [line.split()[0] for line in lines[:-1]] == ["k2"]


def test_equivalent_mutants_have_reasons_and_are_changes_of_today(tool):
    mutate = tool("mutate")
    reasons = mutate.known_as_equivalent()
    keys = {m.key for changes in mutate.candidates(mutate.ROOT, []).values() for m in changes} if reasons else set()
    for key, reason in reasons.items():
        assert key in keys and len(reason) > 10, f"{key}: its line is gone or it has no reason"


@pytest.mark.parametrize("path", ["src/runtime/a.cpp", "python/warp/c.py"])
def test_each_mutant_is_built_so_that_the_one_before_is_gone(tool, monkeypatch, tmp_path, path):
    mutate, ran = tool("mutate"), []
    monkeypatch.setattr(mutate, "run", lambda command, limit: ran.append(command) or (0, ""))
    assert mutate.Tree(tmp_path, 2).build(path, 5.0)
    assert [str(command[0]).endswith("ninja") for command in ran] == [True]

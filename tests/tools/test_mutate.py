"""tools/mutation/mutate.py: the choice of mutants, their results, and kept records. Nothing is built here."""

import itertools
import json
import re

import pytest

FILES = {
    "src/runtime/a.cpp": "x = a + b;\ny = f(a, b);\nif (a < b && c) y = 3;\n" * 20,
    "src/bindings/b.cpp": "x = a - b;\ny = f(a, b);\nif (a == b || !c) y = 4;\n" * 40,
    "python/warp/c.py": "def f(a, b):\n    x = a + 1\n    return a and b\n",
}


class Tree:
    """Files in a folder, and tests that look for words in them: a test fails if its word is gone."""

    def __init__(self, folder, tests, refuses="~"):
        self.folder, self.tests, self.refuses = folder, tests, refuses
        self.ran, self.builds = [], 0
        for path, text in FILES.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    def text(self):
        return "".join((self.folder / path).read_text() for path in FILES)

    def build(self):
        self.builds += 1
        return self.refuses not in self.text()

    def units(self, chosen):
        return [name for name in self.tests if not chosen or any(word in name for word in chosen)]

    def test(self, units, limit):
        for unit in units:
            self.ran.append(unit)
            answer = self.tests[unit](self.text())
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
        return mutate.Campaign(tree, tmp_path / "results")

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


def test_only_limits_mutants_to_the_named_folders(campaign):
    campaign({})
    found = campaign.mutate.candidates(campaign.root, ["src/bind", "python/"])
    assert sorted(found) == ["python/warp/c.py", "src/bindings/b.cpp"]


def test_the_fastest_tests_run_first_until_one_fails(campaign):
    runs = campaign({"slow": lambda text: True, "quick": lambda text: "x = a + b" in text})
    seconds = [(0.1, "quick"), (9.0, "slow")]
    found = campaign.mutate.candidates(campaign.root, ["src/runtime"])["src/runtime/a.cpp"]
    (sign,) = [m for m in found if m.line == 0 and m.kind == "sign"]
    before = (campaign.root / sign.path).read_text()
    assert runs.judge([sign], seconds) == ("survived", "")  # 19 other lines still have the word
    assert runs.tree.ran == ["quick", "slow"]
    runs.tree.tests["quick"] = lambda text: text.count("x = a + b") == 20
    runs.tree.ran.clear()
    assert runs.judge([sign], seconds) == ("noticed", "quick") and runs.tree.ran == ["quick"]
    assert (campaign.root / sign.path).read_text() == before


def test_tests_that_noticed_a_change_nearby_and_those_of_its_name_run_first(campaign):
    mutate = campaign.mutate
    units = [
        (0.1, "tests/modules/test_names.py"),
        (0.2, "tests/launches/test_launch.py"),
        (2.0, "build/test_transform"),
    ]
    units += [(3.0, "tests/gradients/test_kernels.py"), (4.0, "tests/language/test_lanes.py")]

    def order(path, noticed=()):
        return [unit.split("test_")[1].split(".")[0] for _, unit in mutate.ordered(units, path, noticed)]

    assert order("src/ir/value.cpp") == ["names", "launch", "transform", "kernels", "lanes"]  # the fastest first
    assert order("src/program/launch/launch.cpp")[:2] == ["launch", "names"]
    assert set(order("src/transform/adjoint/to_be_recorded.cpp")[:2]) == {"transform", "kernels"}
    assert set(order("src/transform/analysis/phi.cpp")[:3]) == {"transform", "kernels", "lanes"}
    seen = [("src/ir/block.cpp", "tests/language/test_lanes.py")]
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
    assert runs.judge([mutant], [(1.0, "stuck")]) == ("noticed", "stuck (it hangs)")


def marks(campaign, count):
    """Mutants of `count` lines of src/runtime/a.cpp with a sum, and tests that each look at one of these lines."""
    found = campaign.mutate.candidates(campaign.root, ["src/runtime"])["src/runtime/a.cpp"]
    mutants = [m for m in found if m.kind == "sign"][:count]

    def keeps(line):
        return lambda text: "a + b" in text.split("\n")[line]

    return mutants, {f"line{m.line}": keeps(m.line) for m in mutants}


@pytest.mark.parametrize("noticed", [(), (0,), (5,), (1, 4), (0, 1, 2, 3, 4, 5)])
def test_mutants_that_may_survive_meet_all_tests_together(campaign, noticed):
    campaign({})
    mutants, tests = marks(campaign, 6)
    keen = {mutants[i].key: f"line{mutants[i].line}" for i in noticed}
    runs = campaign({unit: tests[unit] for unit in keen.values()} | {"all": lambda text: True})
    units = [(float(i), unit) for i, unit in enumerate(runs.tree.tests)]
    expected = {m.key: ("noticed", keen[m.key]) if m.key in keen else ("survived", "") for m in mutants}
    assert {m.key: outcome for m, outcome in runs.judge_together(mutants, units)} == expected
    assert len(noticed) > 0 or runs.tree.builds == 1
    assert runs.tree.ran.count("all") == (len(noticed) < 6)


def test_mutants_that_only_together_make_a_test_fail_are_judged_one_by_one(campaign):
    campaign({})
    mutants, tests = marks(campaign, 3)
    first, second, third = tests.values()
    runs = campaign({"both": lambda text: first(text) or second(text), "third": third})
    found = runs.judge_together(mutants, [(1.0, "both"), (2.0, "third")])
    assert [outcome for _, outcome in found] == [("survived", ""), ("survived", ""), ("noticed", "third")]


def test_what_the_likely_tests_do_not_notice_waits_for_others_like_it(campaign, monkeypatch):
    campaign({})
    mutants, tests = marks(campaign, 5)
    last = tests.popitem()[1]
    runs = campaign({"likely": last, "other": lambda text: True})
    monkeypatch.setattr(campaign.mutate, "LIKELY", 1.0)
    monkeypatch.setattr(campaign.mutate, "TOGETHER", 3)
    done = runs.run(iter(mutants), 5, [(1.0, "likely"), (2.0, "other")], "commit", lambda text: None)
    assert [r["outcome"] for r in done] == ["survived"] * 3 + ["noticed", "survived"]
    assert runs.tree.ran.count("other") == 2
    again = campaign({"likely": last, "other": lambda text: True})
    again.load("commit")
    known = again.run(iter(mutants), 5, [(1.0, "likely"), (2.0, "other")], "commit", lambda text: None)
    assert [r["key"] for r in known] == [m.key for m in mutants] and all(r in done for r in known)
    assert again.tree.builds == 0


def test_two_changes_of_one_line_are_not_in_the_tree_together(campaign, monkeypatch):
    runs = campaign({"likely": lambda text: True, "other": lambda text: True})
    monkeypatch.setattr(campaign.mutate, "LIKELY", 1.0)
    mutants = campaign.mutate.candidates(campaign.root, ["src/runtime"])["src/runtime/a.cpp"][:4]
    assert len({m.line for m in mutants}) < 4
    done = runs.run(iter(mutants), 4, [(1.0, "likely"), (2.0, "other")], "commit", lambda text: None)
    assert [r["outcome"] for r in done] == ["survived"] * 4


def test_a_process_hangs_that_works_too_much_or_not_at_all(tool):
    run = tool("mutate").run
    assert run(["sh", "-c", "echo hello; exit 3"], 60.0) == (3, "hello\n")
    assert run(["sh", "-c", "echo hello; while :; do :; done"], 0.5) == (None, "hello\n")
    assert run(["sh", "-c", "echo hello; (while :; do :; done)"], 0.5) == (None, "hello\n")
    assert run(["sleep", "1000"], 60.0, idle=0.2) == (None, "")


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
        for key, outcome in (("k1", "noticed"), ("k2", "survived"), ("k3", "survived"))
    ]
    lines = campaign.mutate.summary(results, {"k3": "both sides are never equal"})
    assert (
        lines[-1]
        == "3 mutants: 1 noticed (50 % of those that count), 1 that change nothing, 0 not executed, 1 survived"
    )
    assert [line.split()[0] for line in lines[:-1]] == ["k2"]


def test_equivalent_mutants_have_reasons_and_are_changes_of_today(tool):
    mutate = tool("mutate")
    reasons = mutate.known_as_equivalent()
    keys = {m.key for changes in mutate.candidates(mutate.ROOT, []).values() for m in changes} if reasons else set()
    for key, reason in reasons.items():
        is_of_ptx = re.fullmatch(r"(adjoint of )?kernel \w+ \| .+; \| .+", key)
        assert (is_of_ptx or key in keys) and len(reason) > 10, f"{key}: its line is gone or it has no reason"


def test_the_tests_are_programs_folders_of_ir_and_python_files(tool, tmp_path, monkeypatch):
    mutate, ran = tool("mutate"), []
    monkeypatch.setattr(mutate, "run", lambda command, limit, **options: ran.append(command) or (0, "out"))
    for path in (
        "build/test_a",
        "build/a.txt",
        "tests/ir/uncontended/x.ir",
        "tests/ir/uncontended/y.ir",
        "tests/b/test_b.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "build/test_a").chmod(0o755)
    (tmp_path / mutate.NO_WITNESS).parent.mkdir()
    (tmp_path / mutate.NO_WITNESS).write_text("")
    tree = mutate.Tree(tmp_path, 1)
    assert tree.units([]) == ["build/test_a", "tests/ir/uncontended", "tests/b/test_b.py"]
    assert tree.units(["uncontended"]) == ["tests/ir/uncontended"]
    assert tree.test(["build/test_a", "tests/ir/uncontended"], 5.0) == (0, "tests/ir/uncontended", "out")
    files = [tmp_path / f"tests/ir/uncontended/{name}.ir" for name in "xy"]
    weft_opt = tmp_path / "build/tools/weft-opt"
    assert ran == [[tmp_path / "build/test_a", "--gtest_brief=1"], [weft_opt, "--check", *files]]


def test_each_mutant_is_built_so_that_the_one_before_is_gone(campaign):
    runs = campaign({"all": lambda text: False})
    python = [m for m in drawn(campaign, 1) if m.path.endswith(".py")]
    runs.run(iter(python), 2, [(1.0, "all")], "commit", lambda text: None)
    assert runs.tree.builds == 2

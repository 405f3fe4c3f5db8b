import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEEDS = [{"ids": ["S-ARR-001", "P-46"], "waits": None}]


def report(outcome="passed", seeds=SEEDS):
    return {"outcome": outcome, "reason": None, "everywhere": True, "seeds": seeds}


def test_a_test_that_passed_shows_its_items(tool):
    shown = tool("check_status").shown
    tests, waits = shown({"a.py::test_x[cpu]": report(), "a.py::TestGroup::test_y": report()})
    assert tests == {item: ["a.py::test_x", "a.py::TestGroup::test_y"] for item in ("S-ARR-001", "P-46")}
    assert not any(waits.values())


def test_a_test_that_did_not_pass_shows_nothing(tool):
    for outcome in ("skipped", "failed", "xfailed", "not run"):
        assert tool("check_status").shown({"a.py::test_x": report(outcome)}) == ({}, {})
    assert tool("check_status").shown({"a.py::test_x": {**report(), "everywhere": False}}) == ({}, {})


def test_a_mark_says_what_part_waits_for_a_theme(tool):
    tests, waits = tool("check_status").shown(
        {"a.py::test_x": report(seeds=[{"ids": ["S-ARR-008"], "waits": "cuda"}, {"ids": ["S-ARR-009"], "waits": None}])}
    )
    assert tests == {"S-ARR-008": ["a.py::test_x"], "S-ARR-009": ["a.py::test_x"]}
    assert waits == {"S-ARR-008": ["cuda"], "S-ARR-009": []}


def test_an_item_without_a_test_is_open_for_its_theme(tool):
    columns = tool("check_status").columns
    assert columns("S-DIF-011", {}, {}) == ("open", "gradients")
    assert columns("S-LCH-005", {}, {}) == ("open", "gradients")
    assert columns("P-86", {}, {}) == ("open", "geometry")
    assert columns("D-08", {}, {}) == ("open", "interop")


def test_an_item_with_tests_is_done_and_names_the_first(tool):
    columns = tool("check_status").columns
    tests = {"P-01": ["a.py::test_x", "b.py::test_y"]}
    assert columns("P-01", tests, {}) == ("done", "`a.py::test_x` and 1 more")
    assert columns("P-01", tests, {"P-01": ["cuda", "cuda"]}) == ("part", "`a.py::test_x` and 1 more; waits for cuda")


def test_the_counts_at_the_top(tool):
    rows = [{"id": item, "state": state} for item, state in (("S-A", "done"), ("S-B", "part"), ("P-1", "open"))]
    assert " ".join(tool("check_status").summary(rows)) == (
        "Done: 1 of 2 contract items (S-…), 0 of 1 programs (P-…), 0 of 0 pairs of an old and a new form (D-…); "
        "1 more in part."
    )


def test_an_update_writes_the_counts_as_a_paragraph_of_120_columns(tool, tmp_path, monkeypatch):
    status, page, results = tool("check_status"), tmp_path / "status.md", tmp_path / "report.json"
    results.write_text(json.dumps({"a.py::test_x": report(seeds=[{"ids": ["S-INI-001"], "waits": None}])}))
    rows = [f"| {item} | a subject | open | core |" for item in sorted(status.contract())]
    page.write_text("\n".join(["# Status", "", "Done: of a run", "before.", "", *rows, ""]))
    monkeypatch.setattr(status, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["check_status.py", str(results), "--update"])
    for _ in range(2):
        assert status.main() == 0
        _, _, first, second, empty, *after = page.read_text().splitlines()
        assert first.startswith("Done: 1 of 353 contract items") and len(first) <= 120
        assert f"{first} {second}".endswith("0 more in part.") and empty == "" and len(after) == len(rows)


def test_the_page_has_the_items_of_the_contract(tool):
    status = tool("check_status")
    rows = [row["id"] for row in map(status.ROW.match, status.PAGE.read_text().splitlines()) if row]
    assert len(set(rows)) == len(rows) and set(rows) == status.contract()
    assert all(status.theme(item) for item in rows)


# ---- the report of a run ----

PROGRAM = """
import pytest

@pytest.mark.seed("S-ARR-001", "P-46")
def test_passes(): pass

class TestGroup:
    @pytest.mark.seed("S-ARR-002", waits="cuda")
    def test_fails(self): assert False

@pytest.mark.seed("S-ARR-003")
def test_skips(): pytest.skip("for a reason")

@pytest.mark.large
def test_large(): pass

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.seed("S-ARR-004")), 2])
def test_parameter(x): pass

@pytest.mark.xfail
def test_known(): assert False

@pytest.fixture
def broken():
    yield
    assert False

def test_leaves_something(broken): pass
"""


def test_a_run_leaves_a_report(pytester, run_tests, tool):
    file = pytester.path / "report.json"
    run_tests(PROGRAM, "--report", file)
    found = {name.split("::", 1)[1]: test for name, test in json.loads(file.read_text()).items()}
    assert {name: test["outcome"] for name, test in found.items()} == {
        "test_passes": "passed",
        "TestGroup::test_fails": "failed",
        "test_skips": "skipped",
        "test_large": "skipped",
        "test_parameter[1]": "passed",
        "test_parameter[2]": "passed",
        "test_known": "xfailed",
        "test_leaves_something": "failed",
    }
    assert found["test_passes"]["seeds"] == [{"ids": ["S-ARR-001", "P-46"], "waits": None}]
    assert found["TestGroup::test_fails"]["seeds"] == [{"ids": ["S-ARR-002"], "waits": "cuda"}]
    assert found["test_parameter[1]"]["seeds"] and not found["test_parameter[2]"]["seeds"]
    assert found["test_passes"]["everywhere"] and not found["test_large"]["everywhere"]
    assert found["test_skips"]["reason"] == "for a reason"
    complaints = list(tool("check_skips").complaints(found))
    assert complaints == ["1 tests are skipped because 'for a reason'; 0 are allowed:", "    test_skips"]


def test_a_mark_with_an_unknown_keyword_ends_the_run(run_tests):
    answer = run_tests('import pytest\n@pytest.mark.seed("S-ARR-001", wait="cuda")\ndef test_it(): pass\n')
    answer.stderr.fnmatch_lines(["*a seed mark takes ids and waits=*"])
    assert answer.ret != 0

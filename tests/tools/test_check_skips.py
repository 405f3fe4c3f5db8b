"""tools/checks/check_skips.py: which skips a run may have."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_DOCUMENTS = "is about documents that are no part of this repository: make test-documents"


def skipped(reason, count):
    return {f"a.py::test_{reason}_{i}": {"outcome": "skipped", "reason": reason} for i in range(count)}


def test_a_reason_that_any_newcomer_has_allows_any_number(tool):
    report = skipped(WITHOUT_DOCUMENTS, 1000) | skipped("a large test: run with --large", 1000)
    assert list(tool("check_skips").complaints(report)) == []


def test_a_reason_that_is_not_registered_names_its_tests(tool):
    report = skipped("needs the Python package scipy", 2) | {"b.py::test_x": {"outcome": "passed", "reason": None}}
    first, *names = tool("check_skips").complaints(report)
    assert first == "2 tests are skipped because 'needs the Python package scipy'; 0 are allowed:"
    assert [name.strip() for name in names] == list(report)[:2]


def test_a_counted_reason_allows_its_number(tool):
    check = tool("check_skips")
    reason, count = next(iter(check.COUNTED.items()))
    assert list(check.complaints(skipped(reason, count))) == []
    assert len(list(check.complaints(skipped(reason, count + 1)))) == count + 2


def test_every_registered_reason_is_one_of_a_test(tool):
    check = tool("check_skips")
    texts = "".join(re.sub(r"\s+", " ", path.read_text()) for path in ROOT.glob("tests/**/*.py"))
    marked = set(re.findall(r'needs\("(\w+)"\)', texts))
    for reason in check.ANY_NUMBER | check.COUNTED.keys():
        package = reason.removeprefix("needs the Python package ")
        assert f'"{reason}"' in texts or package in marked, reason


def test_tests_of_documents_are_skipped_without_them(run_tests, monkeypatch, tmp_path):
    text = """
import pytest

@pytest.mark.documents
def test_text(documents):
    assert (documents / "a.txt").read_text() == "text"
"""
    monkeypatch.delenv("WEFT_DOCUMENTS", raising=False)
    run_tests(text, "-rs").stdout.fnmatch_lines([f"SKIPPED*{WITHOUT_DOCUMENTS}"])
    monkeypatch.setenv("WEFT_DOCUMENTS", str(tmp_path))
    (tmp_path / "a.txt").write_text("text")
    run_tests(text).assert_outcomes(passed=1)
    monkeypatch.setenv("WEFT_DOCUMENTS", str(tmp_path / "nothing"))
    run_tests(text).assert_outcomes(errors=1)

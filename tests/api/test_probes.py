"""Short programs answer as they do under release 1.19: its answers are kept in tests/api/expected.

``tools/clients/compare_api.py`` runs both packages and writes the answers. A probe marked ``still_open`` fails when it
agrees; one marked ``differs`` answers what the mark says, and stands in the table of docs/semantics.md.
"""

import re
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import harness  # noqa: E402

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")

PROBES = [(path.stem, name) for path in harness.FILES for name in harness.names_in(path)]


@cache
def answers_of(stem):
    return harness.answers(sys.executable, HERE / "probes" / f"{stem}.py")


@pytest.mark.parametrize("stem, name", PROBES, ids=[f"{stem}.{name}" for stem, name in PROBES])
def test_weft_answers_a_probe_as_release_1_19(stem, name):
    expected = harness.expected_answers(stem)[name]
    answer = answers_of(stem)[name]
    shown = f"1.19 answers {expected}\nWeft answers {harness.as_text(answer)}\n{answer.get('message', '')}"
    if "differs" in answer:
        assert harness.agrees(answer, answer["differs"]), f"{shown}\nthe mark says {answer['differs']}"
        assert not harness.agrees(answer, expected), f"{shown}\nno difference: remove the mark"
    elif "open" in answer:
        assert not harness.agrees(answer, expected), f"open no more: remove the mark {answer['open']!r}"
        pytest.xfail(answer["open"])
    else:
        assert harness.agrees(answer, expected), shown


def test_every_answer_belongs_to_a_probe():
    stored = {
        (path.stem, name) for path in (HERE / "expected").glob("*.json") for name in harness.expected_answers(path)
    }
    assert stored == set(PROBES)


def test_there_are_many_probes():
    assert len(PROBES) >= 100


def test_decided_differences_are_those_of_the_semantics_page():
    page = (HERE.parents[1] / "docs/semantics.md").read_text()
    table = page.partition("\n## Differences from 1.19\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+\.\w+)`(?=[^|]*\|$)", table, re.M))
    marked = {f"{stem}.{name}" for stem, name in PROBES if "differs" in answers_of(stem)[name]}
    assert named == marked

"""docs/names.md: every name that real programs use most is there with a test, or absent."""

import ast
import re
from pathlib import Path

import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (\d+) \| `([\w.]+)` \| (?:`([\w/.]+)::(\w+)(?:\[(\w+)\])?`|absent: (\w+)) \|$", re.M)
ROWS = ROW.findall((ROOT / "docs/names.md").read_text())


def exists(name):
    value = wp
    for part in name.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def test_the_page_has_250_names_in_order():
    assert [int(rank) for rank, *_ in ROWS] == list(range(1, 251))
    assert len({name for _, name, *_ in ROWS}) == 250


def test_names_are_absent_where_the_page_says_so():
    wrong = [name for _, name, file, _, _, theme in ROWS if exists(name) == bool(theme) or bool(file) == bool(theme)]
    assert wrong == []


@pytest.mark.parametrize("name, file, test, case", [row[1:5] for row in ROWS if row[2]])
def test_the_test_of_a_name_is_there_and_about_it(name, file, test, case):
    text = (ROOT / file).read_text()
    functions = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert test in functions
    # A sweep over the builtin table takes its names from the oracle.
    where = (ROOT / "tests/builtins/oracle.py").read_text() if case else text
    assert case in ("", name)
    last = name.rpartition(".")[2]
    assert re.search(rf"\b{last}\b", where), f"{file} does not mention {last}"

"""The language page: its examples hold, and every difference from Python has one."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/language.md"
DIFFERENCES = PAGE.read_text().split("\n### ")[1:]


def test_examples_of_the_language_page_run(tool, tmp_path):
    assert list(tool("check_docs").run_examples(PAGE, tmp_path)) == []


def test_each_difference_has_an_example_that_asserts_it():
    assert [int(text.split(".")[0]) for text in DIFFERENCES] == list(range(1, len(DIFFERENCES) + 1))
    for text in DIFFERENCES:
        examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        asserts = [node for example in examples for node in ast.walk(ast.parse(example)) if type(node) is ast.Assert]
        assert asserts, text.splitlines()[0]

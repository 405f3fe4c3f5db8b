import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(tool, monkeypatch, tmp_path):
    """A function: text of a page -> what tools/checks/check_docs.py says of it."""
    check_docs = tool("check_docs")
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)

    def check(text):
        file = tmp_path / "page.md"
        file.write_text(text)
        return [*check_docs.broken_links(file), *check_docs.run_examples(file, tmp_path)]

    return check


def test_a_link_to_a_missing_file_is_reported(page):
    assert page("see [this](page.md), [that](https://example.org) and [here](#part)\n# Part") == []
    assert page("see [this](missing.md#part)") == ["page.md: the link to missing.md leads nowhere"]


def test_a_link_to_a_missing_heading_is_reported(page):
    text = "# One `two`, three\n\n## Same\n\n## Same\n\n"
    assert page(text + "[a](#one-two-three) [b](page.md#same) [c](#same-1)") == []
    assert page(text + "[a](#four)") == ["page.md: the page has no heading #four"]
    assert page(text + "[a](page.md#same-2)") == ["page.md: page.md has no heading #same-2"]


def test_examples_of_a_page_share_their_names(page):
    assert page("```python\nx = 1\n```\ntext\n```python\nassert x == 1\n```\n") == []


def test_a_failing_example_is_reported_with_the_line_of_the_page(page):
    (complaint,) = page("text\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    assert "line 8" in complaint
    assert "AssertionError" in complaint


def test_a_block_marked_no_run_is_left_alone(page):
    assert page("```python no-run\nraise SystemExit(1)\n```\n") == []


def test_the_gallery_has_a_picture_and_a_command_for_each_example():
    page = (ROOT / "docs/gallery.md").read_text()
    names = sorted(path.stem for path in ROOT.glob("python/warp/examples/[a-z]*.py"))
    assert sorted(re.findall(r"^### (\w+)$", page, re.M)) == names
    for name in names:
        assert f"\npython -m warp.examples {name}\n" in page and f"](pictures/{name}.jpg)" in page
        assert (ROOT / f"docs/pictures/{name}.jpg").stat().st_size < 200_000


@pytest.fixture
def comments(tool):
    """A function: comments of a C++ file -> what tools/checks/check_docs.py says of the files that they name."""
    check_docs, check_prose = tool("check_docs"), tool("check_prose")
    ends = {"src/ir/ops.def", "ir/ops.def", "ops.def"}
    return lambda text: list(check_docs.missing_files("a.h", check_prose.cpp_passages(text), ends))


def test_a_comment_that_names_a_file_by_the_end_of_its_path_is_right(comments):
    assert comments("// See ops.def, ir/ops.def and src/ir/ops.def; cuda.h is NVIDIA's.") == []


def test_a_comment_that_names_a_missing_file_is_reported_with_its_line(comments):
    assert comments("int x;\n// One,\n// two: sema/ops.def") == ["a.h:3: there is no file sema/ops.def"]


def test_a_comment_that_names_a_paper_outside_of_the_repository_is_reported(comments):
    (complaint,) = comments("// As seed 004 says.")
    assert complaint.startswith("a.h:1: seed 004 is no part of the repository")


def test_long_comments_are_reported_and_long_code_is_not(tool):
    long = "x" * 120
    complaints = tool("check_docs").long_comments("a.h", f"int {long};\n// {long}\n")
    assert [complaint.split(": ")[0] for complaint in complaints] == ["a.h:2"]


def test_long_lines_of_a_page_are_reported_but_for_tables_and_code(tool, monkeypatch, tmp_path):
    check_docs, long = tool("check_docs"), "x " * 61
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(f"| {long} |\n\n```\n{long}\n```\n\n{long}\n")
    (complaint,) = check_docs.long_lines(tmp_path / "page.md")
    assert complaint.startswith("page.md:7: the line has 122 columns")


def test_rooms_of_the_architecture_are_those_of_the_layers(tool, monkeypatch, tmp_path):
    check_docs, check_layers = tool("check_docs"), tool("check_layers")
    monkeypatch.setattr(check_layers, "TABLE", {"types": "", "ir": "types", "sema": "types ir"})
    page = tmp_path / "architecture.md"
    page.write_text("| `types` | scalars | – |\n| `ir` | ops | `types` |\n| `sema` | names | `types`, `ir` |\n")
    assert list(check_docs.wrong_rooms(page)) == []
    page.write_text(
        "| `types` | scalars | – |\n| `ir` | ops | – |\n| `sema` | names | `types`, `ir` |\n| `x` | y | – |\n"
    )
    assert list(check_docs.wrong_rooms(page)) == [
        "architecture.md: the row of the room 'ir' must end with: `types`",
        "architecture.md: there is no room 'x' in tools/checks/check_layers.py",
    ]

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(tool, monkeypatch, tmp_path):
    """A function: text of a page -> what tools/check_docs.py says of it."""
    check_docs = tool("check_docs")
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)

    def check(text):
        file = tmp_path / "page.md"
        file.write_text(text)
        return [*check_docs.broken_links(file), *check_docs.run_examples(file, tmp_path)]

    return check


def test_a_link_to_a_missing_file_is_reported(page):
    assert page("see [this](page.md), [that](https://example.org) and [here](#part)") == []
    assert page("see [this](missing.md#part)") == ["page.md: the link to missing.md leads nowhere"]


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

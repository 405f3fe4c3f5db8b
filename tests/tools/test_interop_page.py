"""The page of other libraries: its required contents, and that its links and names exist."""

import re
from pathlib import Path

import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/interop.md").read_text()


def table_after(heading):
    """The rows of the first table under a heading, as lists of cells, without the line under the head."""
    lines = PAGE.split(f"\n{heading}\n", 1)[1].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


@pytest.mark.seed("S-DOC-001", "S-NPY-003", "S-TOR-014", "S-CUP-004", "S-JAX-013", "S-DLP-011", "S-PAD-008")
def test_the_quick_reference_has_six_rows_and_says_what_is_shared():
    head, *rows = table_after("## Quick reference")
    assert head == ["library", "conversion", "zero-copy", "gradients", "streams"]
    names = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", row[0]) for row in rows]
    assert names == ["NumPy", "PyTorch", "JAX", "Paddle", "CuPy, Numba", "DLPack"]
    shares = {name: (row[2], row[3]) for name, row in zip(names, rows, strict=True)}
    assert shares["NumPy"][0].startswith("on the CPU") and shares["NumPy"][1] == "no"
    assert all(shares[name][0].startswith("yes") for name in names[1:])
    assert shares["PyTorch"][1].startswith("yes") and shares["Paddle"][1].startswith("yes")
    assert shares["JAX"][1] == "by `jax_kernel`" and shares["CuPy, Numba"][1] == shares["DLPack"][1] == "no"


@pytest.mark.seed("S-DOC-001")
def test_each_library_has_its_section_and_names_that_are_there():
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    expected = "Quick reference, Passing arrays directly, NumPy, PyTorch, JAX, Paddle, CuPy and Numba, DLPack, "
    assert headings == (expected + "Costs and advice").split(", ")
    for name in set(re.findall(r"`wp\.(\w+)", PAGE)):
        assert hasattr(wp, name), name


@pytest.mark.seed("S-DOC-001", "S-CTY-004", "S-CTY-005")
def test_costs_are_measured_and_name_their_command():
    section = PAGE.split("\n## Costs and advice\n")[1]
    assert "`python bench/interop_costs.py`" in section and (ROOT / "bench/interop_costs.py").exists()
    _, *rows = table_after("## Costs and advice")
    assert len(rows) >= 10 and all(float(row[-1]) > 0 for row in rows)
    for advice in ("Convert once", "Pass tensors directly", "return_ctype"):
        assert advice in section


@pytest.mark.seed("S-DOC-007")
@pytest.mark.parametrize("name, heading", [("pytorch-interop", "PyTorch"), ("jax-interop", "JAX")])
def test_anchors_of_earlier_documents_are_there(name, heading):
    assert f'<a id="{name}"></a>\n## {heading}\n' in PAGE


@pytest.mark.seed("S-DOC-006", "S-PAD-007")
def test_libraries_have_pages_of_their_own():
    for heading, page in (("PyTorch", "pytorch"), ("JAX", "jax"), ("Paddle", "paddle")):
        section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        assert f"](guide/{page}.md)" in section and (ROOT / f"docs/guide/{page}.md").exists()
        if heading == "Paddle":
            assert "](guide/pytorch.md#performance-tuning)" in section
    tuning = (ROOT / "docs/guide/pytorch.md").read_text().split("\n## Performance tuning\n")[1]
    for advice in ("Convert once", "straight in launches", "`return_ctype=True`"):
        assert advice in tuning


def test_links_within_the_page_lead_to_its_headings():
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    there = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGE)) <= there

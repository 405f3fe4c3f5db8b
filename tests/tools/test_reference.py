"""The functions reference and the type stub, which are made from the builtin table."""

import ast
import io
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import warp as wp
from warp import _weft
from warp.builtins import reference_page

STUB = Path(wp.__file__).parent / "__init__.pyi"


@pytest.mark.seed("S-BLT-006")
@pytest.mark.seed("S-DOC-004")
def test_the_reference_has_every_overload_with_its_sentence():
    page = reference_page()
    assert "\n## Volumes\n" in page
    for name in _weft.builtin_names():
        assert page.count(f"\n### {name}\n") == 1
        for signature, doc, *_ in _weft.builtin_overloads(name):
            assert f"`{name}{signature}`  \n{doc}\n" in page
            assert doc.endswith("."), f"{name}: {doc}"


def test_every_link_of_the_reference_has_its_heading():
    page = reference_page()
    headings = {line.lstrip("# ").lower().replace(" ", "-") for line in page.splitlines() if line.startswith("#")}
    for target in re.findall(r"\]\(#([^)]*)\)", page):
        assert target in headings
    for target in re.findall(r"\]\((\.\./[^)]*)\)", page):
        assert (Path(__file__).resolve().parents[2] / "docs" / target.removeprefix("../")).exists()


@pytest.mark.seed("S-INI-014")
def test_the_guide_has_pages_on_devices_profiling_and_functions_that_link_each_other():
    guide = Path(__file__).resolve().parents[2] / "docs/guide"
    for page, others in {
        "devices.md": ["profiling.md", "../reference/functions.md"],
        "profiling.md": ["devices.md", "../reference/functions.md"],
        "kernels.md": ["devices.md", "profiling.md", "../reference/functions.md"],
    }.items():
        text = (guide / page).read_text()
        assert all(f"]({other})" in text for other in others), page
    assert all(f"guide/{name}.md" in reference_page() for name in ("devices", "profiling", "kernels"))


def test_print_builtins_writes_the_same_list():
    out = io.StringIO()
    wp.print_builtins(out)
    for name in _weft.builtin_names():
        for signature, doc, *_ in _weft.builtin_overloads(name):
            assert f"{name}{signature}\n    {doc}\n" in out.getvalue()


def test_print_builtins_writes_to_standard_output(capsys):
    wp.print_builtins()
    assert "svd3(A: Mat[3,3,F])" in capsys.readouterr().out


def names_of(stub):
    found = set()
    for node in ast.parse(stub).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
    return found


def public_names():
    # A fresh interpreter: in this one other tests may have imported submodules, which are then names of the package.
    command = "import warp; print(*(name for name in dir(warp) if not name.startswith('_')))"
    listing = subprocess.run([sys.executable, "-c", command], capture_output=True, check=True, text=True).stdout
    names = set(listing.split())
    assert {"launch", "vec3", "kernel"} < names
    return names


def test_the_stub_knows_every_public_name():
    assert public_names() - names_of(STUB.read_text()) == set()


def test_the_stub_hides_no_name_that_it_uses_itself():
    """wp.overload took the place of typing.overload, after which pyright saw one overload of each function only."""
    text = STUB.read_text()
    of_typing = [line for line in text.splitlines() if line.startswith(("import typing", "from typing "))]
    used = names_of("\n".join(of_typing))
    others = names_of("\n".join(line for line in text.splitlines() if line not in of_typing))
    assert {"typing", "Any", "TypeVar"} <= used and "overload" in others
    assert used & others == set()


def test_the_stub_has_the_sentences_of_the_table():
    functions = {n.name: n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.FunctionDef)}
    assert "Smooth ramp from 0 at a to 1 at b." in ast.get_docstring(functions["smoothstep"])
    assert [a.arg for a in functions["smoothstep"].args.args] == ["a", "b", "x"]


@pytest.mark.seed("S-DOC-003")
def test_the_runtime_page_has_every_public_name_with_a_sentence(tool):
    reference = tool("gen_reference")
    page = reference.runtime_page()
    written = set()
    for _, names in reference.SECTIONS.values():
        for name, _, doc in reference.entries(names):
            written.add(name.partition(".")[0])
            assert page.count(f"\n### {name}\n") == 1
            assert doc.rstrip().endswith((".", ")")), f"{name}: {doc!r}"
    for names in (wp.types.type_names(), wp.constants.__all__):
        assert all(f"`{name}`" in page for name in names)
        written.update(names)
    written.update(_weft.builtin_names())
    assert {name for name in public_names() if not isinstance(getattr(wp, name), ModuleType)} - written == set()


ASKED_FOR = {
    "": "init launch zeros zeros_like empty empty_like copy clone matmul constant capture_begin capture_end"
    " capture_launch from_numpy dtype_from_numpy dtype_to_numpy from_dlpack to_dlpack stream_from_torch stream_to_torch"
    " stream_from_paddle jax_kernel",
    "array": "numpy cptr list to flatten reshape view contiguous transpose fill_ zero_ assign grad requires_grad vars"
    " dtype shape strides ndim size capacity ptr device pinned is_contiguous T astype length",
    "Mesh": "points indices velocities device id refit",
    "Volume": "array get_tiles get_voxel_size load_from_nvdb allocate allocate_by_tiles id CLOSEST LINEAR",
    "HashGrid": "build reserve id device",
    "Tape": "backward record_func record_launch get_adjoint reset zero gradients adjoints launches",
    "dlpack": "from_dlpack to_dlpack device_to_dlpack device_from_dlpack dtype_to_dlpack dtype_from_dlpack"
    " shape_to_dlpack strides_to_dlpack dtype_is_compatible DLDevice DLDataType DLTensor DLManagedTensor",
}
TYPES = "vec2 vec3 vec4 mat22 mat33 mat44 quat transform spatial_vector spatial_matrix spatial_transform"


@pytest.mark.seed("S-DOC-003")
def test_the_runtime_page_has_the_names_that_the_documents_ask_for(tool):
    page = tool("gen_reference").runtime_page()
    asked = []
    for owner, names in ASKED_FOR.items():
        asked += [owner] if owner not in ("", "dlpack") else []
        asked += [f"{owner}.{name}" if owner else name for name in names.split()]
    for library in ("torch", "jax", "paddle"):
        assert f"`warp.{library}`" in page
        for name in ("", "device_", "dtype_"):
            asked += [f"{name}from_{library}", f"{name}to_{library}"]
    for name in asked:
        assert f"\n### {name}\n" in page, name
    assert all(f"`{name}`" in page for name in TYPES.split()) and "`warp.dlpack`" in page
    assert not re.findall(r":(?:func|meth|class):`", page)
    assert "`wp.zeros(shape=None, dtype=None, device=None" in page
    assert "* `dim`: number of threads" in page


@pytest.mark.seed("S-DOC-002", "S-DOC-005")
def test_the_runtime_guide_has_its_sections_in_order():
    guide = Path(__file__).resolve().parents[2] / "docs/guide/runtime.md"
    text = guide.read_text()
    assert "](devices.md)" in text and "](profiling.md)" in text
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "Initialisation",
        "Kernels",
        "Arrays",
        "Matrix products",
        "Data types",
        "Structs",
        "Conversions",
        "Constants",
        "Operators",
        "Meshes",
        "Volumes",
        "Hash grids",
        "Differentiability",
        "Graphs",
    ]
    assert "**Jacobian**" in text

import ast

import pytest

SOURCE = """
import pytest

@pytest.mark.seed("S-ARR-001", "P-46")
def test_plain(): ...

class TestGroup:
    @pytest.mark.seed("S-ARR-002")
    def test_method(self): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.seed("S-ARR-003"))])
def test_parameter(x): ...
"""


def collect(tool, source):
    marks = tool("check_status").Marks("tests/python/test_it.py")
    marks.visit(ast.parse(source))
    return marks.tests


def test_marks_are_found_on_functions_methods_and_parameters(tool):
    assert collect(tool, SOURCE) == {
        "S-ARR-001": ["tests/python/test_it.py::test_plain"],
        "P-46": ["tests/python/test_it.py::test_plain"],
        "S-ARR-002": ["tests/python/test_it.py::TestGroup::test_method"],
        "S-ARR-003": ["tests/python/test_it.py::test_parameter"],
    }


def test_an_id_that_is_not_a_plain_string_is_refused(tool):
    with pytest.raises(SystemExit, match="plain strings"):
        collect(tool, "@pytest.mark.seed(name)\ndef test_it(): ...\n")


def test_a_mark_says_what_part_waits_for_a_theme(tool):
    marks = tool("check_status").Marks("tests/test_it.py")
    marks.visit(ast.parse('@pytest.mark.seed("S-ARR-008", waits="cuda")\ndef test_it(): ...\n'))
    assert marks.tests == {"S-ARR-008": ["tests/test_it.py::test_it"]} and marks.waits == {"S-ARR-008": ["cuda"]}
    for wrong in ("wait='cuda'", "waits=theme"):
        with pytest.raises(SystemExit, match="waits|plain strings"):
            collect(tool, f"@pytest.mark.seed('S-ARR-008', {wrong})\ndef test_it(): ...\n")


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
    text = tool("check_status").summary(rows)
    assert text == (
        "Done: 1 of 2 contract items (S-…), 0 of 1 programs (P-…), 0 of 0 pairs of an old and a new form (D-…); "
        "1 more in part."
    )


def test_every_item_of_the_page_has_a_theme_and_one_row(tool):
    status = tool("check_status")
    rows = [row for row in map(status.ROW.match, status.PAGE.read_text().splitlines()) if row]
    assert len({row["id"] for row in rows}) == len(rows) == 353 + 101 + 32
    assert all(status.theme(row["id"]) for row in rows)

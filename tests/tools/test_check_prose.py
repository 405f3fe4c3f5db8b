import pytest


@pytest.fixture
def kinds(tool):
    """A function: a passage -> the avoided forms in it, in the order of their kinds."""
    return lambda passage: [kind for kind, _ in tool("check_prose").places(passage)]


@pytest.mark.parametrize(
    "passage",
    [
        "What a launch wrote is kept.",
        "It frees memory: what nothing points to is freed.",
        "Whatever the tape holds is dropped.",
    ],
)
def test_a_clause_that_begins_with_what_counts(kinds, passage):
    assert kinds(passage) == ["what"]


@pytest.mark.parametrize("passage", ["What is a tape?", "The error says what was expected.", "| function | what |"])
def test_questions_objects_and_heads_of_columns_do_not_count_as_what(kinds, passage):
    assert kinds(passage) == []


@pytest.mark.parametrize(
    "passage", ["Null where there is no gradient.", "Where the array is contiguous, nothing is copied."]
)
def test_where_in_the_sense_of_if_counts(kinds, passage):
    assert kinds(passage) == ["where"]


@pytest.mark.parametrize(
    "passage",
    ["The line where the kernel begins.", "A slot says where to go on.", "Where the nodes of a grid are."],
)
def test_where_in_the_sense_of_a_place_does_not_count(kinds, passage):
    assert kinds(passage) == []


def test_names_in_code_do_not_count(kinds):
    assert kinds("The function `where` chooses; `what` and `nobody` are names.") == []


def test_words_for_persons_count(kinds):
    assert kinds("Nobody waits, and somebody else likewise does.") == ["who", "who", "who"]


def test_comments_of_cpp_are_passages_with_their_first_line(tool):
    text = 'int x;  // one\n// two\n\nchar s[] = "http://three";\n'
    assert list(tool("check_prose").cpp_passages(text)) == [(1, "one\n two")]


def test_docstrings_and_comments_of_python_are_passages(tool):
    text = '"""one"""\n\n# two\n# three\nx = 1  # four\n'
    assert sorted(tool("check_prose").python_passages(text)) == [(1, "one"), (3, "two\nthree\nfour")]


def test_pages_are_read_without_code(tool):
    text = "one\n\n```\nwhere there is code\n```\n\n* two\n* three\n"
    assert list(tool("check_prose").page_passages(text)) == [(1, "one"), (7, "two"), (8, "three")]


def test_a_figure_above_its_limit_is_a_complaint(tool, monkeypatch, tmp_path):
    check_prose = tool("check_prose")
    monkeypatch.setattr(check_prose, "LIMITS", tmp_path / "limits.txt")
    check_prose.LIMITS.write_text("# a comment\nsrc 1.00 1.00 0.00\n")
    counts = {"words": 1000, "what": 1, "where": 2, "who": 0}
    (complaint,) = check_prose.complaints({"src": counts})
    assert "src has 2.00 'where' per 1000 words, and its limit is 1.0" in complaint
    assert list(check_prose.complaints({"src": counts | {"where": 1}})) == []


def test_limits_go_down_and_never_up(tool, monkeypatch, tmp_path):
    check_prose = tool("check_prose")
    monkeypatch.setattr(check_prose, "LIMITS", tmp_path / "limits.txt")
    check_prose.LIMITS.write_text("src 1.00 1.00 0.00\n")
    counts = {"words": 1000, "what": 0, "where": 2, "who": 0}
    check_prose.write_limits(dict.fromkeys(check_prose.AREAS, counts))
    assert check_prose.limits()["src"] == [0.0, 1.0, 0.0]
    assert check_prose.limits()["docs"] == [0.0, 2.0, 0.0]

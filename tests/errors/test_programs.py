"""Every mistake in a kernel is one CompileError that points at its line.

Each file of programs/ defines `kernel`. A comment `# error: <text>` stands on the guilty line, `# note:` and `# help:`
on the lines they belong to (or behind the error): their texts are parts of the message.
"""

import importlib.util
import inspect
import pathlib
import re

import pytest
import warp as wp

PROGRAMS = sorted((pathlib.Path(__file__).parent / "programs").glob("*.py"))
MARK = re.compile(r"\s*# (error|note|help): ((?:(?!  # (?:error|note|help): ).)*)")


@pytest.fixture(autouse=True)
def own_launch(monkeypatch):
    """`wp.launch` of the programs is Weft's, also if the tests' own copies arrays of NumPy."""
    monkeypatch.setattr(wp, "launch", inspect.unwrap(wp.launch))


def load(path):
    spec = importlib.util.spec_from_file_location(f"programs.{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def argument(annotation):
    if getattr(annotation, "ndim", 0):
        return wp.zeros((2,) * annotation.ndim, dtype=annotation.dtype)
    return 1


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_mistake_is_shown_at_its_line(path):
    lines = path.read_text().splitlines()
    marks = [(number, *mark) for number, line in enumerate(lines, 1) for mark in MARK.findall(line)]
    ((guilty, _, text),) = [mark for mark in marks if mark[1] == "error"]
    kernel = load(path).kernel
    arguments = [argument(annotation) for name, annotation in kernel.func.__annotations__.items() if name != "return"]
    messages = set()
    for _ in range(2):  # a failed compile fails on every launch
        with pytest.raises(wp.CompileError) as caught:
            wp.launch(kernel, dim=2, inputs=arguments)
        messages.add(str(caught.value))
    (message,) = messages
    assert caught.value.line == guilty and caught.value.path == str(path), message
    head, excerpt, caret = message.splitlines()[:3]
    assert re.match(re.escape(f"{path}:{guilty}:{caught.value.column}: error: "), head) and text in head, message
    assert excerpt.strip() == lines[guilty - 1].strip(), message
    assert set(caret.strip()) <= {"^", "~"} and caret.strip().startswith("^"), message
    column = excerpt.index(lines[guilty - 1].strip()[0]) + caught.value.column - 1
    column -= len(lines[guilty - 1]) - len(lines[guilty - 1].lstrip())
    assert caret.index("^") == column, message
    for number, kind, text in marks:
        if kind != "error":
            assert text in message, message
        if kind == "note" and number != guilty:
            assert f"{path}:{number}:" in message, message

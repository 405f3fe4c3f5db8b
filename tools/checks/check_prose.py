"""Counts forms that this project's prose avoids: in comments of sources, tests and tools, and in documents.

Three figures per 1000 words:

    what     clauses that begin with "what" as a noun: "What a launch wrote is kept"
    where    "where" in the sense of "if" or "when": "null where there is no gradient"
    who      nobody, somebody, whoever, likewise

Words are those of comments (C++: `//`; Python: `#` and docstrings) and of pages without code blocks. The sense of
"where" is a guess: after a noun of place ("the line where"), after a verb of knowing ("says where") and before a verb
of place ("where the nodes lie") it is a place. Of 60 samples, half of them counted, 48 were told right.

The file prose_limits.txt beside this one has the figures that were reached, a line for each area.
A figure above its limit is an error.

    python tools/checks/check_prose.py                  the figures of each room and in total, and the check
    python tools/checks/check_prose.py --list ROOM      the places of a room, as FILE:LINE: KIND: TEXT
    python tools/checks/check_prose.py --update         lowers the limits to the figures
    python tools/checks/check_prose.py --root FOLDER    the figures of another checkout
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMITS = Path(__file__).resolve().parent / "prose_limits.txt"
CODE = ("src", "emulator/src", "include", "python", "tests", "emulator/tests")
AREAS = (*CODE, "docs")
KINDS = ("what", "where", "who")

WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
COMMENTS = re.compile(r'(?:^|(?<=[^:"]))//[^\n]*(?:\n[ \t]*//[^\n]*)*', re.MULTILINE)
CODE_BLOCK = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`]*`")

WHAT = re.compile(r"(?:^|[.!?:;,(*] *)(what(?:ever)?)\b", re.IGNORECASE)
QUESTION_OR_HEAD = re.compile(r"[^.!;]*\?|\s*(?:\||$)")
WHO = re.compile(r"\b(nobody|somebody|whoever|likewise)\b", re.IGNORECASE)
WHERE = re.compile(r"\b(where(?:ver)?)\b", re.IGNORECASE)
PLACE_NOUN = re.compile(
    r"\b(?:places?|lines?|points?|positions?|address(?:es)?|folders?|files?|memory|registers?|slots?|cells?|rows?|loops?"
    r"|blocks?|branch|regions?|elements?),? $",
    re.IGNORECASE,
)
ASKED = re.compile(
    r"\b(?:knows?|known|says?|said|tells?|told|shows?|finds?|found|sees?|looks?|asks?|remembers?|matters?|decides?|from|to"
    r"|of|at|about|is|are|even|exactly|just),? $",
    re.IGNORECASE,
)
CLAUSE_BEGINS = re.compile(r"(?:^|[.;:,] )$")
STANDS = re.compile(
    r"where (?:[\w`']+ ){1,7}"
    r"(?:lies?|lay|stands?|stood|goes|begins?|ends?|starts?|points?|are|is|belongs?|comes?|leads?)"
    r"(?: (?:in|to|from|at|now|on)\b[^.,;]{0,25})?(?:[.,;:)]|$)",
    re.IGNORECASE,
)


def cpp_passages(text):
    """The comments of a C++ file as (line, text); neighbouring lines are one passage."""
    for match in COMMENTS.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"\n[ \t]*//+", "\n", match[0]).lstrip("/ ")


def python_passages(text):
    """The docstrings and comments of a Python file as (line, text)."""
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if documented and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, ast.get_docstring(node, clean=False)
    begin, last, lines = 0, -1, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != last + 1:
                yield begin, "\n".join(lines)
                lines = []
            begin, last = (begin if lines else token.start[0]), token.start[0]
            lines.append(token.string.lstrip("# "))
    if lines:
        yield begin, "\n".join(lines)


def without_code(text):
    """The page with empty lines in place of its blocks of code."""
    return CODE_BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)


def page_passages(text):
    """The paragraphs, items and rows of a page as (line, text), without blocks of code."""
    text = without_code(text)
    for match in re.finditer(r"[^\n]+(?:\n(?!\s*(?:[*|#]|\d+\.|\n|$))[^\n]+)*", text):
        passage = match[0].strip().lstrip("*#| ")
        if passage:
            yield text.count("\n", 0, match.start()) + 1, passage


def sources(root):
    """(area, room, file, passages) of every file that counts."""
    readers = {".h": cpp_passages, ".cpp": cpp_passages, ".def": cpp_passages, ".py": python_passages}
    for area in CODE:
        for file in sorted((root / area).rglob("*")):
            if file.is_file() and file.suffix in readers:
                parts = file.relative_to(root).parts
                room = "/".join(parts[: 2 if area in ("src", "tests") else 1])
                yield area, room, file, readers[file.suffix](file.read_text())
    pages = [*sorted((root / "docs").rglob("*.md")), root / "README.md", root / "CONTRIBUTING.md"]
    for file in pages:
        room = file.parent.relative_to(root).as_posix()
        yield "docs", "docs" if room == "." else room, file, page_passages(file.read_text())


def is_condition(passage, start):
    """Whether the "where" at `start` means "if" or "when"."""
    before, behind = passage[:start], passage[start:]
    if PLACE_NOUN.search(before) or ASKED.search(before):
        return False
    return not (CLAUSE_BEGINS.search(before) and STANDS.match(behind))


def places(passage):
    """(kind, start) of every avoided form in a passage."""
    flat = INLINE_CODE.sub(lambda match: "x" * len(match[0]), passage.replace("\n", " "))
    for match in WHAT.finditer(flat):
        if not QUESTION_OR_HEAD.match(flat[match.end(1) :]):
            yield "what", match.start(1)
    for match in WHERE.finditer(flat):
        if is_condition(flat, match.start()):
            yield "where", match.start()
    for match in WHO.finditer(flat):
        yield "who", match.start()


def figures(counts):
    """The three figures per 1000 words."""
    return [1000 * counts[kind] / max(counts["words"], 1) for kind in KINDS]


def limits():
    """{area: three limits}."""
    rows = [line.split() for line in LIMITS.read_text().splitlines() if line and not line.startswith("#")]
    return {row[0]: [float(number) for number in row[1:]] for row in rows}


def complaints(areas):
    """Figures above their limits, as lines to print."""
    for area, bounds in limits().items():
        for kind, figure, bound in zip(KINDS, figures(areas[area]), bounds, strict=True):
            if round(figure, 2) > bound:
                yield (
                    f"prose: {area} has {figure:.2f} '{kind}' per 1000 words, and its limit is {bound}. "
                    f"help: python tools/checks/check_prose.py --list {area}"
                )


def write_limits(areas):
    """Lowers the limits to the figures."""
    head = "# Area, and the largest figures of what, where and who per 1000 words (tools/checks/check_prose.py).\n"
    rows, old = "", limits()
    for area in AREAS:
        new = [round(figure, 2) for figure in figures(areas[area])]
        best = [min(pair) for pair in zip(new, old.get(area, new), strict=True)]
        rows += f"{area:14}" + "".join(f"{number:6.2f}" for number in best) + "\n"
    LIMITS.write_text(head + rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", metavar="ROOM")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT)
    chosen = parser.parse_args()
    rooms, areas = {}, {}
    for area, room, file, passages in sources(chosen.root):
        for line, passage in passages:
            for counts in (rooms.setdefault(room, dict.fromkeys(("words", *KINDS), 0)),
                           areas.setdefault(area, dict.fromkeys(("words", *KINDS), 0))):  # fmt: skip
                counts["words"] += len(WORD.findall(passage))
            for kind, start in places(passage):
                rooms[room][kind] += 1
                areas[area][kind] += 1
                name = file.relative_to(chosen.root).as_posix()
                if chosen.list and (name == chosen.list or name.startswith(chosen.list.rstrip("/") + "/")):
                    text = passage[max(0, start - 50) : start + 60].replace("\n", " ").strip()
                    print(f"{name}:{line + passage.count(chr(10), 0, start)}: {kind}: {text}")
    if chosen.list:
        return 0
    print(f"{'room':20}{'words':>8}" + "".join(f"{kind:>8}" for kind in KINDS))
    for name, counts in [*rooms.items(), *((f"all of {area}", counts) for area, counts in areas.items())]:
        print(f"{name:20}{counts['words']:8}" + "".join(f"{figure:8.2f}" for figure in figures(counts)))
    if chosen.root != ROOT:
        return 0
    if chosen.update:
        write_limits(areas)
    wrong = list(complaints(areas))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

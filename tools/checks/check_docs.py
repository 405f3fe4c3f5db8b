"""Checks documents and comments: links lead somewhere, files that are named exist, lines have at most 120 columns, the
Python examples run, and the rooms of docs/architecture.md are those of tools/checks/check_layers.py.

Comments are those of src, include, python, tests and tools. A file is named by its name alone or by the end of its
path (`emit_poll.cpp`, `codegen/emit_poll.cpp`). Papers that are no part of the repository (OUTSIDE) must not be named.
Tables, blocks of code and generated pages may be wider than 120 columns.

Blocks marked ```python in README.md, docs/guide, docs/interop.md and docs/reference/language.md are run from top to
bottom of a page, in one namespace per page, as a reader would. A block that is only to be looked at is marked
```python no-run.

    python tools/checks/check_docs.py [page ...]      of pages, only these, and no comments
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import check_layers
import check_prose

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# A file that a comment or a page names: with its folder or without.
FILE = re.compile(r"(?<![\w.$~{}<>*/-])((?:[\w-]+/)*[\w-]+\.(?:h|cpp|def|py|md|sh|cmake|tsv))\b(?![\w/(])")
# Papers that the repository does not hold.
OUTSIDE = re.compile(r"\b(?:(?:DEVICES|SEEDS|BUILTINS|HOUSE|API-1\.19)\.md|seed \d{3})\b")
# Files of others, files that a build writes, and names of a reader's files.
FOREIGN = {"cuda.h", "nvJitLink.h", "elf.h", "llvm/Support/TargetSelect.h", "runtime/cuda_kernels.h"}
EXAMPLES = re.compile(r"(?:^|/)(?:[a-z]|sim|simulation|program)\.(?:py|cpp|h)$")
COMMENTED = ("src/", "emulator/", "include/", "python/", "tests/", "tools/")
GENERATED = {"docs/reference/functions.md", "docs/reference/runtime.md"}
COLUMNS = 120


def listed(*patterns):
    """Files of the repository, or those that git does not ignore, by patterns."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.check_output(listing, cwd=ROOT, text=True).split("\n")
    return [name for name in names if name and (ROOT / name).exists()]


def pages():
    """Every document of the repository."""
    return [ROOT / name for name in listed("*.md")]


def ends_of_paths():
    """Every end of every path of the repository: c.h, b/c.h and a/b/c.h."""
    parts = [name.split("/") for name in listed()]
    return {"/".join(part[first:]) for part in parts for first in range(len(part))}


def missing_files(name, passages, ends):
    """Complaints about files and papers that a file's comments name and that are not there."""
    for line, passage in passages:
        for match in FILE.finditer(passage):
            known = match[1] in ends or match[1] in FOREIGN or EXAMPLES.search(match[1])
            if not known and not OUTSIDE.match(match[1]):
                yield f"{name}:{line + passage.count(chr(10), 0, match.start())}: there is no file {match[1]}"
        for match in OUTSIDE.finditer(passage):
            at = line + passage.count("\n", 0, match.start())
            yield f"{name}:{at}: {match[0]} is no part of the repository. help: name a page of docs/"


def commented_files():
    """(name, text, passages) of the files whose comments are checked."""
    for name in listed("*.h", "*.cpp", "*.def", "*.py"):
        if name.startswith(COMMENTED) and name != "tools/checks/check_docs.py":
            text = (ROOT / name).read_text()
            yield name, text, (check_prose.python_passages if name.endswith(".py") else check_prose.cpp_passages)(text)


def long_comments(name, text):
    """Complaints about comments of more than 120 columns."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS and line.lstrip().startswith(("//", "# ")):
            yield f"{name}:{number}: the comment has {len(line)} columns, and at most {COLUMNS} are read"


def long_lines(page):
    """Complaints about lines of a page with more than 120 columns that are no rows of a table and no code."""
    name = page.relative_to(ROOT).as_posix()
    text = check_prose.without_code(page.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS and not line.lstrip().startswith("|") and name not in GENERATED:
            yield f"{name}:{number}: the line has {len(line)} columns, and at most {COLUMNS} are read"


def wrong_rooms(page):
    """Complaints about rows of the page's table of rooms that differ from the table of check_layers.py."""
    text = page.read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", text, re.MULTILINE))
    for room, allowed in check_layers.TABLE.items():
        expected = ", ".join(f"`{name}`" for name in allowed.split()) or "–"
        if rows.get(room) != expected:
            yield f"{page.name}: the row of the room '{room}' must end with: {expected}"
    for room in rows.keys() - check_layers.TABLE.keys():
        yield f"{page.name}: there is no room '{room}' in tools/checks/check_layers.py"


def anchors(page):
    """The anchors of the page's headings, as GitHub makes them."""
    found, counts = set(), {}
    for heading in HEADING.findall(check_prose.without_code(page.read_text())):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = counts[anchor] = counts.get(anchor, -1) + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def broken_links(page):
    """Complaints about links to files and headings that do not exist."""
    for match in LINK.finditer(check_prose.without_code(page.read_text())):
        target, anchor = match[1], match[2]
        if "://" in target or target.startswith("mailto:"):
            continue
        file = page.parent / target if target else page
        if not file.exists():
            yield f"{page.relative_to(ROOT)}: the link to {target} leads nowhere"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{page.relative_to(ROOT)}: {target or 'the page'} has no heading #{anchor}"


def run_examples(page, folder):
    """Runs the page's examples as one file, whose line numbers are the page's; complains with the traceback."""
    text = page.read_text()
    program, line = "", 1
    for match in BLOCK.finditer(text):
        start = text.count("\n", 0, match.start(1)) + 1
        program += "\n" * (start - line) + match[1]
        line = start + match[1].count("\n")
    if not program:
        return
    file = folder / f"page_{page.stem}.py"  # no module of that name is meant
    file.write_text(program)
    result = subprocess.run([sys.executable, file], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        yield f"{page.relative_to(ROOT)}: an example fails (line numbers are the page's)\n{result.stderr}"


def main():
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    wrong, ends = [], ends_of_paths()
    for name, text, passages in () if sys.argv[1:] else commented_files():
        wrong += [*missing_files(name, passages, ends), *long_comments(name, text)]
    with tempfile.TemporaryDirectory() as name:
        os.environ["WARP_CACHE_PATH"] = str(Path(name) / "cache")
        for page in chosen:
            name_of_page = page.relative_to(ROOT).as_posix()
            wrong += [*broken_links(page), *long_lines(page)]
            wrong += missing_files(name_of_page, check_prose.page_passages(page.read_text()), ends)
            if page.name == "architecture.md":
                wrong += wrong_rooms(page)
            if page.name in ("README.md", "interop.md", "language.md") or page.parent.name == "guide":
                wrong += run_examples(page, Path(name))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"documents: {len(chosen)} pages, {len(wrong)} complaints")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

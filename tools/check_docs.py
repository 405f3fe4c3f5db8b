"""Checks the documents: links lead somewhere, and the Python examples run.

Blocks marked ```python in README.md, docs/guide, docs/interop.md and docs/reference/language.md are run from top to
bottom of a page, in one namespace per page, as a reader would. A block that is only to be looked at is marked
```python no-run.

    python tools/check_docs.py [page ...]
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages():
    """Every document of the repository."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    return [ROOT / name for name in subprocess.check_output(listing, cwd=ROOT, text=True).split()]


def broken_links(page):
    """Complaints about links to files that do not exist."""
    for match in LINK.finditer(page.read_text()):
        target = match[1]
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists():
            yield f"{page.relative_to(ROOT)}: the link to {target} leads nowhere"


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
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        os.environ["WARP_CACHE_PATH"] = str(Path(name) / "cache")
        for page in chosen:
            wrong += broken_links(page)
            if page.name in ("README.md", "interop.md", "language.md") or page.parent.name == "guide":
                wrong += run_examples(page, Path(name))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"documents: {len(chosen)} pages, {len(wrong)} complaints")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

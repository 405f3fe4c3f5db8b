"""`python -m warp.examples` lists the examples; `python -m warp.examples lagoon --size 512` runs one."""

from __future__ import annotations

import ast
import importlib
import sys
from difflib import get_close_matches
from pathlib import Path

FOLDER = Path(__file__).parent


def examples() -> dict[str, str]:
    """{name: the first line of its documentation} of the modules that can be run."""
    found = {}
    for path in sorted(FOLDER.glob("[a-z]*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        found[path.stem] = (text or "").partition("\n")[0]
    return found


def listing() -> str:
    """The names and summaries of all examples, and the command that runs one."""
    found = examples()
    width = max(map(len, found))
    rows = "\n".join(f"  {name:{width}}  {sentence}" for name, sentence in found.items())
    return (
        "Examples; pictures go to out/.\n\n"
        f"{rows}\n\n"
        "python -m warp.examples NAME           runs one\n"
        "python -m warp.examples NAME --help    shows its options\n"
        "They need Pillow, and some of them matplotlib: pip install 'weft-lang[examples]'"
    )


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help", "--list"):
        print(listing())
        return
    name, found = sys.argv[1], examples()
    if name not in found:
        near = get_close_matches(name, found, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise SystemExit(f"there is no example '{name}': {hint}python -m warp.examples lists them")
    sys.argv = [f"python -m warp.examples {name}", *sys.argv[2:]]
    importlib.import_module(f"warp.examples.{name}").main()


if __name__ == "__main__":
    main()

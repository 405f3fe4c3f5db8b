"""Writes docs/reference/functions.md from the builtin table. Part of `make docs`; the page is not committed.

python tools/gen_reference.py
"""

from pathlib import Path

from warp.builtins import reference_page

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/functions.md"


def main():
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(reference_page())
    print(f"{PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}: written")


if __name__ == "__main__":
    main()

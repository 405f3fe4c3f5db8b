"""Keeps docs/status.md and the tests of one mind.

docs/status.md has a row for each item of the contract: what it is, whether it is done, and the test that shows it or
the theme it waits for. An item is done when a test carries its id: @pytest.mark.seed("S-ARR-003"). This script reads
the marks (without running anything) and fails where the page says something else.

    python tools/check_status.py            checks
    python tools/check_status.py --update   rewrites the columns "state" and "test or theme" from the marks
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/status.md"
ROW = re.compile(r"^\| (?P<id>[SP]-[A-Z0-9-]+) \| (?P<subject>.*) \| (?P<state>open|done) \| (?P<where>.*) \|$")

# The theme an open item waits for: by id, or by the letters of its group.
THEMES = {
    "S-INI": "core", "S-KRN": "core", "S-LCH": "core", "S-FUN": "core", "S-ARR": "core", "S-ANN": "core",
    "S-USE": "core", "S-IDX": "core", "S-TYP": "core", "S-VEC": "core", "S-MAT": "core", "S-CNV": "core",
    "S-CON": "core", "S-OPR": "core", "S-CFL": "core", "S-BLT": "language",
    "S-FUN-002": "gradients", "S-MUL-005": "gradients", "S-STR-007": "gradients",
    "S-QUA": "language", "S-XFM": "language", "S-STR": "language", "S-MUL": "arrays",
    "S-MSH": "geometry", "S-VOL": "geometry", "S-HGR": "geometry",
    "S-DIF": "gradients", "S-JAC": "gradients", "S-GRF": "graphs", "S-STM": "cuda",
    "S-NPY": "interop", "S-DIR": "interop", "S-TOR": "interop", "S-CTY": "interop", "S-CUP": "interop",
    "S-JAX": "interop", "S-DLP": "interop", "S-PAD": "interop", "S-DST": "interop", "S-BEN": "interop",
    "S-DOC": "documents",
    "S-INI-007": "cuda", "S-INI-009": "cuda", "S-INI-014": "documents", "S-LCH-005": "gradients",
    "S-LCH-007": "interop",
}  # fmt: skip
PROGRAM_THEMES = [
    (1, "core"), (43, "interop"), (50, "core"), (52, "graphs"), (53, "gradients"), (60, "core"), (61, "gradients"),
    (70, "core"), (79, "language"), (80, "core"), (86, "geometry"), (91, "gradients"),
]  # fmt: skip


def theme(item):
    """The theme that an open item belongs to."""
    if item.startswith("P-"):
        return next(name for last, name in PROGRAM_THEMES if int(item[2:]) <= last)
    return THEMES.get(item) or THEMES[item[:5]]


class Marks(ast.NodeVisitor):
    """Collects {id: [test, ...]} from the seed marks of one file: on functions, classes, parameters, or the module."""

    def __init__(self, path):
        self.path = path
        self.scope = []
        self.tests = {}

    def visit_scope(self, node):
        # A decorator belongs to what it decorates.
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_scope

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func).endswith("mark.seed"):
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise SystemExit(f"{self.path}:{node.lineno}: a seed mark takes ids as plain strings")
                self.tests.setdefault(argument.value, []).append("::".join([self.path, *self.scope]))
        self.generic_visit(node)


def marked_tests():
    """{id: [test, ...]} over all of tests/."""
    tests = {}
    for file in sorted((ROOT / "tests").rglob("*.py")):
        marks = Marks(file.relative_to(ROOT).as_posix())
        marks.visit(ast.parse(file.read_text(), file.name))
        for item, names in marks.tests.items():
            tests.setdefault(item, []).extend(names)
    return tests


def columns(item, tests):
    """What the columns "state" and "test or theme" say of an item."""
    if item not in tests:
        return "open", theme(item)
    names = list(dict.fromkeys(tests[item]))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return "done", f"`{names[0]}`{more}"


def summary(rows):
    """The counts at the top of the page."""
    counts = Counter((row["id"][0], row["state"]) for row in rows)
    kinds = [(kind, counts[kind, "done"], counts[kind, "done"] + counts[kind, "open"]) for kind in "SP"]
    return "Done: {1} of {2} contract items (S-…), {4} of {5} programs (P-…).".format(*kinds[0], *kinds[1])


def main():
    tests = marked_tests()
    lines = PAGE.read_text().splitlines()
    found, rows, wrong = set(), [], []
    for number, line in enumerate(lines):
        row = ROW.match(line)
        if row is None:
            continue
        item, (state, where) = row["id"], columns(row["id"], tests)
        if item in found:
            wrong.append(f"{item} has two rows")
        found.add(item)
        if state != row["state"] or where != row["where"]:
            wrong.append(f"{item} is '{row['state']}' ({row['where']}), the tests say '{state}' ({where})")
        lines[number] = f"| {item} | {row['subject']} | {state} | {where} |"
        rows.append(ROW.match(lines[number]))
    counts = next(number for number, line in enumerate(lines) if line.startswith("Done: "))
    lines[counts] = summary(rows)
    unknown = [f"{test}: docs/status.md has no row {item}" for item in tests.keys() - found for test in tests[item]]

    if "--update" in sys.argv[1:]:
        PAGE.write_text("\n".join(lines) + "\n")
        wrong = []
    for complaint in [*sorted(unknown), *wrong]:
        print(complaint)
    if wrong:
        print("docs/status.md does not fit the tests: python tools/check_status.py --update", file=sys.stderr)
    return 1 if wrong or unknown else 0


if __name__ == "__main__":
    sys.exit(main())

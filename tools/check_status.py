"""Keeps docs/status.md and the tests of one mind.

docs/status.md has a row for each item of the contract (S-…), each program (P-…) and each pair of an old and a new form
(D-…): what it is, whether it is done, and the test that shows it or the theme it waits for. An item is done when a test
carries its id: @pytest.mark.seed("S-ARR-003"). It is done in part when a mark says what part waits for a theme:
@pytest.mark.seed("S-ARR-008", waits="cuda"). This script reads the marks (without running anything) and fails where the
page says something else.

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
ROW = re.compile(r"^\| (?P<id>[SPD]-[A-Z0-9-]+) \| (?P<subject>.*) \| (?P<state>open|part|done) \| (?P<where>.*) \|$")

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
    "S-LCH-007": "interop", "S-LCH-017": "gradients", "S-ARR-018": "cuda", "S-DOC-006": "interop",
    "S-DOC-007": "interop",
}  # fmt: skip
# Of programs and pairs: the last number of each run.
RUNS = {
    "P": [
        (1, "core"), (43, "interop"), (50, "core"), (52, "graphs"), (53, "gradients"), (60, "core"), (61, "gradients"),
        (70, "core"), (79, "language"), (80, "core"), (86, "geometry"), (91, "gradients"), (93, "core"),
        (94, "geometry"), (95, "gradients"), (101, "interop"),
    ],
    "D": [
        (3, "core"), (5, "gradients"), (6, "core"), (8, "interop"), (10, "geometry"), (11, "language"), (13, "interop"),
        (16, "core"), (18, "cuda"), (21, "core"), (22, "graphs"), (23, "cuda"), (24, "graphs"), (25, "geometry"),
        (26, "interop"), (27, "geometry"), (28, "gradients"), (29, "tiles"), (32, "core"),
    ],
}  # fmt: skip


def theme(item):
    """The theme that an open item belongs to."""
    kind, number = item.split("-")[0], item.split("-")[-1]
    if kind in RUNS:
        return next(name for last, name in RUNS[kind] if int(number) <= last)
    return THEMES.get(item) or THEMES[item[:5]]


class Marks(ast.NodeVisitor):
    """Collects {id: [test, ...]} from the seed marks of one file: on functions, classes, parameters, or the module.
    And {id: [theme, ...]}, what the marks wait for."""

    def __init__(self, path):
        self.path = path
        self.scope = []
        self.tests = {}
        self.waits = {}

    def visit_scope(self, node):
        # A decorator belongs to what it decorates.
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_scope

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func).endswith("mark.seed"):
            waits = [self.text(keyword.value, "themes") for keyword in node.keywords if keyword.arg == "waits"]
            if len(waits) != len(node.keywords):
                raise SystemExit(f"{self.path}:{node.lineno}: a seed mark has no keyword but waits=")
            for argument in node.args:
                item = self.text(argument, "ids")
                self.tests.setdefault(item, []).append("::".join([self.path, *self.scope]))
                self.waits.setdefault(item, []).extend(waits)
        self.generic_visit(node)

    def text(self, node, what):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            raise SystemExit(f"{self.path}:{node.lineno}: a seed mark takes {what} as plain strings")
        return node.value


def marked_tests():
    """{id: [test, ...]} and {id: [theme, ...]} over all of tests/."""
    tests, waits = {}, {}
    for file in sorted((ROOT / "tests").rglob("*.py")):
        marks = Marks(file.relative_to(ROOT).as_posix())
        marks.visit(ast.parse(file.read_text(), file.name))
        for all_items, items in ((tests, marks.tests), (waits, marks.waits)):
            for item, names in items.items():
                all_items.setdefault(item, []).extend(names)
    return tests, waits


def columns(item, tests, waits):
    """What the columns "state" and "test or theme" say of an item."""
    if item not in tests:
        return "open", theme(item)
    names = list(dict.fromkeys(tests[item]))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    rest = ", ".join(dict.fromkeys(waits.get(item, [])))
    return ("part" if rest else "done"), f"`{names[0]}`{more}" + (f"; waits for {rest}" if rest else "")


def summary(rows):
    """The counts at the top of the page."""
    counts = Counter((row["id"][0], row["state"]) for row in rows)
    kinds = {"S": "contract items (S-…)", "P": "programs (P-…)", "D": "pairs of an old and a new form (D-…)"}
    all_of = {kind: sum(counts[kind, state] for state in ("open", "part", "done")) for kind in kinds}
    done = ", ".join(f"{counts[kind, 'done']} of {all_of[kind]} {name}" for kind, name in kinds.items())
    return f"Done: {done}; {sum(counts[kind, 'part'] for kind in kinds)} more in part."


def main():
    tests, waits = marked_tests()
    lines = PAGE.read_text().splitlines()
    found, rows, wrong = set(), [], []
    for number, line in enumerate(lines):
        row = ROW.match(line)
        if row is None:
            continue
        item, (state, where) = row["id"], columns(row["id"], tests, waits)
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

"""Checks docs/status.md against the results of a run of the tests.

docs/status.md has a row for each item of the contract (S-…), each program (P-…) and each pair of an old and a new form
(D-…): a description, its state, and the test that shows it or the theme it waits for. An item is done when a test that
carries its id passed: @pytest.mark.seed("S-ARR-003"). It is done in part when a mark says that a part waits for a
theme: @pytest.mark.seed("S-ARR-008", waits="cuda"). A test that was skipped shows nothing, nor does one that runs on
some machines only. This script reads the report of a run of all tests (`pytest --report FILE`; `make test` leaves one
in build/) and fails if the page differs from it.

    python tools/checks/check_status.py [REPORT]            checks
    python tools/checks/check_status.py [REPORT] --update   rewrites the columns "state" and "test or theme"
"""

import re
import sys
import textwrap
from collections import Counter
from pathlib import Path

import check_docs
import run_report

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/status.md"
ROW = re.compile(r"^\| (?P<id>[SPD]-[A-Z0-9-]+) \| (?P<subject>.*) \| (?P<state>open|part|done) \| (?P<where>.*) \|$")

# How many items the contract has in each group; they are numbered from 1 on.
GROUPS = {
    "S-INI": 14, "S-KRN": 14, "S-LCH": 17, "S-FUN": 5, "S-ARR": 20, "S-ANN": 8, "S-USE": 15, "S-IDX": 10, "S-MUL": 7,
    "S-TYP": 6, "S-VEC": 13, "S-MAT": 10, "S-QUA": 8, "S-XFM": 7, "S-STR": 9, "S-CNV": 3, "S-CON": 3, "S-OPR": 11,
    "S-CFL": 6, "S-BLT": 7, "S-MSH": 10, "S-VOL": 13, "S-HGR": 7, "S-DIF": 20, "S-JAC": 4, "S-GRF": 10, "S-STM": 7,
    "S-NPY": 3, "S-DIR": 7, "S-TOR": 18, "S-CTY": 5, "S-CUP": 4, "S-JAX": 15, "S-DLP": 11, "S-PAD": 9, "S-DST": 6,
    "S-BEN": 4, "S-DOC": 7, "P": 101, "D": 32,
}  # fmt: skip
# The theme an open item waits for: by id, or by the letters of its group.
THEMES = {
    "S-INI": "core", "S-KRN": "core", "S-LCH": "core", "S-FUN": "core", "S-ARR": "core", "S-ANN": "core",
    "S-USE": "core", "S-IDX": "core", "S-TYP": "core", "S-VEC": "core", "S-MAT": "core", "S-CNV": "core",
    "S-CON": "core", "S-OPR": "core", "S-CFL": "core", "S-BLT": "language",
    "S-FUN-002": "gradients", "S-MUL-005": "gradients", "S-STR-007": "gradients",
    "S-QUA": "language", "S-XFM": "language", "S-STR": "language", "S-MUL": "arrays",
    "S-MSH": "geometry", "S-VOL": "geometry", "S-HGR": "geometry",
    "S-DIF": "gradients", "S-DIF-020": "interop", "S-JAC": "gradients", "S-GRF": "graphs", "S-STM": "cuda",
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


def contract():
    """The ids of all items."""
    return {
        f"{group}-{number:0{3 if group[0] == 'S' else 2}}"
        for group, count in GROUPS.items()
        for number in range(1, count + 1)
    }


def shown(report):
    """{id: [test that passed, ...]} and {id: [theme that a part waits for, ...]} of a report."""
    tests, waits = {}, {}
    for name, test in report.items():
        for mark in test["seeds"] if test["everywhere"] and test["outcome"] == "passed" else ():
            for item in mark["ids"]:
                tests.setdefault(item, []).append(name.split("[")[0])
                waits.setdefault(item, []).extend([mark["waits"]] if mark["waits"] else [])
    return tests, waits


def columns(item, tests, waits):
    """The columns "state" and "test or theme" of an item."""
    if item not in tests:
        return "open", theme(item)
    names = list(dict.fromkeys(tests[item]))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    rest = ", ".join(dict.fromkeys(waits.get(item, [])))
    return ("part" if rest else "done"), f"`{names[0]}`{more}" + (f"; waits for {rest}" if rest else "")


def summary(rows):
    """The counts at the top of the page, as the lines of a paragraph."""
    counts = Counter((row["id"][0], row["state"]) for row in rows)
    kinds = {"S": "contract items (S-…)", "P": "programs (P-…)", "D": "pairs of an old and a new form (D-…)"}
    all_of = {kind: sum(counts[kind, state] for state in ("open", "part", "done")) for kind in kinds}
    done = ", ".join(f"{counts[kind, 'done']} of {all_of[kind]} {name}" for kind, name in kinds.items())
    text = f"Done: {done}; {sum(counts[kind, 'part'] for kind in kinds)} more in part."
    return textwrap.wrap(text, check_docs.COLUMNS, break_long_words=False, break_on_hyphens=False)


def main():
    update = "--update" in sys.argv[1:]
    report = run_report.load([argument for argument in sys.argv[1:] if argument != "--update"])
    tests, waits = shown(report)
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
    begin = next(number for number, line in enumerate(lines) if line.startswith("Done: "))
    lines[begin : lines.index("", begin)] = summary(rows)
    unknown = [f"{test}: the contract has no item {item}" for item in tests.keys() - contract() for test in tests[item]]
    unknown += [f"docs/status.md has no row {item}" for item in contract() - found]
    unknown += [f"docs/status.md has a row {item}, the contract has not" for item in found - contract()]

    if update:
        PAGE.write_text("\n".join(lines) + "\n")
        wrong = []
    for complaint in [*sorted(unknown), *wrong]:
        print(complaint)
    if wrong:
        print("docs/status.md does not fit the tests: python tools/checks/check_status.py --update", file=sys.stderr)
    return 1 if wrong or unknown else 0


if __name__ == "__main__":
    sys.exit(main())

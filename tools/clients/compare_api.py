#!/usr/bin/env python3
"""Compares Weft with another release of the package ``warp``, each a black box in an interpreter of its own.

    compare_api.py                           the probes of tests/api: Weft's differing answers
    compare_api.py --peer PYTHON             asks the other release too, for answers that are not kept yet
    compare_api.py --peer PYTHON --record    keeps its answers in tests/api/expected
    compare_api.py --peer PYTHON arrays.view_of_rows    single probes or files, with both answers
    compare_api.py --names                   public names and parameters of the other release that Weft lacks

``PYTHON`` is an interpreter that imports the other release, such as .venv-peer/bin/python. Only behaviour is compared:
the results, output and exceptions of programs, and names and signatures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/api"))
import harness  # noqa: E402


def chosen_probes(wanted):
    """Files and the names that are asked for in each; an empty list means all names."""
    if not wanted:
        return {path: [] for path in harness.FILES}
    chosen = {}
    for text in wanted:
        stem, _, name = text.partition(".")
        path = harness.HERE / "probes" / f"{stem}.py"
        if path not in harness.FILES:
            sys.exit(f"there is no {path.relative_to(ROOT)}")
        chosen.setdefault(path, [])
        if name:
            chosen[path].append(name)
    return chosen


def record(peer, chosen):
    """Keeps the peer's answers."""
    for path, names in chosen.items():
        kept = harness.expected_answers(path) if names else {}
        found = harness.answers(peer, path, names)
        kept.update({name: harness.as_text(answer) for name, answer in found.items()})
        order = [name for name in harness.names_in(path) if name in kept]
        stored = harness.HERE / "expected" / f"{path.stem}.json"
        stored.write_text(json.dumps({name: kept[name] for name in order}, indent=1, ensure_ascii=False) + "\n")
        print(f"{stored.relative_to(ROOT)}: {len(found)} answers")
        # An error may be the probe's own mistake: to be looked at.
        for name, answer in found.items():
            if "raises" in answer:
                print(f"    {name} raises {answer['raises'][0]}: {' '.join(answer['message'].split())[:200]}")


def compare(peer, chosen, show_all):
    """Prints the differing answers; returns the number of those that no mark explains."""
    unexplained = 0
    for path, names in chosen.items():
        expected = harness.expected_answers(path)
        unknown = [name for name in names or harness.names_in(path) if name not in expected]
        if unknown and peer:
            asked = harness.answers(peer, path, unknown)
            expected.update({name: harness.as_text(answer) for name, answer in asked.items()})
        for name, answer in harness.answers(sys.executable, path, names).items():
            if name not in expected:
                print(f"{path.stem}.{name}: no answer of 1.19 is kept. help: --peer PYTHON --record")
                unexplained += 1
                continue
            same = harness.agrees(answer, expected[name])
            mark = next((mark for mark in ("open", "differs") if mark in answer), "")
            if same and not mark and not show_all:
                continue
            state = mark or ("same" if same else "WRONG")
            if same and mark:
                state = f"SAME, although marked {mark}"
            unexplained += state.isupper() or "SAME" in state
            print(f"{path.stem}.{name}: {state}\n    1.19: {expected[name]}\n    Weft: {harness.as_text(answer)}")
            if "message" in answer:
                print("          " + answer["message"].replace("\n", "\n          "))
    return unexplained


def compare_names(peer, keep):
    """Prints the names and parameters of the other release that Weft lacks; returns how many they are."""
    stored = harness.HERE / "names.json"
    if keep:
        names = harness.public_names(peer)
        owners = []
        for owner, members in names.items():  # a line for each name
            lines = [f" {json.dumps(name)}: {json.dumps(parameters)}" for name, parameters in members.items()]
            owners.append(f"{json.dumps(owner)}: {{\n" + ",\n".join(lines) + "\n}")
        stored.write_text("{\n" + ",\n".join(owners) + "\n}\n")
        print(f"{stored.relative_to(ROOT)}: {sum(map(len, names.values()))} names")
    missing, other = harness.missing_names(harness.public_names(sys.executable))
    for name in missing:
        print(f"{name}: not there")
    for name, (theirs, ours) in other.items():
        print(f"{name}: takes ({', '.join(theirs)}) there, ({', '.join(ours)}) here")
    print(f"{len(missing)} names are not there, {len(other)} lack parameters")
    return len(missing) + len(other)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peer", help="an interpreter that imports the other release")
    parser.add_argument("--record", action="store_true", help="keep the other release's answers")
    parser.add_argument("--names", action="store_true", help="compare names and parameters, not probes")
    parser.add_argument("probes", nargs="*", help="files or probes: arrays, arrays.view_of_rows")
    options = parser.parse_args()
    if options.record and not options.peer:
        parser.error("--record needs --peer")
    if options.names:
        return min(compare_names(options.peer, options.record), 1)
    chosen = chosen_probes(options.probes)
    if options.record:
        record(options.peer, chosen)
    unexplained = compare(options.peer, chosen, show_all=bool(options.probes))
    print(f"{unexplained} answers differ without a mark")
    return min(unexplained, 1)


if __name__ == "__main__":
    sys.exit(main())

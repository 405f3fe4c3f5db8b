"""The report of a run of all tests (`pytest --report FILE`), for the checks that read it."""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load(arguments):
    """{test: its result} of the file that the arguments name, else of the one that `make test` leaves."""
    file = Path(next(iter(arguments), ROOT / os.environ.get("BUILD", "build") / "test-report.json"))
    if not file.exists():
        sys.exit(f"there is no report {file}: run `make test`, or `pytest --report {file}`")
    return json.loads(file.read_text())

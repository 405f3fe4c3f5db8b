"""run_tests.py PACKAGE [FILE...]: runs the tests that an installed package brings along; a line of JSON for each file.

Each file runs in a process of its own, on the CPU. Without FILE all run but those of newton that name parts of the API
that Weft does not have (WITHOUT).
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

FILES = {"mujoco_warp": "_src/*_test.py", "newton": "tests/**/test_*.py"}
WITHOUT = re.compile(r"warp\.(fem|render|sparse)\b|implicit_mpm|ImplicitMPM")
MOST_SECONDS = 900  # of a file


def reason_of(case) -> str | None:
    """The last line of a failure; None if the test passed or was skipped."""
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return (found.get("message") or found.text or kind).strip().splitlines()[0]
    return None


def results_of(file: Path, root: Path) -> dict:
    """The numbers of tests that passed, failed and were skipped, the reasons of failures, and the time."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", f"--junitxml={report}"]
        command += ["-o", "python_functions=none"]  # tests are methods; functions of such names are their bodies
        try:
            done = subprocess.run(
                [*command, str(file)],
                cwd=root,
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
                env={**os.environ, "WARP_CUDA_DRIVER": "none"},
            )
            ended = f"the process ended with {done.returncode}" if done.returncode not in (0, 1, 5) else None
        except subprocess.TimeoutExpired:
            ended = f"not done in {MOST_SECONDS} s"
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    reasons = [reason for reason in map(reason_of, cases) if reason is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "file": str(file.relative_to(root)),
        "passed": len(cases) - len(reasons) - skipped,
        "failed": len(reasons),
        "skipped": skipped,
        "seconds": time.monotonic() - start,
        "reasons": reasons,
        "ended": ended,
    }


def main() -> None:
    package, *names = sys.argv[1:]
    root = Path(importlib.util.find_spec(package).origin).parent
    files = [root.parent / name for name in names] or sorted(root.glob(FILES[package]))
    for file in files:
        if not names and WITHOUT.search(file.read_text()):
            continue
        print(json.dumps(results_of(file, root.parent)), flush=True)


main()

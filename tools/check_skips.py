"""Compares the tests that a run skipped with the skips that are allowed.

A test that is skipped shows nothing, and nobody reads a hundred lines of skips. So each reason has a number here: more
skips for it, or another reason, fail. Fewer are fine: a machine with a GPU, or with PyTorch, skips less.

    python tools/check_skips.py [REPORT]    of `pytest --report FILE`; `make test` leaves one in build/
"""

import sys
from collections import Counter

import run_report

ALLOWED = {
    "a large test: run with --large": 177,
    "needs a CUDA device": 20,
    "needs a GPU, and PyTorch and CuPy for it": 12,
    "needs the Python package cupy": 2,
    "needs an older JAX: make test-interop-old": 6,
    "the seed documents are not beside the repository": 75,  # each has a counterpart of ours
    "the list of builtins is not beside the repository": 2,
    "needs the Python package basedpyright": 1,
    "Python keeps the text of -c from 3.13 on": 1,
    "thread 0 uses the other array": 2,
    "root may write everywhere": 1,
    "this processor has all that Sapphire Rapids has": 1,
    "needs a machine without CUDA": 1,
    "there is a CUDA device": 1,
    "needs ptxas, of the CUDA toolkit": 8,
    "needs libclc, of the Debian package libclc-22": 4,
}


def complaints(report):
    skipped = Counter(test["reason"] for test in report.values() if test["outcome"] == "skipped")
    for reason, count in sorted(skipped.items()):
        if count > ALLOWED.get(reason, 0):
            yield f"{count} tests are skipped because '{reason}'; {ALLOWED.get(reason, 0)} are allowed:"
            yield from (f"    {name}" for name, test in report.items() if test["reason"] == reason)


def main():
    wrong = list(complaints(run_report.load(sys.argv[1:])))
    print("\n".join(wrong), end="\n" if wrong else "")
    if wrong:
        print("tools/check_skips.py has the numbers that are allowed", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compares the reasons for which a run skipped tests with the register of reasons.

A test that is skipped shows nothing, and a hundred lines of skips are not read. So each reason stands here. A reason
that any machine may have after `make setup` allows any number of tests. The others are counted: more skips for them
fail, as do reasons that are not registered. Fewer are fine: a machine with a GPU skips less.

    python tools/checks/check_skips.py [REPORT]    of `pytest --report FILE`; `make test` leaves one in build/
"""

import sys
from collections import Counter

import run_report

ANY_NUMBER = {
    # asked for by another command or option
    "a large test: run with --large",
    "is about documents that are no part of this repository: make test-documents",
    "needs an older JAX: make test-interop-old",
    # a GPU; most of these tests run on the emulated device
    "needs a CUDA device",
    "needs two CUDA devices",
    "needs a GPU, and a build of the framework for it",
    # no GPU, or another processor
    "needs a machine without CUDA",
    "there is a CUDA device",
    "this PyTorch has a GPU",
    "uses the emulated driver by itself",
    "only the emulated driver fails on demand",
    "only the emulated driver counts its calls",
    "this processor has all that Sapphire Rapids has",
    # not installed by `make setup`, or only if there is a package for this machine
    "needs the Python package cupy",
    "needs the Python package basedpyright",
    "needs ptxas, of the CUDA toolkit",
    "needs nvcc, of the CUDA toolkit",
    "needs NVRTC, of the CUDA toolkit or the Python package nvidia-cuda-nvrtc",
    "needs gdb",
    "needs libclc, of the Debian package libclc-22",
    # the user, the system and the Python
    "root may write everywhere",
    "Linux without huge pages",
    "the compiler of PyTorch links nothing in a folder with a space in its name",
    "Python keeps the text of -c from 3.13 on",
    "Python 3.10 reads no TOML",
}
COUNTED = {
    "thread 0 uses the other array": 2,
}


def complaints(report):
    skipped = Counter(test["reason"] for test in report.values() if test["outcome"] == "skipped")
    for reason, count in sorted(skipped.items()):
        if reason not in ANY_NUMBER and count > COUNTED.get(reason, 0):
            yield f"{count} tests are skipped because '{reason}'; {COUNTED.get(reason, 0)} are allowed:"
            yield from (f"    {name}" for name, test in report.items() if test["reason"] == reason)


def main():
    wrong = list(complaints(run_report.load(sys.argv[1:])))
    print("\n".join(wrong), end="\n" if wrong else "")
    if wrong:
        print("tools/checks/check_skips.py has the register of reasons", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

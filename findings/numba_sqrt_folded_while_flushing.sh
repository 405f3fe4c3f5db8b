#!/usr/bin/env bash
# Numba 0.68.1 (LLVM 22.1) with PyTorch 2.13.0, CPU: the square root of a constant depends on the thread that compiles.
#
# Guess before looking: `math.sqrt(1e-310)` in a compiled function is 1.0e-155, whoever compiled it. The compiler's own
# arithmetic is in software, and torch.set_flush_denormal(True) concerns operations that the thread executes.
# Seen: a function compiled while the thread flushes subnormals returns 0.0 for ever, also after
# torch.set_flush_denormal(False). The same function compiled without the mode returns 1.0e-155. LLVM folds the square
# root of a constant by the host's instruction, which takes the subnormal operand as 0; no exception flag that LLVM
# looks at is raised. A product of such a constant is folded in software, and is right.
#
# Fails if that changes. Needs python3 (3.10 to 3.13) on x86-64.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "numba==0.68.1" "numpy==2.4.6" "torch==2.13.0"
cat >"$folder/fold.py" <<'PYTHON'
import math

import numba
import numpy as np
import torch


def root():
    return math.sqrt(1e-310)


def product():
    return np.float64(1e-310) * 1.0


found = {}
for flushes in (True, False):
    assert torch.set_flush_denormal(flushes)
    functions = [numba.njit(function) for function in (root, product)]
    for function in functions:
        function()
    torch.set_flush_denormal(False)
    found[flushes] = [function() for function in functions]
    print(f"compiled with flush_denormal={flushes}: sqrt(1e-310) = {found[flushes][0]}, 1e-310 * 1 = {found[flushes][1]}")
print(f"expected of both, numba {numba.__version__}: sqrt(1e-310) = {math.sqrt(1e-310)}")
np.testing.assert_allclose(found[False][0], math.sqrt(1e-310), rtol=1e-12)
assert found[True][1] == found[False][1] == 1e-310, "this has changed"
assert found[True][0] == 0.0, "this has changed"
PYTHON
"$folder/venv/bin/python" "$folder/fold.py"

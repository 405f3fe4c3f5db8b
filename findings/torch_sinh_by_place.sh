#!/usr/bin/env bash
# PyTorch 2.13.0, CPU: sinh and cosh of one float64 tensor differ by the place of an element.
#
# Guess before looking: elements with equal arguments have equal results, and sinh(710.4) = 1.66e308 is a number, since
# the largest float64 is 1.80e308.
# Seen: of 11 equal elements the first 8 are infinite and the last 3 are 1.66e308 (with AVX2; of 19 the first 16 with
# AVX-512). The first 8 go through a vector routine that is infinite from about 710 on, the rest of the tensor through
# the C library. A tensor of 7 elements has no infinity. NumPy gives 1.66e308 everywhere.
#
# Fails if that changes. Needs python3 (3.10 to 3.13) and a processor with AVX2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "torch==2.13.0" "numpy==2.3.5"
ATEN_CPU_CAPABILITY=avx2 "$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import torch

argument = 710.4
exact = {"sinh": np.sinh(argument), "cosh": np.cosh(argument)}
for name, expected in exact.items():
    print(f"{name}({argument}): expected {expected:.4e} in every element; torch {torch.__version__}:")
    for count in (7, 11):
        found = getattr(torch, name)(torch.full((count,), argument, dtype=torch.float64))
        infinite = torch.isinf(found).tolist()
        print(f"    {count} elements: {sum(infinite)} are infinite, the others {found[~torch.isinf(found)][:1].tolist()}")
        assert np.isfinite(expected)
        assert infinite == [count == 11 and place < 8 for place in range(count)], "this has changed"
        np.testing.assert_allclose(found[-1].item(), expected, rtol=1e-12)
PYTHON

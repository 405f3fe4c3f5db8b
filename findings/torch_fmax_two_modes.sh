#!/usr/bin/env bash
# PyTorch 2.13.0, CPU: forward and reverse mode of fmax and of atan2 are not transposes of each other.
#
# Guess before looking: whatever subgradient a library takes at a tie, jvp() and vjp() are transposes of each other:
# <u, J v> = <J'u, v>. Tests of gradients by dot products, and conjugate gradients with both modes, count on it.
# Seen: at x = y, the gradient of fmax goes to x, and its tangent comes from y. So for v = (1, 0) and u = 1
# <u, J v> = 0 and <J'u, v> = 1. fmin takes x in both modes; maximum() and minimum() give a half to each. At (0, 0) the
# gradient of atan2 is 0, its tangent NaN. Of 70 further functions at ties and zeros, one more (lp_pool1d of zeros) has
# a gradient of 0 and a tangent of NaN.
#
# Fails if that changes. Needs python3 (3.10 to 3.13).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "torch==2.13.0" "numpy==2.4.6"
cat >"$folder/modes.py" <<'PYTHON'
import math

import torch

tie = (torch.tensor(1.0, dtype=torch.float64),) * 2
zero = (torch.tensor(0.0, dtype=torch.float64),) * 2
directions = [tuple(torch.tensor(v, dtype=torch.float64) for v in pair) for pair in ((1.0, 0.0), (0.0, 1.0))]


def jacobians(function, point):
    """The row of derivatives by (x, y): from forward mode, and from reverse mode."""
    forward = [torch.func.jvp(function, point, direction)[1].item() for direction in directions]
    _, pullback = torch.func.vjp(function, *point)
    return forward, [one.item() for one in pullback(torch.tensor(1.0, dtype=torch.float64))]


print(f"torch {torch.__version__}: derivatives by (x, y); expected: the same row in both modes")
for name, point in (("maximum", tie), ("minimum", tie), ("fmax", tie), ("fmin", tie), ("atan2", zero)):
    forward, reverse = jacobians(getattr(torch, name), point)
    print(f"    {name}({point[0]:g}, {point[1]:g}): forward {forward}, reverse {reverse}")
    if name in ("maximum", "minimum"):
        assert forward == reverse == [0.5, 0.5]
    elif name == "atan2":
        assert all(map(math.isnan, forward)) and reverse == [0.0, 0.0], "this has changed"
    elif name == "fmin":
        assert forward == reverse == [1.0, 0.0], "this has changed"
    else:
        assert (forward, reverse) == ([0.0, 1.0], [1.0, 0.0]), "this has changed"
PYTHON
"$folder/venv/bin/python" "$folder/modes.py"

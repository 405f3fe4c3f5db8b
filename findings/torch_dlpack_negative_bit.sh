#!/usr/bin/env bash
# PyTorch 2.13.0 to NumPy 2.4.6 by DLPack, CPU: the imaginary part of a conjugate arrives with the wrong sign.
#
# Guess before looking: z.conj().imag is a view that PyTorch negates lazily. Its DLPack export raises, as it does for
# z.conj() ("Can't export tensors with the conjugate bit set") and as Tensor.numpy() does for both; or the numbers are
# right.
# Seen: numpy.from_dlpack(z.conj().imag) shares the memory and has +1, +2, +3 where PyTorch has -1, -2, -3, without a
# word. resolve_neg() first gives the right numbers. torch.from_dlpack() of the same view loses the sign, too.
#
# Fails if that changes. Needs python3 (3.11 to 3.13).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "torch==2.13.0" "numpy==2.4.6"
cat >"$folder/negative.py" <<'PYTHON'
import numpy as np
import torch

z = torch.tensor([1 + 1j, 2 + 2j, 3 + 3j], dtype=torch.complex64)
view = z.conj().imag
assert view.is_neg() and view.tolist() == [-1.0, -2.0, -3.0]


def refusal(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).split('.')[0]}"
    return None


print(f"torch {torch.__version__}, numpy {np.__version__}; the tensor: {view.tolist()}")
print("    numpy.from_dlpack(z.conj()):", refusal(lambda: np.from_dlpack(z.conj())))
print("    z.conj().imag.numpy():", refusal(view.numpy))
found = {
    "numpy.from_dlpack(z.conj().imag)": np.from_dlpack(view).tolist(),
    "torch.from_dlpack(z.conj().imag)": torch.from_dlpack(view).tolist(),
    "numpy.from_dlpack(z.conj().imag.resolve_neg())": np.from_dlpack(view.resolve_neg()).tolist(),
}
for call, numbers in found.items():
    print(f"    {call}: {numbers}; expected {view.tolist()}, or an error")
assert refusal(lambda: np.from_dlpack(z.conj())) and refusal(view.numpy), "this has changed"
assert list(found.values()) == [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]], "this has changed"
PYTHON
"$folder/venv/bin/python" "$folder/negative.py"

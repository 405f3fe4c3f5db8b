#!/usr/bin/env bash
# Installs a wheel into a clean virtual environment with nothing but NumPy, and uses it there.
#
#     tools/release/test_wheel.sh dist/weft_lang-….whl      (PYTHON=python3.12 for a wheel of that Python)
set -euo pipefail
wheel=$(realpath "$1")
PYTHON=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$PYTHON" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "$wheel"
# Away from the sources, and with a cache of its own.
cd "$folder"
export WARP_CACHE_PATH=$folder/cache
unset PYTHONPATH LD_LIBRARY_PATH

installed=$("$folder/venv/bin/pip" list --format=freeze | sed 's/==.*//' | grep -vxE 'pip|setuptools|wheel' | sort | tr '\n' ' ')
[ "$installed" = "numpy weft-lang " ] || { echo "test_wheel: NumPy was to be all that is needed; got: $installed" >&2; exit 1; }

venv/bin/python -m warp
devices=$(WARP_CUDA_DRIVER=emulated venv/bin/python -m warp)
grep -q "cuda:1: Weft emulated device" <<<"$devices" || { echo "test_wheel: no emulated CUDA device: $devices" >&2; exit 1; }
cat >smoke.py <<'PYTHON_CODE'
import numpy as np

import warp as wp


@wp.kernel
def smoke(x: wp.array(dtype=wp.vec3), angle: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.length(x[i]) + wp.sin(angle * float(i))


points = np.random.default_rng(0).random((1000, 3), dtype=np.float32)
expected = np.linalg.norm(points, axis=1) + np.sin(0.5 * np.arange(1000))
for device in ("cpu", "cuda:0"):  # the emulated one
    y = wp.zeros(1000, dtype=float, device=device)
    wp.launch(smoke, dim=1000, inputs=[wp.array(points, dtype=wp.vec3, device=device), 0.5], outputs=[y], device=device)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-5)
    print(f"smoke kernel on {device}: right")
PYTHON_CODE
WARP_CUDA_DRIVER=emulated venv/bin/python smoke.py

# Editors and type checkers find the stub beside the module.
venv/bin/python - <<'PYTHON_CODE'
from pathlib import Path

import warp as wp

folder = Path(wp.__file__).parent
assert (folder / "py.typed").exists() and "def dot(" in (folder / "__init__.pyi").read_text()
PYTHON_CODE

# The examples write pictures, and say in one line what to install for that.
venv/bin/pip install --quiet "$wheel[examples]"
venv/bin/python -m warp.examples.mandelbrot
echo "test_wheel: $(basename "$wheel") works"

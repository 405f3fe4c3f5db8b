#!/usr/bin/env bash
# `make test-interop-old`: the programs of the seed documents of 2024 as they are printed, which newer releases of JAX do not run. JAX 0.6.2 is
# the last one that has all they need: shard_map(check_rep=...) in jax.experimental, and jax.dlpack.to_dlpack. It is there
# for Python 3.10 to 3.13. Its environment has the Python of .venv, so that the same build serves both.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-interop-old
wanted="jax==0.6.2 jaxlib==0.6.2 numpy==2.2.6"

python=$(.venv/bin/python -c 'import sys; print(sys.version)')
if [ "$(cat $venv/weft-requirements.txt 2> /dev/null)" != "$python $wanted" ]; then
    .venv/bin/python -m venv --clear $venv
    # shellcheck disable=SC2086 # several packages
    $venv/bin/python -m pip install --quiet $wanted
    echo "$python $wanted" > $venv/weft-requirements.txt
fi
exec .venv/bin/python -m pytest -q tests/documents/test_old_jax.py

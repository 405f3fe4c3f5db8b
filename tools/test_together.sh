#!/usr/bin/env bash
# `make test-together`: everything compiles where there is no ccache, too, that is with the files of a room together. Names
# that two of them use show only here. Without optimisation: nothing of it is run.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
build=${BUILD:-build}/together

[ -f "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
    -DPython_EXECUTABLE="$PWD/.venv/bin/python" -DWEFT_TOGETHER=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O0"
ninja -C "$build" --quiet

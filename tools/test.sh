#!/usr/bin/env bash
# `make test`: every check that must hold before a commit. All of them run even if one fails; pytest comes last, so that
# its summary is the last line.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
failed=()

step() {
    local name=$1
    shift
    echo "== $name"
    "$@" || failed+=("$name")
}

step "C++ tests" ctest --test-dir "${BUILD:-build}" --output-on-failure --no-tests=error -j 2
step "layers" python tools/check_layers.py
step "status" python tools/check_status.py
step "ruff" ruff check --quiet .
step "Python tests" python -m pytest -q --durations=5

if ((${#failed[@]})); then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi

#!/usr/bin/env bash
# `make check`: `make test`, and the C++ tests once more with the sanitizers.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()

tools/test.sh || failed+=("tests")
echo "== sanitizers"
tools/test_sanitize.sh || failed+=("sanitizers")

if ((${#failed[@]})); then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi

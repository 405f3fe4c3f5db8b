#!/usr/bin/env bash
# `make check`: `make test`, and what takes longer: the form of the sources, the examples in the documents, the sanitizers.
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

sources() { git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h'; }

step "clang-format" xargs -0 clang-format --dry-run --Werror < <(sources)
step "ruff format" ruff format --check --quiet .
step "reference" python tools/gen_reference.py
step "documents" python tools/check_docs.py
step "sanitizers" tools/test_sanitize.sh
step "tests" tools/test.sh

if ((${#failed[@]})); then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi

#!/usr/bin/env bash
# `make quick`: the part of `make test` that says most in four minutes on two cores, from a warm build. All checks run
# even if one fails.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
export WARP_CUDA_DRIVER=none
. tools/steps.sh

sources() { git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h'; }

step "layers" python tools/checks/check_layers.py
step "clang-format" xargs -0 clang-format --dry-run --Werror < <(sources)
step "ruff" ruff check --quiet .
step "ruff format" ruff format --check --quiet .
step "prose" python tools/checks/check_prose.py
step "C++ tests" ctest --test-dir "${BUILD:-build}" --output-on-failure --no-tests=error -j 2
step "Python tests" python tools/run_tests.py --folders gradients language types arrays launches structs errors

finish

#!/usr/bin/env bash
# `make test`: every check that must hold on main. All of them run even if one fails. The Python tests leave a report in
# the build folder, from which the last two steps say what was skipped and what was shown.
#
# `make quick` (--quick) is the part of it that says most in four minutes on two cores, from a warm build.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
report="${BUILD:-build}/test-report.json"
export WARP_CUDA_DRIVER=none  # tests of a device name it
unset WEFT_DOCUMENTS           # tests of documents that are no part of the repository: make test-documents
. tools/steps.sh

sources() { git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h'; }

step "layers" python tools/checks/check_layers.py
step "clang-format" xargs -0 clang-format --dry-run --Werror < <(sources)
step "ruff" ruff check --quiet .
step "ruff format" ruff format --check --quiet .
step "prose" python tools/checks/check_prose.py
step "C++ tests" ctest --test-dir "${BUILD:-build}" --output-on-failure --no-tests=error -j 2
if [ "${1:-}" = --quick ]; then
    step "Python tests" python tools/run_tests.py --folders gradients language types arrays launches structs errors
    finish
    exit
fi
step "reference" python tools/generate/gen_reference.py --check
step "documents" python tools/checks/check_docs.py
rm -f "$report"
texts="${BUILD:-build}/test-ptx"
step "Python tests" python tools/run_tests.py --report "$report" --keep-ptx "$texts"
step "kernels through ptxas" python tools/gpu/assemble_kernels.py "$texts" --share 10
step "skips" python tools/checks/check_skips.py "$report"
step "status" python tools/checks/check_status.py "$report"

finish

#!/usr/bin/env bash
# `make test`: every check that must hold before a commit. All of them run even if one fails. The Python tests leave a
# report in the build folder, from which the last two steps say what was skipped and what was shown.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
report="${BUILD:-build}/test-report.json"
failed=()

step() {
    local name=$1
    shift
    echo "== $name"
    "$@" || failed+=("$name")
}

sources() { git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h'; }

step "layers" python tools/check_layers.py
step "clang-format" xargs -0 clang-format --dry-run --Werror < <(sources)
step "ruff" ruff check --quiet .
step "ruff format" ruff format --check --quiet .
step "reference" python tools/gen_reference.py --check
step "documents" python tools/check_docs.py
step "C++ tests" ctest --test-dir "${BUILD:-build}" --output-on-failure --no-tests=error -j 2
# Arrays, launches and gradients again, on a device whose memory the host cannot touch.
step "second device" python -m pytest -q --device cpu:protected \
    tests/python/test_{second_device,array_create,array_data,array_use,launch,commands,arithmetic,indexed,structs}.py \
    tests/python/test_{struct_lifetime,struct_methods,products,utils,kernel_arrays,references,overlap,optim}.py \
    tests/gradients/test_{tape,tape_use,atomics,tickets,scattered,kernels,nested,checkpoints,tangents,hessians}.py \
    tests/gradients/test_{autograd,verify,starts,operations,custom,augmented,second_derivatives}.py
# What is special about CUDA, and the same once more, on the emulated CUDA device.
emulated_cuda() {
    WARP_CUDA_DRIVER=emulated python -m pytest -q --device cuda:0 "$@"
}
step "emulated CUDA" emulated_cuda tests/python/test_{cuda,second_device,array_create,array_data,array_use,launch,commands}.py \
    tests/python/test_{arithmetic,indexed,structs,struct_lifetime,struct_methods,products,utils,kernel_arrays,references}.py \
    tests/python/test_{overlap,optim,large_vectors}.py \
    tests/gradients/test_{tape,tape_use,atomics,tickets,scattered,kernels,nested,tangents,hessians}.py \
    tests/gradients/test_{autograd,verify,starts,operations,custom,augmented,second_derivatives}.py
rm -f "$report"
step "Python tests" python -m pytest -q --durations=5 --report "$report"
step "skips" python tools/check_skips.py "$report"
step "status" python tools/check_status.py "$report"

if ((${#failed[@]})); then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi

#!/usr/bin/env bash
# `make test-long`: the tests that need minutes or gigabytes, and all kernels that the emulated CUDA device runs through
# NVIDIA's compiler, for the oldest processor that there is code for and for the one that the tests run on.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
build="${BUILD:-build}"
. tools/steps.sh

step "geometry" python -m pytest -q --large -m large tests/geometry
step "arrays of more than 2^31 elements" python -m pytest -q --large -m large tests/arrays/test_huge_arrays.py
step "builtins at many small and large arguments" python -m pytest -q --large -m large tests/gradients/test_special_table.py
WARP_CUDA_DRIVER=emulated step "every call of the driver fails" \
    python -m pytest -q --large -m large --device cuda:0 tests/cuda/test_failures.py tests/cuda/test_foreign_graphs.py
WARP_CUDA_DRIVER=emulated step "adjoints for every architecture, builtins with libclc" python -m pytest -q --large -m large \
    --device cuda:0 tests/cuda/test_machine_code.py tests/builtins/test_libraries_of_gpus.py
for arch in 75 90; do
    WEFT_EMULATED_ARCH=$arch step "suites on sm_$arch" \
        python tools/run_tests.py --long --only "emulated CUDA" --keep-ptx "$build/test-ptx-$arch"
done
step "suites with other numbers" python tools/run_tests.py --only "emulated CUDA" --other-numbers
step "kernels through ptxas" python tools/gpu/assemble_kernels.py --large "$build/test-ptx-75" "$build/test-ptx-90"

finish

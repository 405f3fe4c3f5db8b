#!/usr/bin/env bash
# `make test-sanitize`: the C++ tests under the address and undefined-behaviour sanitizers, and those of many threads under
# the thread sanitizer, each in a build of its own.
# The files of a room together, which takes half of the time; -O1 and line tables only: full debug information of LLVM's
# headers would take tens of gigabytes.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
build=${BUILD:-build}/sanitize

[ -f "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
    -DWEFT_SANITIZE=ON -DWEFT_TOGETHER=ON -DWEFT_BUILD_PYTHON=OFF -DWEFT_BUILD_LIBRARY=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1"
ninja -C "$build" --quiet
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
ctest --test-dir "$build" --output-on-failure --no-tests=error -j 2

threads=${BUILD:-build}/sanitize-threads
[ -f "$threads/build.ninja" ] || cmake -S . -B "$threads" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
    -DWEFT_SANITIZE_THREADS=ON -DWEFT_TOGETHER=ON -DWEFT_BUILD_PYTHON=OFF -DWEFT_BUILD_LIBRARY=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1"
ninja -C "$threads" --quiet test_runtime
TSAN_OPTIONS=halt_on_error=1:suppressions=$PWD/tools/thread_sanitizer.txt "$threads/test_runtime" --gtest_filter='*Threads*'

// From IR to a Binary for a target: codegen, LLVM's pass pipeline, an object file in memory; and the
// content-addressed disk cache in front of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "binary/binary.h"
#include "codegen/codegen.h"
#include "ir/ir.h"
#include "jit/native.h"

namespace weft::jit {

// The processor that this runs on, or that $WEFT_CPU names. Found once.
const Target& host_target();
// What emission depends on there.
codegen::TargetInfo describe(const Target& target);
// Those of GPUs that code can be compiled for, 90 for sm_90, ascending.
std::vector<int> cuda_architectures();

// How many states of one loop an adjoint may keep in a thread there (transform::AdjointOptions); empty where threads
// have stacks that grow.
std::optional<std::int64_t> stack_slots(const Target& target);

// Names of the processor's features that code for a CPU may use, beyond those that every machine of its kind has.
std::vector<std::string> required_features(const Target& target);

struct Options {
    Target target = host_target();
    codegen::Options codegen;
    int optimization_level = 3;
    NativeOptions native;
};

// Compiles a module of kernels (already through transform::run_pipeline). `key` goes into the Binary.
Binary compile(const ir::Module& module, const Options& options, const Digest& key);

// The LLVM IR before or after optimisation, or the assembly: for wp.inspect and tests.
enum class Listing { llvm, optimized_llvm, assembly };
std::string listing(const ir::Module& module, const Options& options, Listing which);

// Everything the machine code depends on: IR text without names, options, target CPU and features, compiler version.
Digest cache_key(const ir::Module& module, const Options& options);
Digest hash_bytes(std::string_view bytes);

}  // namespace weft::jit

// From IR to a Binary for a target: codegen, LLVM's pass pipeline, an object file in memory; and the content-addressed
// disk cache in front of it.
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

// The processor of this machine, or the one that $WEFT_CPU names. Determined once.
const Target& host_target();
// The properties of a target that emission depends on.
codegen::TargetInfo describe(const Target& target);
// GPU architectures that code can be compiled for, ascending; 90 is sm_90.
std::vector<int> cuda_architectures();

// The most states of one loop that an adjoint may keep in a thread (transform::AdjointOptions); empty if threads have
// growing stacks.
std::optional<std::int64_t> stack_slots(const Target& target);

struct Options {
    Target target = host_target();
    codegen::Options codegen;
    int optimization_level = 3;
    NativeOptions native;
};

// Compiles a module of kernels. Precondition: transform::run_pipeline has run over it. `key` goes into the Binary.
Binary compile(const ir::Module& module, const Options& options, const Digest& key);

// The LLVM IR before or after optimisation, or the assembly: for wp.inspect and tests.
enum class Listing { llvm, optimized_llvm, assembly };
std::string listing(const ir::Module& module, const Options& options, Listing which);

// Everything the machine code depends on: IR text without names, options, target CPU and features, compiler version.
Digest cache_key(const ir::Module& module, const Options& options);

}  // namespace weft::jit

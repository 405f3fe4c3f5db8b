// Kernels compiled ahead of time: the file that wp.compile_aot_module() writes and include/weft/program.h loads. Beside
// each Binary it holds all that a launch must know of the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "binary/binary.h"
#include "types/type.h"

namespace weft {

// A place in code for huge arrays that takes an extent as an int32 (transform::NarrowExtent).
struct BundledNarrow {
    std::int32_t parameter = -1, axis = -1;
};

struct BundledParameter {
    std::string name;
    Type type;
};

// A derivative of a kernel: its adjoint, for gradients of all its arrays of floats. Or the kernel itself, with the
// results of its atomics kept for the adjoint.
struct BundledDerived {
    // A parameter behind the kernel's own: its kind (ir::ImplicitParameter), and the parameter that it belongs to.
    struct Added {
        Type type;
        std::uint8_t kind = 0;
        std::int32_t of = -1;
    };
    // Of an adjoint: whether it reads an array as it was before its launch, as it was after it, and the arrays inside
    // its elements as they were before it.
    struct Reads {
        bool before = false, after = false, within = false;
    };

    Binary code;
    std::vector<Added> added;
    std::vector<Reads> reads;           // by parameter; empty for the kernel itself
    std::vector<BundledNarrow> narrow;  // of code for huge arrays
};

// The results of one atomic that a launch keeps: values in their order, by threads or in a log.
struct BundledAtomicResult {
    Type element;
    bool is_log = false;
};

struct BundledKernel {
    std::string name;
    std::vector<BundledParameter> parameters;
    Binary dense;                               // for arrays with packed rows that do not overlap
    Binary general;                             // for all others, with extents of 32 bits
    Binary huge;                                // for arrays with more than 2^31 - 1 elements along a dimension; empty
                                                // if that is the same as `general`
    std::vector<BundledNarrow> narrow;          // of `huge`
    std::vector<BundledDerived> adjoints;       // none, or the same three, the last one empty in the same case
    std::string no_adjoint;                     // the reason, if there are none
    std::vector<BundledAtomicResult> returned;  // results of atomics of the launch that the adjoints need
    std::vector<BundledDerived> recording;      // if they need any: the same three, which keep these results
};

struct Bundle {
    std::string name;  // of the module
    std::string triple;
    std::string processor;              // as LLVM calls it
    std::vector<std::string> features;  // features of the processor that the code may use
    std::vector<BundledKernel> kernels;
};

// As serialize(const Binary&). deserialize_bundle() throws UsageError on any damage.
std::vector<std::byte> serialize(const Bundle& bundle);
Bundle deserialize_bundle(const std::vector<std::byte>& bytes);

}  // namespace weft

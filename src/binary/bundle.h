// Kernels compiled ahead of time: the file that wp.compile_aot_module() writes and include/weft/program.h loads. It
// holds what a launch has to know of a kernel besides its Binary.
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

// What is derived from a kernel: its adjoint, for gradients of all its arrays of floats; or itself, keeping for the
// adjoint what its atomics return.
struct BundledDerived {
    // A parameter behind those of the kernel: what the launch shows in it (ir::ImplicitParameter), of which of these.
    struct Added {
        Type type;
        std::uint8_t kind = 0;
        std::int32_t of = -1;
    };
    // Of an adjoint: whether it looks at what an array held before the launch that it belongs to, and after it, and at
    // what arrays that lie in its elements held before it.
    struct Reads {
        bool before = false, after = false, within = false;
    };

    Binary code;
    std::vector<Added> added;
    std::vector<Reads> reads;           // by parameter; none of a kernel itself
    std::vector<BundledNarrow> narrow;  // of code for huge arrays
};

// What a launch keeps of its atomics: values in their order, by threads or in a log.
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
    std::vector<BundledDerived> adjoints;       // none, or the same three, the last in the same way
    std::string no_adjoint;                     // why there are none
    std::vector<BundledAtomicResult> returned;  // what the adjoints need of a launch
    std::vector<BundledDerived> recording;      // where they need any: the same three, which keep it
};

struct Bundle {
    std::string name;  // of the module
    std::string triple;
    std::string processor;              // as LLVM calls it
    std::vector<std::string> features;  // of the processor, that the code may use
    std::vector<BundledKernel> kernels;
};

// As serialize(const Binary&): deserialize_bundle throws UsageError on any damage.
std::vector<std::byte> serialize(const Bundle& bundle);
Bundle deserialize_bundle(const std::vector<std::byte>& bytes);

}  // namespace weft

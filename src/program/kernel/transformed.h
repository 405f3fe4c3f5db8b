// A kernel after the passes, before machine code: the facts that launches need, and the IR that code is made from. The
// listing, the adjoint and the launch all use it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "program/kernel/options.h"
#include "transform/analysis/extents.h"
#include "transform/analysis/privatised.h"
#include "types/layout.h"

namespace weft::program {

// An array in an argument block: a parameter, or in a struct.
struct BlockArray {
    std::int64_t offset;
    Type type;
    int parameter;
    bool is_parameter;  // not in a struct
    bool holds_arrays;  // in its elements
    int ndim;
    std::int64_t element_bytes;
};

// The array at an offset of an argument block.
inline const ArrayView& view_at(const std::byte* block, std::int64_t offset) {
    return *reinterpret_cast<const ArrayView*>(block + offset);
}
inline ArrayView& view_at(std::byte* block, std::int64_t offset) {
    return *reinterpret_cast<ArrayView*>(block + offset);
}

// The arrays of an argument block in order, including those in structs.
std::vector<BlockArray> block_arrays(const ArgumentLayout& layout, std::span<const Type> types);

// A query of a hash grid around points[tid], in an argument block (transform::OwnQuery).
struct GridQuery {
    std::int64_t id;      // offset of the grid's id
    std::int64_t points;  // offset of the array
    std::int64_t point;   // offset of the vector in an element
    Scalar scalar;
};

// The facts of a kernel for one set of PassOptions, independent of the device.
struct KernelFacts {
    KernelFacts() = default;
    KernelFacts(std::vector<Type> types, std::vector<ParameterEffects> effects);

    std::vector<Type> parameter_types;  // the user's, then those that the compiler added
    ArgumentLayout layout;
    std::vector<BlockArray> arrays;
    std::vector<ParameterEffects> effects;  // of an adjoint: those of the kernel that it belongs to
    std::vector<std::uint32_t> written;     // parameters that these call written, in any way
    bool reads_views = false;               // elements of some parameter hold arrays
    bool keeps_arrays = false;  // of some parameter: the launch must keep the targets of pointers in its memory alive
    // Its own code may learn the addresses of its arrays' gradients: it names them, passes arrays to the user's C++,
    // or keeps_arrays.
    bool gradients_escape = false;
    int tid_rank = 0;
    std::string location;                                    // of the user's definition: "path:line:column"
    std::vector<std::vector<int>> overwritten;               // transform::overwritten(), of the kernel itself
    std::vector<transform::NarrowExtent> narrow_extents;     // with PassProperties::huge
    std::vector<int> uncontended_parameters;                 // ir::Function::uncontended_parameters
    std::vector<ir::ImplicitParameter> implicit_parameters;  // the last parameters; -1 for one that is not used

    // If its threads may run in the order of a hash grid: the queries that gain by it.
    std::vector<GridQuery> grid_queries;
    bool grid_order_rounds = false;  // that order rounds sums of floats differently

    // The next two are of adjoints without tangents.
    std::vector<transform::Contents> contents;  // that it looks at, by parameter
    struct AtomicResult {
        Type element;
        bool is_log;
    };
    std::vector<AtomicResult> returned;  // results of atomics that the launch must keep; empty if none
    std::vector<transform::Scattered> scattered;
    std::vector<bool> adds_to_gradient;  // by parameter: whether the launch may add to it

    // The number of the user's parameters.
    std::size_t own_count() const { return parameter_types.size() - implicit_parameters.size(); }
};

struct TransformedKernel : KernelFacts {
    std::shared_ptr<const ir::Module> module;  // the kernel first
    double passes_ms = 0.0;
};

// Runs the passes on an analysed module. Throws CompileError, at the user's line, if the program has no derivative.
TransformedKernel transform_kernel(std::unique_ptr<ir::Module> module, const PassOptions& options);

// $WEFT_DUMP is a comma-separated list of stages: "sema", the name of any pass of transform/pipeline.cpp, "llvm",
// "optimized", "asm", or "all". Each is printed to stderr when it is reached.
bool is_dumped(std::string_view stage);
void dump(std::string_view stage, const std::string& kernel, const std::string& text);

}  // namespace weft::program

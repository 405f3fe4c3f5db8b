// Everything that decides the machine code of a kernel besides the kernel itself and the layout of its arrays
// (launch_layout.h): its options, those of wp.config, and the kind of its launch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "jit/jit.h"
#include "transform/adjoint/adjoint.h"
#include "transform/pipeline.h"

namespace weft::program {

// The options that passes on the IR depend on.
struct PassOptions {
    int launch_rank = 0;  // transform::fit_to_launch(); 0: as many as tid() has names
    bool debug = false;
    bool noalias = true;                // false: for launches whose arrays overlap
    bool distinct = true;               // false: for launches with arrays that show an element at several indices
    bool keeps_atomic_results = false;  // results of atomics are kept for the adjoint
    bool nan_check = false;             // the first write of a NaN or infinity is noted
    bool grid_order = false;            // threads in the order of a hash grid (grid_order.h)
    bool huge = false;                  // for launches with extents beyond 32 bits: finds casts of these to 32 bits
    bool neighbour_rows = false;        // transform::PipelineOptions::neighbour_rows
    bool keeps_calls = false;           // transform::PipelineOptions::keeps_calls
    // The adjoint in place of the kernel, for these gradients: one of transform::Gradient for each parameter.
    std::vector<transform::Gradient> gradients;
    std::vector<bool> numbers;  // parameters of that adjoint with gradients of their numbers; empty: none
    std::int64_t stack_bytes = transform::AdjointOptions().stack_bytes;
    std::optional<std::int64_t> stack_slots;  // transform::AdjointOptions::stack_slots, if the target asks for it
    // Forward mode, of the kernel or of that adjoint: the parameters with tangents.
    std::vector<bool> tangents;

    bool operator==(const PassOptions&) const = default;
};

// The further options that code generation depends on.
struct CodeOptions {
    Target target = jit::host_target();
    bool notes_accesses = false;  // codegen::Options::notes_accesses
    bool fast_math = false;
    bool fuse_fp = true;
    bool line_info = false;
    int optimization_level = 3;
    int lanes = 0;
    bool short_rows = false;         // codegen::Options::short_rows
    bool dense = true;               // false: for launches with strided arrays
    bool null_arrays = false;        // for launches that pass None for an array
    bool private_gradients = false;  // of an adjoint: workers have gradients of their own (runtime/executable.h)
    bool serial = false;             // one lane; launches run it on one CPU thread
    bool huge = false;               // codegen::Options::huge; one lane
    // codegen::Options, the same
    int most_threads = 0, least_blocks = 0, max_registers = 0;
    std::optional<bool> deterministic;  // KernelOptions::deterministic
    int cluster = 1;                    // KernelOptions::cluster
    bool cache = true;
    std::filesystem::path cache_folder;  // empty: jit::cache_folder() chooses
    std::string host_compiler;           // of functions in C++; empty: the first that is found

    bool operator==(const CodeOptions&) const = default;
};

struct CompileOptions {
    PassOptions passes;
    CodeOptions code;

    bool operator==(const CompileOptions&) const = default;
};

// Options of @wp.kernel and of its module; an empty one leaves the choice to wp.config.
struct KernelOptions {
    std::optional<bool> debug, fast_math, fuse_fp, line_info;
    std::optional<int> optimization_level, max_unroll;
    std::optional<int> lanes;                // threads per vector; 1 is the scalar code
    int most_threads = 0, least_blocks = 0;  // launch_bounds, for CUDA devices; 0: not given
    int max_registers = 0;                   // of a thread on CUDA devices; 0: the driver chooses
    int cluster = 1;                         // blocks of a cluster, for CUDA devices
    bool external_parameters = false;        // entry_point_abi, which CUDA devices do not have
    std::optional<bool> deterministic;       // settings().deterministic
    bool enable_backward = true;
};

// The properties that a launch asks code for before the layout of its arrays is known.
struct Variant {
    bool debug = false, fast_math = false, line_info = false;
    bool keeps_atomic_results = false;  // results of its atomics are kept for its adjoint
    bool nan_check = false;             // the first write of a NaN or infinity is noted
    bool private_gradients = false;     // adjoints only: scattered gradients are of one worker
    bool nulls = false;                 // some array is None or empty
    bool short_rows = false;            // codegen::Options::short_rows
    bool single = false;                // for a launch of one thread: not in lanes
    bool serial = false;                // one thread after the other
    bool grid_order = false;            // PassOptions::grid_order
    bool notes_accesses = false;        // finds races, and reads of memory that was never written; with `debug`
    int launch_rank = 0;                // transform::fit_to_launch()
    int gpu = 0;                        // one more than the number of its CUDA device; 0: for CPUs

    static constexpr int kGpuShift = 16;  // of `gpu`, the last part of the index
    std::size_t index() const {
        return debug | fast_math << 1 | line_info << 2 | keeps_atomic_results << 3 | nan_check << 4 |
               private_gradients << 5 | nulls << 6 | short_rows << 7 | single << 8 | serial << 9 | grid_order << 10 |
               notes_accesses << 11 | launch_rank << 12 | gpu << kGpuShift;
    }
};

// The kernel itself if both are empty; else its adjoint, forward mode, or forward mode of the adjoint.
struct Derivation {
    std::vector<transform::Gradient> gradients;  // one for each parameter
    std::vector<bool> tangents;                  // by parameter: whether it has one
    std::vector<bool> numbers = {};              // PassOptions::numbers

    auto operator<=>(const Derivation&) const = default;
};

}  // namespace weft::program

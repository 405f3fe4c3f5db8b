// The hall: kernels with their options on one side, executables on the other. A Kernel is compiled at its first launch
// on a device, from the disk cache where it can be.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "jit/jit.h"
#include "runtime/cpu/executable.h"
#include "runtime/device.h"
#include "transform/adjoint/adjoint.h"
#include "transform/jvp/jvp.h"
#include "transform/pipeline.h"
#include "transform/vectorize/combined.h"
#include "types/layout.h"

namespace weft::program {

struct CompileOptions {
    bool debug = false;
    bool fast_math = false;
    bool line_info = false;
    bool cache = true;
    int optimization_level = 3;
    int lanes = 0;
    bool short_rows = false;   // codegen::Options::short_rows
    bool dense = true;         // false: for launches with strided arrays
    bool noalias = true;       // false: for launches whose arrays overlap
    bool null_arrays = false;  // for launches that pass None for an array
    bool distinct = true;      // false: for launches with arrays that show an element at several indices
    // The adjoint in place of the kernel, for these gradients: one of transform::Gradient for each parameter.
    std::vector<transform::Gradient> gradients;
    int launch_rank = 0;
    std::int64_t trail_bytes = transform::AdjointOptions().trail_bytes;
    bool record = false;  // keep what atomics give, for the adjoint
    bool finite = false;  // note who writes what is not finite; one lane
    // Of an adjoint: each worker runs it with scattered gradients of its own (program/own_gradients.h).
    bool exclusive = false;
    bool serial = false;  // one lane; launches run it on one CPU thread
    // Forward mode, of the kernel or of that adjoint: which parameters have tangents.
    std::vector<bool> tangents;
    std::filesystem::path cache_folder;  // empty: jit::cache_folder() chooses
    std::string host_compiler;           // of functions in C++; empty: one is looked for

    bool operator==(const CompileOptions&) const = default;
};

// An array in an argument block: by itself or in a struct.
struct ArrayPlace {
    std::int64_t offset;
    Type type;
    int parameter;
};

// How long one thread takes, in nanoseconds, as launches measure it; 0 before the first.
class MeasuredCost {
public:
    MeasuredCost() = default;
    MeasuredCost(const MeasuredCost& other) : ns_(other.get()) {}
    MeasuredCost& operator=(const MeasuredCost& other) {
        set(other.get());
        return *this;
    }
    double get() const { return ns_.load(std::memory_order_relaxed); }
    void set(double ns) { ns_.store(ns, std::memory_order_relaxed); }

private:
    std::atomic<double> ns_{0.0};
};

// One kernel ready to run: entry point, argument layout, and the plan that launches follow.
struct CompiledKernel {
    std::shared_ptr<runtime::Executable> executable;
    KernelEntryPoint entry = nullptr;
    KernelEntry description;
    std::vector<std::string> remarks;          // of the description, with the lines that the kernel has now
    std::shared_ptr<const ir::Module> module;  // of code that checks: what a fault is explained by
    std::vector<Type> parameter_types;
    std::vector<ir::ParameterEffects> effects;  // of an adjoint: those of the kernel that it belongs to
    std::vector<std::vector<int>> overwritten;  // transform::overwritten(), of the same kernel
    std::vector<int> own_gradients;             // of which parameters each worker has its own (own_gradients.h)
    std::vector<ir::Extra> extras;              // the last parameters; -1 for one that is not used
    bool serial = false;        // one thread after the other
    bool keeps_arrays = false;  // of some parameter: the launch must keep alive what its memory points to afterwards
    mutable MeasuredCost cost_alone;    // in place of the estimate in the description
    ArgumentLayout layout;
    std::vector<ArrayPlace> arrays;
    double compile_ms = 0.0;
    enum class Cache { unused, found, stored, refused } cache = Cache::unused;  // refused: its folder cannot be written
};

// Analysed module (the kernel first) through transform, codegen and the cache.
std::shared_ptr<const CompiledKernel> compile(std::unique_ptr<ir::Module> module, const CompileOptions& options);

// What the adjoint that options.gradients ask for looks at.
struct AdjointReads {
    std::vector<transform::Contents> contents;  // by parameter
    // What the launch has to keep of its atomics; empty where nothing.
    struct Record {
        Type element;
        bool is_log;
    };
    std::vector<Record> records;
    std::vector<transform::Scattered> scattered;
    int tid_rank = 0;
};
AdjointReads adjoint_reads(std::unique_ptr<ir::Module> module, const CompileOptions& options);

}  // namespace weft::program

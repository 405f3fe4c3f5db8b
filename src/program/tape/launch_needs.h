// The facts of a launch that a tape needs before it runs: its writes, and the reads of its adjoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "program/kernel/grid.h"
#include "program/kernel/kernel.h"

namespace weft::program {

// Bits of one argument: it is an array and not None; it has a gradient; it leads to objects whose arrays have
// gradients.
enum : std::uint8_t { kIsArray = 1, kHasGradient = 2, kLeadsToGradient = 4 };

// All lists are by parameter.
struct LaunchNeeds {
    // The properties of a launch that these needs depend on; launches of a kernel with equal keys share them.
    struct Key {
        std::size_t variant;
        std::int64_t loop_bytes;
        bool overlapping;
        std::vector<std::uint8_t> arguments;

        bool operator==(const Key&) const = default;
    } key;

    std::vector<transform::Contents> contents;  // that the adjoint looks at
    std::vector<bool> reads;                    // the launch reads the array or arrays inside its elements
    std::vector<bool> writes, writes_within;    // it writes the array; arrays inside its elements
    // The axes of the grid whose extents the array must have, so that the launch overwrites all of it and does nothing
    // else with it. Empty if no such axes make that true.
    std::vector<std::vector<int>> overwritten;
    std::vector<transform::Gradient> gradients;       // that the adjoint computes
    std::vector<KernelFacts::AtomicResult> returned;  // results of atomics that the launch keeps
    int tid_rank = 0;
    bool has_adjoint = false;  // the launch writes something that may have a gradient
    bool is_left_out = false;  // enable_backward=False is the only reason that there is none
};

// For a launch with these arguments. `facts` are those of any code for it. Throws CompileError if an argument has a
// gradient and the program has no derivative.
std::shared_ptr<const LaunchNeeds> launch_needs(Kernel& kernel, const runtime::Device& device, const KernelFacts& facts,
                                                std::span<const std::int64_t> dims, const std::byte* block,
                                                std::span<const std::uint8_t> arguments);

// Whether such a launch overwrites all of the argument, and does nothing else with it.
bool overwrites(const LaunchNeeds& needs, std::size_t parameter, const ArrayView& view, const Grid& grid);

}  // namespace weft::program

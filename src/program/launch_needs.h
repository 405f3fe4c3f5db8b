// What a tape has to know of a launch before it runs: what it writes, and what its adjoint will look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "program/grid.h"
#include "program/kernel.h"

namespace weft::program {

// Of one argument, as bits: an array, and not None; it has a gradient; it leads to objects whose arrays have gradients.
enum : std::uint8_t { kIsArray = 1, kHasGradient = 2, kLeadsToGradient = 4 };

// The lists are by parameter.
struct LaunchNeeds {
    // What it was found out for; a kernel's launches that agree in it share one.
    struct Key {
        std::size_t variant;
        std::int64_t loop_bytes;
        bool overlapping;
        std::vector<std::uint8_t> arguments;

        bool operator==(const Key&) const = default;
    } key;

    std::vector<transform::Contents> contents;  // that the adjoint looks at
    std::vector<bool> reads;                    // the launch: the array, or what lies in its elements
    std::vector<bool> writes, writes_within;    // the array; arrays that lie in its elements
    // The axes of the grid of which the array has to have the extents, so that the launch overwrites all of it, and
    // does nothing else with it; empty where it does something else.
    std::vector<std::vector<int>> overwritten;
    std::vector<transform::Gradient> gradients;       // that the adjoint is for
    std::vector<KernelFacts::AtomicResult> returned;  // what the launch has to keep of its atomics
    int tid_rank = 0;
    bool has_adjoint = false;  // the launch writes something that may have a gradient
    bool is_left_out = false;  // there is none only because of enable_backward=False
};

// For a launch with these arguments. `facts` are those of any code for it. Throws CompileError where it has a gradient
// and the program has no derivative that could be computed here.
std::shared_ptr<const LaunchNeeds> launch_needs(Kernel& kernel, const runtime::Device& device, const KernelFacts& facts,
                                                std::span<const std::int64_t> dims, const std::byte* block,
                                                std::span<const std::uint8_t> arguments);

// Whether such a launch overwrites all of the argument, and does nothing else with it.
bool overwrites(const LaunchNeeds& needs, std::size_t parameter, const ArrayView& view, const Grid& grid);

}  // namespace weft::program

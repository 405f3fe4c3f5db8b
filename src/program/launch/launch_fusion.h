// Launches of a graph that run as one, a piece of their grid at a time: data that the first writes is still in the
// cache when the next one reads it.
#pragma once

#include <cstdint>
#include <span>

#include "program/kernel/compiled.h"
#include "program/kernel/grid.h"

namespace weft::program {

// A launch whose arguments stay as they are.
struct FixedLaunch {
    const CompiledKernel* kernel;
    const std::byte* block;
    const Grid* grid;
};

// Whether a launch may be fused with those before it, which may be fused with each other. The order of threads of
// different launches is then undefined. So memory that one writes and another touches must be the same array for both,
// with elements that are private to each thread. On small grids fusion does not pay.
bool may_fuse(const FixedLaunch& launch, std::span<const FixedLaunch> before);

// Threads of a piece, such that their data stays in the cache of a core.
std::int64_t fused_piece(std::span<const FixedLaunch> launches);

}  // namespace weft::program

// Launches of a graph that run as one, piece by piece of their grid: what the first writes is still in the cache when
// the next one reads it.
#pragma once

#include <cstdint>
#include <span>

#include "program/compiled.h"
#include "program/grid.h"

namespace weft::program {

// A launch whose arguments stay as they are.
struct FixedLaunch {
    const CompiledKernel* kernel;
    const std::byte* block;
    const Grid* grid;
};

// Whether a launch may join those before it, which may join each other: nobody can tell then in which order threads of
// different launches have run. That holds where memory that one of them writes and another one touches is the same
// array for both, of which each thread has elements to itself. It has to be worth it, too: on small grids it is not.
bool may_fuse(const FixedLaunch& launch, std::span<const FixedLaunch> before);

// How many threads a piece has, so that what they touch stays in the cache of a core.
std::int64_t fused_piece(std::span<const FixedLaunch> launches);

}  // namespace weft::program

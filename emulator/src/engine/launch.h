#pragma once
// A kernel with its grid and its parameters.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/code.h"

namespace weft::emulator {

struct Launch {
    const Program* program = nullptr;
    const CodeFunction* kernel = nullptr;
    uint32_t grid[3] = {1, 1, 1}, threads[3] = {1, 1, 1};
    uint32_t dynamic_shared = 0;
    std::vector<std::byte> parameters;
    uint64_t seed = 0;
    uint32_t number = 0;                // for the shadow memory
    int device = 0;                     // the executing device
    std::atomic<uint64_t> executed{0};  // instructions of warps
    uint64_t most_instructions = 0;     // of one warp of one block; 0: no limit
    std::atomic<bool> stopped{false};

    uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
    uint32_t block_threads() const { return threads[0] * threads[1] * threads[2]; }
};

}  // namespace weft::emulator

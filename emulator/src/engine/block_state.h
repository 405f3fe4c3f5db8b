#pragma once
// The state that the warps of a block share: the block's place in the grid, its shared memory, and arrivals at
// barriers.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/launch.h"
#include "memory/address_space.h"

namespace weft::emulator {

class BlockState {
public:
    explicit BlockState(Launch& launch);

    // Begins the block with this index: clears the shared memory and the barriers.
    void start(uint64_t linear);

    Launch& launch;
    uint32_t index[3] = {};
    uint64_t linear_index = 0;
    uint32_t barriers = 0;                  // completed so far
    std::array<uint32_t, 16> arrived = {};  // for each barrier, threads that arrived without waiting for it
    Allocation shared;

private:
    std::vector<std::byte> data_;
    std::vector<uint8_t> written_;
    std::unique_ptr<ShadowWord[]> words_;
};

}  // namespace weft::emulator

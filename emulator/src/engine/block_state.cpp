#include "engine/block_state.h"

#include <algorithm>
#include <cstring>

namespace weft::emulator {

BlockState::BlockState(Launch& launch) : launch(launch) {
    const uint64_t own = launch.kernel->shared_size;
    const uint64_t size = launch.dynamic_shared ? (own + 127) / 128 * 128 + launch.dynamic_shared : own;
    data_.resize((size + 127) / 64 * 64);
    written_.resize(size + 1);
    if (AddressSpace::instance().race_checks()) words_ = std::make_unique<ShadowWord[]>(size / 4 + 1);
    shared.size = size;
    shared.data = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(data_.data()) + 63) / 64 * 64);
    shared.written = written_.data();
    shared.words = words_.get();
}

void BlockState::start(uint64_t linear) {
    linear_index = linear;
    index[0] = uint32_t(linear % launch.grid[0]);
    index[1] = uint32_t(linear / launch.grid[0] % launch.grid[1]);
    index[2] = uint32_t(linear / launch.grid[0] / launch.grid[1]);
    barriers = 0;
    arrived.fill(0);
    std::fill(written_.begin(), written_.end(), uint8_t(0));
    if (words_) std::memset(static_cast<void*>(words_.get()), 0, (shared.size / 4 + 1) * sizeof(ShadowWord));
}

}  // namespace weft::emulator

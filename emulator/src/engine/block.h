#pragma once
// The threads of a block: the turns of its warps, and its barriers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/block_state.h"
#include "engine/deadline.h"
#include "engine/warp.h"

namespace weft::emulator {

class Block {
public:
    explicit Block(Launch& launch);
    ~Block();

    // Places the threads of one block of the launch at the kernel's first instruction.
    void start(uint64_t index);
    // Runs the threads to their end. True if it was suspended at the deadline; the next call continues. Throws Fault.
    bool go_on(const Deadline& deadline);

    const BlockState& state() const { return state_; }
    // The warp that ran last: at a fault, the one that caused it.
    const Warp* running() const { return running_; }

private:
    bool release_barriers();
    void release(uint32_t barrier, uint32_t value);
    uint32_t reduced(uint32_t barrier) const;
    [[noreturn]] void deadlock();
    bool is_over(const Deadline& deadline, uint64_t executed);

    BlockState state_;
    std::vector<std::unique_ptr<Warp>> warps_;
    std::vector<Warp*> round_;  // all warps in the order of their turns
    size_t left_in_round_ = 0;  // warps without a turn yet; they come first
    bool is_tired_ = false;     // whether a warp of the round was tired
    uint64_t random_ = 0;
    uint64_t unasked_ = 0;  // instructions since the last reading of the clock
    const Warp* running_ = nullptr;
};

}  // namespace weft::emulator

#pragma once
// The threads of a block, their shared memory and their barriers; and the launch that blocks belong to.
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/warp.h"

namespace weft::emulator {

struct Report {
    FaultKind kind;
    std::string text;
};

struct Launch {
    const Program* program = nullptr;
    const CodeFunction* kernel = nullptr;
    uint32_t grid[3] = {1, 1, 1}, threads[3] = {1, 1, 1};
    uint32_t dynamic_shared = 0;
    std::vector<std::byte> parameters;
    uint64_t seed = 0;
    uint32_t number = 0;                // for the shadow
    int device = 0;                     // where it runs
    std::atomic<uint64_t> executed{0};  // instructions of warps
    uint64_t most_instructions = 0;     // of one warp of one block; 0: no limit
    std::atomic<bool> stopped{false};

    uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
    uint32_t block_threads() const { return threads[0] * threads[1] * threads[2]; }
};

class Block {
public:
    explicit Block(Launch& launch);
    ~Block();

    // Runs one block of the launch to its end; throws Fault.
    void run(uint64_t index);

    Launch& launch() { return launch_; }
    const uint32_t* index() const { return index_; }
    Allocation& shared() { return shared_; }
    uint32_t barriers() const { return barriers_; }
    uint64_t linear_index() const { return linear_; }
    // The thread at fault: the warp that ran last.
    const Warp* running() const { return running_; }
    // Threads that came to a barrier without waiting for it.
    void arrive(uint32_t barrier, uint32_t threads);

private:
    bool release_barriers();
    void release(uint32_t barrier, uint32_t value);
    uint32_t reduced(uint32_t barrier) const;
    [[noreturn]] void deadlock();

    Launch& launch_;
    std::vector<std::unique_ptr<Warp>> warps_;
    std::vector<std::byte> shared_data_;
    std::vector<uint8_t> shared_written_;
    std::unique_ptr<ShadowWord[]> shared_words_;
    Allocation shared_;
    std::array<uint32_t, 16> arrived_ = {};
    uint32_t index_[3] = {};
    uint64_t linear_ = 0;
    uint32_t barriers_ = 0;
    const Warp* running_ = nullptr;
};

// Runs all blocks, on as many threads as there are cores. The report of the first fault, if there is one.
std::optional<Report> run_launch(Launch& launch);

}  // namespace weft::emulator

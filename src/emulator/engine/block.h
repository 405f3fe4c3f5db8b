#pragma once
// The threads of a block, their shared memory and their barriers; and the launch of the blocks.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/deadline.h"
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
    uint32_t number = 0;                // for the shadow memory
    int device = 0;                     // the executing device
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

    // Places the threads of one block of the launch at the kernel's first instruction.
    void start(uint64_t index);
    // Runs the threads to their end. True if it was suspended at the deadline; the next call continues. Throws Fault.
    bool go_on(const Deadline& deadline);

    Launch& launch() { return launch_; }
    const uint32_t* index() const { return index_; }
    Allocation& shared() { return shared_; }
    uint32_t barriers() const { return barriers_; }
    uint64_t linear_index() const { return linear_; }
    // The warp that ran last: at a fault, the one that caused it.
    const Warp* running() const { return running_; }
    // Counts threads that arrive at a barrier without waiting for it.
    void arrive(uint32_t barrier, uint32_t threads);

private:
    bool release_barriers();
    void release(uint32_t barrier, uint32_t value);
    uint32_t reduced(uint32_t barrier) const;
    [[noreturn]] void deadlock();
    bool is_over(const Deadline& deadline, uint64_t executed);

    Launch& launch_;
    std::vector<std::unique_ptr<Warp>> warps_;
    std::vector<Warp*> round_;  // all warps in the order of their turns
    size_t left_in_round_ = 0;  // warps without a turn yet; they come first
    bool is_tired_ = false;     // whether a warp of the round was tired
    uint64_t random_ = 0;
    uint64_t unasked_ = 0;  // instructions since the last reading of the clock
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

// A launch in progress: all blocks, on one thread per core.
class Execution {
public:
    explicit Execution(Launch& launch);

    // Runs to the end, or to the first fault. True if blocks were suspended at the deadline; the next call continues,
    // on any thread.
    bool go_on(const Deadline& deadline);
    // Of the first fault; empty if there is none.
    const std::optional<Report>& report() const { return report_; }

private:
    void work(const Deadline& deadline);
    std::unique_ptr<Block> take_left();
    void note(FaultKind kind, std::string text);

    Launch& launch_;
    uint64_t step_;  // between consecutive blocks: a shuffled order without a list
    std::atomic<uint64_t> next_{0};
    uint32_t numbering_;  // numbering() at the time when the launch got its number
    std::mutex mutex_;
    std::vector<std::unique_ptr<Block>> left_;  // suspended blocks, at most one for each thread
    std::optional<Report> report_;
};

// Runs all blocks to their end.
std::optional<Report> run_launch(Launch& launch);

}  // namespace weft::emulator

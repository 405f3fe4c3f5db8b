#pragma once
// The threads of a block, their shared memory and their barriers; and the launch that blocks belong to.
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

    // Makes the threads of one block of the launch stand at the kernel's first instruction.
    void start(uint64_t index);
    // Runs them to their end, or leaves them in the middle when the time has come: true, and the next call goes on.
    // Throws Fault.
    bool go_on(const Deadline& deadline);

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
    bool is_over(const Deadline& deadline, uint64_t executed);

    Launch& launch_;
    std::vector<std::unique_ptr<Warp>> warps_;
    std::vector<Warp*> round_;  // in the order in which they have their turns
    size_t left_in_round_ = 0;  // those that have not had theirs come first
    bool is_tired_ = false;     // some warp of the round was
    uint64_t random_ = 0;
    uint64_t unasked_ = 0;  // instructions since the clock was asked
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

// A launch on its way: all blocks, on as many threads as there are cores.
class Execution {
public:
    explicit Execution(Launch& launch);

    // Goes on to the end, or to the first fault; or leaves blocks in the middle when the time has come: true, and the
    // next call goes on, in whatever thread.
    bool go_on(const Deadline& deadline);
    // Of the first fault, if there is one.
    const std::optional<Report>& report() const { return report_; }

private:
    void work(const Deadline& deadline);
    std::unique_ptr<Block> take_left();
    void note(FaultKind kind, std::string text);

    Launch& launch_;
    uint64_t step_;  // from block to block: a shuffled order without a list
    std::atomic<uint64_t> next_{0};
    uint32_t numbering_;  // of launches, when this one got its number
    std::mutex mutex_;
    std::vector<std::unique_ptr<Block>> left_;  // in the middle; never more than there are threads
    std::optional<Report> report_;
};

// From the first block to the last.
std::optional<Report> run_launch(Launch& launch);

}  // namespace weft::emulator

#pragma once
// The execution of launches: their blocks on all cores, and the report of a fault.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/block.h"
#include "engine/deadline.h"
#include "engine/launch.h"
#include "memory/fault.h"

namespace weft::emulator {

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

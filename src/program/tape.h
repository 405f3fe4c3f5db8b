// A tape: what was recorded, in order, and the memory that going back will read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "program/tape_entry.h"
#include "program/tape_memory.h"

namespace weft::program {

class Tape {
public:
    // What is about to run. Where it fails, the entry is to be forgotten.
    void record(std::shared_ptr<TapeEntry> entry);
    void forget_last();

    // Through entry `index`.
    void backward(std::size_t index, std::span<const SuppliedGradient> supplied);

    const std::vector<std::shared_ptr<TapeEntry>>& entries() const { return entries_; }
    TapeMemory& memory() { return memory_; }
    void clear();

private:
    TapeEntry::Group written_after(std::size_t index) const;

    std::vector<std::shared_ptr<TapeEntry>> entries_;
    TapeMemory memory_;
};

}  // namespace weft::program

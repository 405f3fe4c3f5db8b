// A tape: its entries in order, and the memory that its backward pass will read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "program/tape/tape_entry.h"
#include "program/tape/tape_memory.h"

namespace weft::program {

class Tape {
public:
    // Records an entry that is about to run. If it fails, call forget_last().
    void record(std::shared_ptr<TapeEntry> entry);
    void forget_last();

    // Runs entry `index` backward; backward.h runs all of them.
    void reverse(std::size_t index, std::span<const SuppliedGradient> supplied);

    const std::vector<std::shared_ptr<TapeEntry>>& entries() const { return entries_; }
    TapeMemory& memory() { return memory_; }
    void clear();

private:
    TapeEntry::Group written_after(std::size_t index) const;

    std::vector<std::shared_ptr<TapeEntry>> entries_;
    TapeMemory memory_;
};

}  // namespace weft::program

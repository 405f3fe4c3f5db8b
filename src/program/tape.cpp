#include "program/tape.h"

#include <utility>

#include "support/error.h"

namespace weft::program {

void Tape::record(std::shared_ptr<TapeEntry> entry) {
    memory_.begin_entry();
    entry->record(memory_);
    entries_.push_back(std::move(entry));
}

void Tape::forget_last() {
    WEFT_CHECK(!entries_.empty(), "a tape has nothing to forget");
    entries_.pop_back();
    memory_.forget_entry();
}

void Tape::go_back(std::size_t index, std::span<const SuppliedGradient> supplied) {
    const auto launch = std::dynamic_pointer_cast<RecordedLaunch>(entries_[index]);
    WEFT_CHECK(launch, "this entry of a tape is no launch");
    launch->go_back(memory_, supplied, [&] { return written_after(index); });
}

TapeEntry::Group Tape::written_after(std::size_t index) const {
    TapeEntry::Group all;
    for (std::size_t i = index + 1; i < entries_.size(); ++i)
        for (const TapeEntry::Group& group : entries_[i]->written()) all.insert(all.end(), group.begin(), group.end());
    return all;
}

void Tape::clear() {
    entries_.clear();
    memory_.clear();
}

}  // namespace weft::program

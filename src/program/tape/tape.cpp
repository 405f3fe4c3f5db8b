#include "program/tape/tape.h"

#include <utility>

#include "support/error.h"

namespace weft::program {

TapeEntry::Group TapeEntry::may_start() const {
    Group all;
    for (const Group& group : written()) all.insert(all.end(), group.begin(), group.end());
    return all;
}

void Tape::record(std::shared_ptr<TapeEntry> entry) {
    memory_.begin_entry();
    entry->record(memory_);
    entries_.push_back(std::move(entry));
}

void Tape::forget_last() {
    WEFT_CHECK(!entries_.empty(), "a tape has nothing to forget");
    memory_.forget_entry();
    entries_.pop_back();
}

void Tape::reverse(std::size_t index, std::span<const SuppliedGradient> supplied) {
    const std::shared_ptr<TapeEntry> entry = entries_.at(index);  // it may outlive the tape's contents
    const std::function<TapeEntry::Group()> after = [&] { return written_after(index); };
    entry->backward({memory_, supplied, after});
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

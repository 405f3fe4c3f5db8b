#include "program/tape/tape_memory.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "program/host/host.h"
#include "runtime/bytes.h"
#include "support/error.h"
#include "support/recycled.h"

namespace weft::program {

template <typename Block>
static std::shared_ptr<Block> new_block() {
    return std::allocate_shared<Block>(Recycled<Block>());
}

std::vector<runtime::Array> keep_together(std::span<const runtime::Array* const> arrays) {
    const std::byte *low = nullptr, *high = nullptr;
    for (const runtime::Array* array : arrays) {
        const auto [begin, end] = array->extent();
        if (begin == end) continue;
        low = low ? std::min(low, begin) : begin;
        high = std::max(high, end);
    }
    runtime::BufferPtr buffer;
    std::vector<runtime::Array> copies;
    for (const runtime::Array* array : arrays) {
        if (!buffer) {
            buffer = runtime::allocate(high - low, *array->device);
            if (buffer->data) {
                without_host(high - low, [&] { runtime::copy_bytes(*array->device, buffer->data, low, high - low); });
                buffer->references.add_all(array->buffer->references, *buffer);
            }
        }
        runtime::Array copy = *array;
        copy.view.grad = nullptr;
        copy.buffer = buffer;
        if (array->size() > 0) copy.view.data = runtime::moved(array->view.data, low, buffer->data);
        copies.push_back(std::move(copy));
    }
    return copies;
}

SavedPrimal::SavedPrimal(const Variable& of) : of(&of) {
    std::tie(begin, end) = of.array.extent();
    buffer = begin == end ? nullptr : of.array.buffer.get();
}

void UncopiedPrimals::insert(std::size_t at, SavedPrimalPtr primal) {
    if (empty()) {
        one_ = std::move(primal);
        return;
    }
    if (one_) many_.push_back(std::move(one_));
    many_.insert(many_.begin() + static_cast<std::ptrdiff_t>(at), std::move(primal));
}

void UncopiedPrimals::erase(std::size_t first, std::size_t last) {
    if (first == last) return;
    one_.reset();
    if (!many_.empty())
        many_.erase(many_.begin() + static_cast<std::ptrdiff_t>(first),
                    many_.begin() + static_cast<std::ptrdiff_t>(last));
}

// ---- memories ----

// The slot of a buffer, or the free one that it would get.
std::size_t TapeMemory::Memories::slot_of(const runtime::Buffer* buffer) const {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
    std::size_t at = (reinterpret_cast<std::uintptr_t>(buffer) * kGolden) >> shift_;
    while (slots_[at] && slots_[at]->buffer.get() != buffer) at = (at + 1) & (slots_.size() - 1);
    return at;
}

TapeMemory::Memory* TapeMemory::Memories::find(const runtime::Buffer* buffer) const {
    return slots_.empty() ? nullptr : slots_[slot_of(buffer)];
}

TapeMemory::Memory& TapeMemory::Memories::of(const runtime::BufferPtr& buffer) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Memory*& found = slots_[slot_of(buffer.get())];
    if (found) return *found;
    if (count_ == blocks_.size() * kBlock) blocks_.push_back(new_block<std::array<Memory, kBlock>>());
    found = &(*blocks_[count_ / kBlock])[count_ % kBlock];
    ++count_;
    found->buffer = buffer;
    return *found;
}

void TapeMemory::Memories::grow() {
    slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), nullptr);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (std::size_t i = 0; i < count_; ++i) {
        Memory& memory = (*blocks_[i / kBlock])[i % kBlock];
        slots_[slot_of(memory.buffer.get())] = &memory;
    }
}

void TapeMemory::Memories::clear() { *this = Memories(); }

// ---- recording ----

void TapeMemory::begin_entry() {
    ++entry_;
    may_overlap_ = false;
    added_.clear();
    counted_.clear();
}

// A block lives as long as one of its primals.
struct TapeMemory::PrimalBlock {
    std::array<std::optional<SavedPrimal>, kPrimalsTogether> primals;
    std::size_t count = 0;
};

SavedPrimalPtr TapeMemory::make(const Variable& of) {
    if (!block_ || block_->count == kPrimalsTogether) block_ = new_block<PrimalBlock>();
    SavedPrimal& made = block_->primals[block_->count++].emplace(of);
    return {block_, &made};
}

void TapeMemory::wait(Memory& memory, const SavedPrimalPtr& primal) {
    const std::span<SavedPrimalPtr> waiting = memory.waiting.all();
    const auto at =
        std::ranges::upper_bound(waiting, primal->begin, {}, [](const SavedPrimalPtr& one) { return one->begin; });
    memory.longest = std::max(memory.longest, primal->end - primal->begin);
    memory.waiting.insert(static_cast<std::size_t>(at - waiting.begin()), primal);
    added_.push_back(primal.get());
}

SavedPrimalPtr TapeMemory::save(const Variable& of) {
    if (!of.array.buffer) return make(of);
    Memory& memory = memories_.of(of.array.buffer);
    if (std::exchange(memory.entry, entry_) == entry_) may_overlap_ = true;
    const std::byte* const begin = of.array.extent().first;
    const std::span<SavedPrimalPtr> waiting = memory.waiting.all();
    auto at = std::ranges::lower_bound(waiting, begin, {}, [](const SavedPrimalPtr& one) { return one->begin; });
    for (; at != waiting.end() && (*at)->begin == begin; ++at)
        if ((*at)->of == &of && !(*at)->together) return *at;
    SavedPrimalPtr made = make(of);
    if (made->buffer) wait(memory, made);
    return made;
}

void TapeMemory::save(const SavedPrimalPtr& made) {
    if (made->buffer) wait(memories_.of(made->of->array.buffer), made);
}

void TapeMemory::join_overlapping(std::span<SavedPrimalPtr*> primals) {
    const auto key = [](const SavedPrimalPtr* primal) {
        return std::tuple((*primal)->buffer, (*primal)->begin, primal->get());
    };
    std::ranges::sort(primals, {}, key);
    for (std::size_t first = 0; first < primals.size();) {
        const SavedPrimal& start = **primals[first];
        std::size_t last = first + 1;
        bool is_one = true;
        for (const std::byte* end = start.end;
             last < primals.size() && (*primals[last])->buffer == start.buffer && (*primals[last])->begin < end;
             ++last) {
            end = std::max(end, (*primals[last])->end);
            is_one &= primals[last]->get() == &start;
        }
        if (!is_one && start.buffer) {
            auto together = std::make_shared<std::vector<SavedPrimal*>>();
            SavedPrimalPtr before, made;
            for (; first < last; ++first) {
                SavedPrimalPtr& primal = *primals[first];
                if (primal != before) {  // the same one twice stays one
                    before = made = primal;
                    if (std::ranges::find(added_, primal.get()) ==
                        added_.end()) {  // an earlier entry's, which stays alone
                        made = make(*primal->of);
                        this->save(made);
                    }
                    made->together = together;
                    together->push_back(made.get());
                }
                primal = made;
            }
        }
        first = last;
    }
}

std::vector<SavedPrimalPtr> TapeMemory::take(Memory& memory, const std::byte* begin, const std::byte* end) {
    // As integers: the difference need not be a valid address.
    const auto address = [](const std::byte* at) {
        return static_cast<std::int64_t>(std::bit_cast<std::uintptr_t>(at));
    };
    const auto of_begin = [&](const SavedPrimalPtr& primal) { return address(primal->begin); };
    const std::span<SavedPrimalPtr> waiting = memory.waiting.all();
    const auto first = std::ranges::upper_bound(waiting, address(begin) - memory.longest, {}, of_begin);
    const auto last = std::ranges::lower_bound(waiting, address(end), {}, of_begin);
    if (first >= last) return {};
    const auto stays = [&](const SavedPrimalPtr& primal) { return begin >= primal->end; };
    const auto found = std::stable_partition(first, last, stays);
    std::vector<SavedPrimalPtr> taken(std::make_move_iterator(found), std::make_move_iterator(last));
    memory.waiting.erase(static_cast<std::size_t>(found - waiting.begin()),
                         static_cast<std::size_t>(last - waiting.begin()));
    return taken;
}

void TapeMemory::keep(std::span<const SavedPrimalPtr> primals) {
    std::vector<const runtime::Array*> arrays;
    const std::byte *begin = primals.front()->begin, *end = begin;
    for (const SavedPrimalPtr& primal : primals) {
        arrays.push_back(&primal->of->array);
        begin = std::min(begin, primal->begin);
        end = std::max(end, primal->end);
    }
    std::vector<runtime::Array> copies = keep_together(arrays);
    // This entry may have counted writes that are still to come.
    const auto is_of_this = [&](const auto& counted) { return counted.first->buffer.get() == primals.front()->buffer; };
    const std::uint64_t others = writes_of_others(*primals.front()->of) +
                                 static_cast<std::uint64_t>(std::ranges::count_if(counted_, is_of_this));
    for (std::size_t i = 0; i < primals.size(); ++i) {
        primals[i]->copy = std::make_shared<const runtime::Array>(std::move(copies[i]));
        primals[i]->writes_of_others = others;
    }
    ++kept_.copies;
    kept_.bytes += end - begin;
    kept_.peak_bytes = std::max(kept_.peak_bytes, kept_.bytes);
    if (on_keep) on_keep(primals);
}

void TapeMemory::write(const Variable& to, bool counts) {
    if (!to.array.buffer) return;
    Memory& memory = memories_.of(to.array.buffer);
    if (counts) count(memory);
    if (memory.waiting.empty()) return;
    const auto [begin, end] = to.array.extent();
    const std::vector<SavedPrimalPtr> taken = take(memory, begin, end);
    const auto is_alike = [](const runtime::Array& a, const runtime::Array& b) {
        return a.view.data == b.view.data && a.dtype == b.dtype && std::ranges::equal(a.shape(), b.shape()) &&
               std::ranges::equal(a.strides(), b.strides());
    };
    for (auto primal = taken.begin(); primal != taken.end(); ++primal) {
        if ((*primal)->copy) continue;
        if ((*primal)->together) {
            std::vector<SavedPrimalPtr> group;
            for (const std::span<const SavedPrimalPtr> from :
                 {std::span<const SavedPrimalPtr>(memory.waiting.all()), std::span<const SavedPrimalPtr>(taken)})
                for (const SavedPrimalPtr& one : from)
                    if (one->together == (*primal)->together) group.push_back(one);
            keep(group);
            memory.waiting.erase_if([&](const SavedPrimalPtr& one) { return one->together == (*primal)->together; });
            continue;
        }
        const auto same = std::find_if(taken.begin(), primal, [&](const SavedPrimalPtr& one) {
            return !one->together && is_alike(one->of->array, (*primal)->of->array);
        });
        if (same == primal)
            keep({&*primal, 1});
        else
            (*primal)->copy = (*same)->copy, (*primal)->writes_of_others = (*same)->writes_of_others;
    }
    if (!taken.empty() && memory.kept_shape.empty()) memory.kept_shape = runtime::shape_text(to.array.shape());
}

std::uint64_t TapeMemory::writes_of_others(const Variable& of) const {
    const runtime::Buffer* const buffer = of.array.buffer.get();
    if (!buffer) return 0;
    const Memory* const known = memories_.find(buffer);
    return buffer->version - (known ? known->writes : 0);
}

void TapeMemory::count(Memory& memory) {
    counted_.emplace_back(&memory, memory.expected);
    ++memory.writes;
    const std::uint64_t version = memory.buffer->version, before = memory.expected.value_or(version);
    // Unknown if something else has written it since. More writes than the version shows are this entry's own: it may
    // write a memory through several arguments.
    if (before == kUnknown || before < version)
        memory.expected = kUnknown;
    else
        memory.expected = before + 1;
}

void TapeMemory::count_writes(std::span<const Variable* const> to) {
    std::vector<const runtime::Buffer*> seen;
    for (const Variable* one : to) {
        const runtime::Buffer* const buffer = one->array.buffer.get();
        if (!buffer || std::ranges::find(seen, buffer) != seen.end()) continue;
        seen.push_back(buffer);
        count(memories_.of(one->array.buffer));
    }
}

void TapeMemory::forget_entry() {
    for (const SavedPrimal* primal : added_) {
        Memory* const known = memories_.find(primal->buffer);
        if (known) known->waiting.erase_if([&](const SavedPrimalPtr& one) { return one.get() == primal; });
    }
    for (auto one = counted_.rbegin(); one != counted_.rend(); ++one)
        one->first->expected = one->second, --one->first->writes;
    begin_entry();
}

// ---- going back ----

void TapeMemory::check_versions() const {
    for (std::size_t i = 0; i < memories_.size(); ++i) {
        const Memory& memory = memories_[i];
        if (memory.kept_shape.empty() || memory.waiting.empty()) continue;
        if (!memory.expected || memory.expected == memory.buffer->version) continue;
        throw UsageError(
            "Tape.backward()",
            "an array of shape " + memory.kept_shape +
                ", of which the tape had to keep earlier contents and needs the last ones too, was written "
                "outside of the tape since; recorded and present values would mix. help: record again");
    }
}

void TapeMemory::clear() {
    memories_.clear();
    block_.reset();
    begin_entry();
    kept_ = {.peak_bytes = kept_.peak_bytes};
}

}  // namespace weft::program

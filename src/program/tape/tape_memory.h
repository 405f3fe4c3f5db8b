// The tape's view of memory: contents that the adjoints of its entries will read again, copies of those that were
// overwritten, and the number of writes.
//
// Contents are copied only when an entry of the tape overwrites them. All other memory is read as it is during the
// backward pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/tape/variable.h"

namespace weft::program {

// Copies of arrays of one memory, with the same strides, gaps included, and without gradients. Arrays that overlap do
// so in the copies too.
std::vector<runtime::Array> keep_together(std::span<const runtime::Array* const> arrays);

// A read of an array by an entry that its adjoint repeats. Entries without a write between them share one.
struct SavedPrimal {
    explicit SavedPrimal(const Variable& of);

    const Variable* of;
    runtime::Buffer* buffer;  // null if the array has no elements
    const std::byte *begin, *end;
    std::shared_ptr<const runtime::Array> copy;  // of the contents that the entry saw; null while the array has them
    std::uint64_t writes_of_others = 0;          // TapeMemory::writes_of_others() when the copy was made
    // Those of one entry that are copied as one, because their arrays overlap: values that the kernel stores through
    // one argument it may read through another, and so does its adjoint. Null if it is alone.
    std::shared_ptr<std::vector<SavedPrimal*>> together;

    const runtime::Array& contents() const { return copy ? *copy : of->array; }
};
using SavedPrimalPtr = std::shared_ptr<SavedPrimal>;

// Saved primals in order of their first byte. Most memory has one, which needs no allocation here.
class UncopiedPrimals {
public:
    std::span<SavedPrimalPtr> all() { return {many_.empty() ? &one_ : many_.data(), size()}; }
    std::size_t size() const { return many_.empty() ? (one_ ? 1 : 0) : many_.size(); }
    bool empty() const { return size() == 0; }
    void insert(std::size_t at, SavedPrimalPtr primal);
    void erase(std::size_t first, std::size_t last);
    template <typename Condition>
    void erase_if(const Condition& condition) {
        if (many_.empty() && one_ && condition(one_)) one_.reset();
        std::erase_if(many_, condition);
    }

private:
    SavedPrimalPtr one_;  // if there is no other
    std::vector<SavedPrimalPtr> many_;
};

class TapeMemory {
public:
    // Begins an entry that is about to run. The calls up to the next one report its saved primals and writes: first
    // contents from before it, then its writes, then contents that it leaves.
    void begin_entry();
    // Copied only if something overwrites it.
    SavedPrimalPtr save(const Variable& of);
    void save(const SavedPrimalPtr& made);
    // Whether saved primals of this entry may overlap: then call join_overlapping() before writes, to save overlapping
    // ones as one.
    bool may_overlap() const { return may_overlap_; }
    void join_overlapping(std::span<SavedPrimalPtr*> primals);
    // Saves contents of this memory that an entry needs. `counts`: and counts a write to it.
    void write(const Variable& to, bool counts = false);
    // Counts a write to each memory that these lie in, once.
    void count_writes(std::span<const Variable* const> to);
    // The number of writes to its memory that are not on the tape. Equal numbers mean that the memory has the contents
    // that the tape knows of.
    std::uint64_t writes_of_others(const Variable& of) const;
    // The entry, which is still on the tape, has failed: drops its saved primals and the writes that it counted.
    void forget_entry();

    // Throws UsageError of Tape.backward() if memory that has saved contents and contents still to be read was written
    // outside the tape.
    void check_versions() const;

    struct CopyStatistics {
        std::int64_t copies = 0, bytes = 0, peak_bytes = 0;
    };
    const CopyStatistics& kept() const { return kept_; }
    void clear();  // all but the peak

    // Called with saved primals whose contents were copied.
    std::function<void(std::span<const SavedPrimalPtr>)> on_keep;

private:
    // Saved primals without a copy, by their first byte. A write finds those that it overlaps without a look at all of
    // them: every step of a rollout may have a row of one array.
    struct Memory {
        runtime::BufferPtr buffer;
        UncopiedPrimals waiting;
        std::ptrdiff_t longest = 0;
        std::uint64_t entry = 0;   // the last one with a saved primal here
        std::uint64_t writes = 0;  // by entries of the tape
        // The writes to it at the end of the last recorded entry; empty before, and kUnknown if the two counts
        // disagree.
        std::optional<std::uint64_t> expected;
        std::string kept_shape;  // of an array whose contents were saved; empty if none were
    };
    static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

    // A new one. Saved primals of successive launches share a block of memory, as launches have many.
    SavedPrimalPtr make(const Variable& of);
    void wait(Memory& memory, const SavedPrimalPtr& primal);
    std::vector<SavedPrimalPtr> take(Memory& memory, const std::byte* begin, const std::byte* end);
    void keep(std::span<const SavedPrimalPtr> primals);
    void count(Memory& memory);

    // By buffer. A launch looks up each of its arrays, which often are new. So memories lie in blocks that never move,
    // and are found by open addressing.
    class Memories {
    public:
        Memories() = default;
        Memories(Memories&&) = default;
        Memories& operator=(Memories&&) = default;

        Memory* find(const runtime::Buffer* buffer) const;
        Memory& of(const runtime::BufferPtr& buffer);  // made at its first use
        void clear();
        std::size_t size() const { return count_; }
        const Memory& operator[](std::size_t i) const { return (*blocks_[i / kBlock])[i % kBlock]; }

    private:
        static constexpr std::size_t kBlock = 32;
        std::size_t slot_of(const runtime::Buffer* buffer) const;
        void grow();

        std::vector<std::shared_ptr<std::array<Memory, kBlock>>> blocks_;
        std::size_t count_ = 0;
        std::vector<Memory*> slots_;  // a power of two, at most half of them taken
        int shift_ = 64;              // of a hash, to a slot
    };

    static constexpr std::size_t kPrimalsTogether = 16;
    struct PrimalBlock;

    Memories memories_;
    std::shared_ptr<PrimalBlock> block_;  // for the next one
    std::uint64_t entry_ = 0;
    bool may_overlap_ = false;               // two saved primals of this entry lie in one memory
    std::vector<const SavedPrimal*> added_;  // by this entry
    // By this entry, with the former `expected`.
    std::vector<std::pair<Memory*, std::optional<std::uint64_t>>> counted_;
    CopyStatistics kept_;
};

}  // namespace weft::program

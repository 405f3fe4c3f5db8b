// What a tape knows of memory: which contents the adjoints of what it recorded will read again, the copies that it made
// because something recorded overwrote them, and how often memory was written.
//
// Nothing is copied unless something on the tape overwrites it: what is not is used with the contents that it has when
// the tape goes back.
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

#include "program/variable.h"

namespace weft::program {

// Copies of arrays of one memory, with the same strides, gaps included, and without gradients: what overlaps does so in
// the copies too.
std::vector<runtime::Array> keep_together(std::span<const runtime::Array* const> arrays);

// That an entry of a tape reads an array, and its adjoint does so again. Entries between which nothing writes the array
// share one.
struct SavedPrimal {
    explicit SavedPrimal(const Variable& of);

    const Variable* of;
    runtime::Buffer* buffer;  // null where the array has no elements
    const std::byte *begin, *end;
    std::shared_ptr<const runtime::Array> copy;  // of the contents that the entry saw; null while the array has them
    std::uint64_t writes_of_others = 0;          // TapeMemory::writes_of_others() when the copy was made
    // Those of one entry that are copied as one, because they show parts of the same memory: what the kernel stores
    // through one argument it may read through another, and so does its adjoint. Null where it is alone.
    std::shared_ptr<std::vector<SavedPrimal*>> together;

    const runtime::Array& contents() const { return copy ? *copy : of->array; }
};
using SavedPrimalPtr = std::shared_ptr<SavedPrimal>;

// Needs in order of their first byte. Most memory has one, which takes no memory of its own.
class UncopiedPrimals {
public:
    std::span<SavedPrimalPtr> all() { return {many_.empty() ? &one_ : many_.data(), size()}; }
    std::size_t size() const { return many_.empty() ? (one_ ? 1 : 0) : many_.size(); }
    bool empty() const { return size() == 0; }
    void insert(std::size_t at, SavedPrimalPtr need);
    void erase(std::size_t first, std::size_t last);
    template <typename Condition>
    void erase_if(const Condition& condition) {
        if (many_.empty() && one_ && condition(one_)) one_.reset();
        std::erase_if(many_, condition);
    }

private:
    SavedPrimalPtr one_;  // where there is no other
    std::vector<SavedPrimalPtr> many_;
};

class TapeMemory {
public:
    // An entry is about to be recorded, and to run then. What follows, up to the next one, is what it needs and writes:
    // first needs of contents from before it, then its writes, then needs of what it leaves.
    void begin_entry();
    SavedPrimalPtr need(const Variable& of);
    void need(const SavedPrimalPtr& made);
    // Those of one entry that overlap will be kept as one. Call it before writes, where they may.
    bool may_overlap() const { return may_overlap_; }
    void join_overlapping(std::span<SavedPrimalPtr*> needs);
    // Copies what somebody needs of this memory. `counts`: and counts a write to it.
    void write(const Variable& to, bool counts = false);
    // Counts a write to each memory that these lie in, once.
    void count_writes(std::span<const Variable* const> to);
    // How often its memory was written by what is not on the tape. Differences count: where there is none, the array
    // has the contents that the tape knows of.
    std::uint64_t writes_of_others(const Variable& of) const;
    // The entry, which is still there, has failed: it needs nothing, and has not counted its writes.
    void forget_entry();

    // Throws UsageError of Tape.backward() where memory of which contents were kept, and of which others are still to
    // be read, was written by something that is not on the tape.
    void check_versions() const;

    struct CopyStatistics {
        std::int64_t copies = 0, bytes = 0, peak_bytes = 0;
    };
    const CopyStatistics& kept() const { return kept_; }
    void clear();  // all but the peak

    // Told of needs whose contents were copied.
    std::function<void(std::span<const SavedPrimalPtr>)> on_keep;

private:
    // The needs whose contents are still there, by their first byte: what a write meets is found without looking at all
    // of them, as where every step of a rollout has a row of one array.
    struct Memory {
        runtime::BufferPtr buffer;
        UncopiedPrimals waiting;
        std::ptrdiff_t longest = 0;
        std::uint64_t entry = 0;   // the last one with a need here
        std::uint64_t writes = 0;  // by what is on the tape
        // Writes when the last recorded one is done; none before, and kUnknown where the two do not agree.
        std::optional<std::uint64_t> expected;
        std::string kept_shape;  // of an array of which contents were kept; empty where none were
    };
    static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

    // A new one. Those of launches that follow each other lie in one piece of memory: launches have many.
    SavedPrimalPtr make(const Variable& of);
    void wait(Memory& memory, const SavedPrimalPtr& need);
    std::vector<SavedPrimalPtr> take(Memory& memory, const std::byte* begin, const std::byte* end);
    void keep(std::span<const SavedPrimalPtr> needs);
    void count(Memory& memory);

    // By buffer. A launch asks for that of each of its arrays, which often are new: so memories lie in blocks, which
    // stay where they are, and are found by open addressing.
    class Memories {
    public:
        Memories() = default;
        Memories(Memories&&) = default;
        Memories& operator=(Memories&&) = default;

        Memory* find(const runtime::Buffer* buffer) const;
        Memory& of(const runtime::BufferPtr& buffer);  // made where it is not there yet
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
    std::shared_ptr<PrimalBlock> needs_;  // where the next one is made
    std::uint64_t entry_ = 0;
    bool may_overlap_ = false;               // two needs of this entry lie in one memory
    std::vector<const SavedPrimal*> added_;  // by this entry
    std::vector<std::pair<Memory*, std::optional<std::uint64_t>>> counted_;  // by this entry, with what was expected
    CopyStatistics kept_;
};

}  // namespace weft::program

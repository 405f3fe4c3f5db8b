#include "runtime/cpu/stack.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "runtime/cpu/long_stack.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kFirstBlock = std::int64_t{1} << 18;
// Limit of the memory that an idle worker keeps.
constexpr std::int64_t kMostKept = std::int64_t{1} << 24;

struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kAlignment}); }
};

struct StackBlock {
    std::unique_ptr<std::byte, Free> memory;
    std::int64_t size = 0, used = 0;
};

class Stack {
public:
    void* take(std::int64_t size) {
        size = (std::max<std::int64_t>(size, 1) + kAlignment - 1) / kAlignment * kAlignment;
        while (current_ < blocks_.size() && blocks_[current_].size - blocks_[current_].used < size) {
            if (current_ + 1 == blocks_.size() || blocks_[current_ + 1].size < size) blocks_.resize(current_ + 1);
            ++current_;
        }
        if (current_ == blocks_.size()) add(size);
        StackBlock& block = blocks_[current_];
        std::byte* memory = block.memory.get() + block.used;
        block.used += size;
        return memory;
    }

    void release(void* memory) {
        auto* const from = static_cast<std::byte*>(memory);
        while (from < blocks_[current_].memory.get() ||
               from >= blocks_[current_].memory.get() + blocks_[current_].size) {
            blocks_[current_].used = 0;
            --current_;
        }
        blocks_[current_].used = from - blocks_[current_].memory.get();
    }

    // Called when nothing is in use; the current block need not be the first.
    void trim() {
        current_ = 0;
        for (StackBlock& block : blocks_) block.used = 0;  // a kernel may have left in the midst of its loops
        if (!is_large_) return;
        std::int64_t kept = 0;
        std::size_t count = 0;
        while (count < blocks_.size() && kept + blocks_[count].size <= kMostKept) kept += blocks_[count++].size;
        blocks_.resize(count);
        is_large_ = false;
    }

private:
    void add(std::int64_t size) {
        const std::int64_t twice = blocks_.empty() ? kFirstBlock : 2 * blocks_.back().size;
        StackBlock block;
        block.size = std::max(size, twice);
        is_large_ |= block.size >= kMostKept;
        auto* memory = ::operator new(static_cast<std::size_t>(block.size), std::align_val_t{kAlignment});
        block.memory.reset(static_cast<std::byte*>(memory));
        blocks_.push_back(std::move(block));
        current_ = blocks_.size() - 1;
    }

    std::vector<StackBlock> blocks_;
    std::size_t current_ = 0;
    bool is_large_ = false;  // it may have more memory than an idle worker keeps
};

thread_local Stack stack;
thread_local std::deque<LongStack> logs;

}  // namespace

void* weft_stack_take(std::int64_t size_bytes) { return stack.take(size_bytes); }
void weft_stack_release(void* memory) { stack.release(memory); }
void weft_stack_trim() {
    stack.trim();
    for (LongStack& log : logs) log.trim();
}
void* weft_long_stack(std::int64_t number, std::int64_t row_bytes, std::int64_t* rows) {
    while (logs.size() <= static_cast<std::size_t>(number)) logs.emplace_back();
    return logs[static_cast<std::size_t>(number)].open(row_bytes, *rows);
}

}  // namespace weft::runtime

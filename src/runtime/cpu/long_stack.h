// A row of memory that may become very long: a part of the address space, of which the system hands out what is
// written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::runtime {

class LongStack {
public:
    LongStack() = default;
    ~LongStack();
    LongStack(const LongStack&) = delete;
    LongStack& operator=(const LongStack&) = delete;

    // Its begin, the same each time; `rows` is how many of `row_bytes` there is room for. Throws std::bad_alloc.
    void* open(std::int64_t row_bytes, std::int64_t& rows);
    // Gives back what was written, but for its first part, which is kept for the next time.
    void trim();

private:
    void reserve();
    void release();

    std::byte* begin_ = nullptr;
    std::int64_t size_ = 0;         // bytes
    std::int64_t memory_size_ = 0;  // of the first part, which is no file
    int file_ = -1;
    int process_ = 0;  // that reserved it: a forked one must not share the file
};

}  // namespace weft::runtime

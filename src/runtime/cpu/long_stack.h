// An array in memory that may become very long: a reserved part of the address space, which the system backs as it is
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

    // Returns its start, the same each time. `rows` is set to the number of rows of `row_bytes` that fit. Throws
    // std::bad_alloc.
    void* open(std::int64_t row_bytes, std::int64_t& rows);
    // Returns all written pages but a first part to the system, which is kept for the next use.
    void trim();

private:
    void reserve();
    void release();

    std::byte* begin_ = nullptr;
    std::int64_t size_ = 0;         // bytes
    std::int64_t memory_size_ = 0;  // of the first part, which is not backed by the file
    int file_ = -1;
    int process_ = 0;  // that reserved it: a forked process must not share the file
};

}  // namespace weft::runtime

// Pinned memory of the host, which GPUs access directly: copies to and from it run in the order of a stream, while the
// host continues.
#pragma once

#include <cstdint>

namespace weft::runtime {

// Aligned to pages; null if there is no GPU. Throws UsageError if the driver has no more.
void* allocate_pinned(std::int64_t size_bytes);
// Precondition: work that may access the memory is done.
void free_pinned(void* data);
// Whether the driver knows the memory as pinned, also memory of other libraries. Does not ask for the driver.
bool is_pinned(std::uintptr_t address);

// While it lives, host memory that this thread allocates for arrays is pinned, if there is a GPU.
class Pinning {
public:
    explicit Pinning(bool is_wanted) : before_(is_on_) { is_on_ = is_wanted; }
    ~Pinning() { is_on_ = before_; }
    Pinning(const Pinning&) = delete;
    Pinning& operator=(const Pinning&) = delete;
    static bool is_on() { return is_on_; }

private:
    inline static thread_local bool is_on_ = false;
    bool before_;
};

// While it lives, copies of this thread between a GPU and pinned memory are not waited for.
class Asynchronous {
public:
    Asynchronous() : before_(is_on_) { is_on_ = true; }
    ~Asynchronous() { is_on_ = before_; }
    Asynchronous(const Asynchronous&) = delete;
    Asynchronous& operator=(const Asynchronous&) = delete;
    static bool is_on() { return is_on_; }

private:
    inline static thread_local bool is_on_ = false;
    bool before_;
};

// While it lives, copies that this thread puts into a captured stream, from a GPU to the host, become a part of the
// graph, each launch of which fills the array. Without it they are errors: the caller would read what is not there yet.
class RecordedCopies {
public:
    RecordedCopies() : before_(are_on_) { are_on_ = true; }
    ~RecordedCopies() { are_on_ = before_; }
    RecordedCopies(const RecordedCopies&) = delete;
    RecordedCopies& operator=(const RecordedCopies&) = delete;
    static bool are_on() { return are_on_; }

private:
    inline static thread_local bool are_on_ = false;
    bool before_;
};

}  // namespace weft::runtime

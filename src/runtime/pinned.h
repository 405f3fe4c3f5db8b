// Memory of the host that GPUs reach by themselves, and that stays where it is: copies to and from it take place in the
// order of a stream, while the host does something else.
#pragma once

#include <cstdint>

namespace weft::runtime {

// Null where there is no GPU. Throws UsageError where the driver has no more. Aligned to pages.
void* allocate_pinned(std::int64_t size_bytes);
// When the work that may touch it is done.
void free_pinned(void* data);
// Whether the driver knows it as such, whoever has allocated it. Does not ask for the driver.
bool is_pinned(std::uintptr_t address);

// While it lives, the host's memory that this thread allocates for arrays is pinned, where there is a GPU.
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

// While it lives, copies that this thread puts into streams between a GPU and pinned memory are not waited for.
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

}  // namespace weft::runtime

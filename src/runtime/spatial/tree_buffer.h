// Memory of trees and of their builders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/cpu/block_cache.h"
#include "runtime/spatial/parallel.h"
#include "support/error.h"

namespace weft::runtime::spatial {

// An array in memory of blocks (runtime/cpu/block_cache.h), uninitialized: fresh pages cost as much as a build, and a
// thread that clears them delays the others.
template <typename E>
class TreeBuffer {
public:
    TreeBuffer() = default;
    explicit TreeBuffer(std::int64_t count) : data_(static_cast<E*>(take(count * kBytes))), count_(count) {}
    ~TreeBuffer() {
        if (data_ != nullptr) give_block(data_, count_ * kBytes);
    }
    TreeBuffer(TreeBuffer&& other) noexcept { swap(other); }
    TreeBuffer& operator=(TreeBuffer&& other) noexcept {
        swap(other);
        return *this;
    }

    TreeBuffer copy() const {
        TreeBuffer made(count_);
        constexpr std::int64_t kGrain = 1 << 20;
        for_ranges(count_ * kBytes, kGrain, [&](std::int64_t begin, std::int64_t end) {
            std::memcpy(reinterpret_cast<std::byte*>(made.data_) + begin,
                        reinterpret_cast<const std::byte*>(data_) + begin, static_cast<std::size_t>(end - begin));
        });
        return made;
    }

    E* data() { return data_; }
    const E* data() const { return data_; }
    std::int64_t size() const { return count_; }
    E& operator[](std::int64_t i) { return data_[i]; }
    const E& operator[](std::int64_t i) const { return data_[i]; }

private:
    static_assert(std::is_trivially_destructible_v<E> && alignof(E) <= kArrayAlignment);
    static constexpr std::int64_t kBytes = sizeof(E);

    static void* take(std::int64_t size_bytes) {
        if (size_bytes == 0) return nullptr;
        void* const data = take_block(size_bytes).data;
        if (data == nullptr)
            throw UsageError("Bvh", "there is no memory for a tree of " + std::to_string(size_bytes) + " bytes",
                             ErrorCategory::memory);
        return data;
    }
    void swap(TreeBuffer& other) {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
    }

    E* data_ = nullptr;
    std::int64_t count_ = 0;
};

}  // namespace weft::runtime::spatial

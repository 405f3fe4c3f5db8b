// Common to all functions that XLA calls: the answer about the version, the buffers and their samples, and errors.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "bindings/interop/xla.h"
#include "bindings/python/lock.h"
#include "runtime/array.h"

namespace weft::bindings {

// The leading extents that vmap has put before those of one sample, and the first byte of each sample.
class Batch {
public:
    // `rank`: of one sample.
    void add(const xla::Buffer& buffer, int rank) {
        const auto extra = static_cast<std::size_t>(buffer.rank - rank);
        if (extra > extents_.size()) extents_.insert(extents_.begin(), extra - extents_.size(), 1);
        for (std::size_t i = 0; i < extra; ++i) {
            std::int64_t& extent = extents_[extents_.size() - extra + i];
            extent = std::max(extent, buffer.extents[i]);
            if (buffer.extents[i] == 0) is_empty_ = true;
        }
    }
    std::int64_t count() const {
        if (is_empty_) return 0;
        std::int64_t count = 1;
        for (const std::int64_t extent : extents_) count *= extent;
        return count;
    }
    // An extent of 1 is the same sample for all.
    std::byte* sample(const xla::Buffer& buffer, int rank, std::int64_t size_bytes, std::int64_t index) const {
        auto* data = static_cast<std::byte*>(buffer.data);
        if (extents_.empty()) return data;
        const auto extra = static_cast<std::size_t>(buffer.rank - rank);
        std::int64_t offset = 0, step = 1;
        for (std::size_t i = 0; i < extra; ++i) {
            const std::size_t from_last = extra - 1 - i;
            const std::int64_t extent = extents_[extents_.size() - 1 - i];
            const std::int64_t at = index % extent;
            index /= extent;
            if (buffer.extents[from_last] > 1) offset += at * step;
            step *= buffer.extents[from_last];
        }
        return data + offset * size_bytes;
    }

private:
    std::vector<std::int64_t> extents_;
    bool is_empty_ = false;
};

const xla::Buffer& item(const xla::Buffers& buffers, std::int64_t index);

// Large results of XLA are fresh from the system: without huge pages the first write to them takes several times as
// long as most kernels. `size_bytes`: of one sample.
void expect_first_write(const xla::Buffer& result, int rank, std::int64_t size_bytes);

// Memory that XLA owns during the call.
runtime::BufferPtr lent(void* data, std::int64_t size_bytes);

nanobind::object handler_capsule(xla::Handler* handler);

// ---- the frame of a call ----

bool answers_metadata(xla::CallFrame& frame);
std::int64_t id_of(const xla::CallFrame& frame);  // the id of the call that was registered for it
xla::Error* error(const xla::CallFrame& frame, const char* message);

// Runs `run(id)`; exceptions become XLA's errors.
template <typename Run>
xla::Error* handle(xla::CallFrame* frame, Run&& run) {
    if (answers_metadata(*frame)) return nullptr;
    try {
        const ForeignCall running;
        run(id_of(*frame));
        return nullptr;
    } catch (const std::exception& failure) {
        return error(*frame, failure.what());
    }
}

}  // namespace weft::bindings

// Common to all functions that XLA calls: the answer about the version, the buffers and their samples, and errors.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "bindings/interop/xla.h"
#include "bindings/python/lock.h"
#include "runtime/array.h"
#include "runtime/device.h"

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

// The device of a call, and XLA's stream there. While it lives, the device is the default one of this thread, and the
// work of this thread there is in that stream. `is_gpu`: the handler is that of the platform CUDA.
class CallPlace {
public:
    CallPlace(const xla::CallFrame& frame, bool is_gpu);

    // To be called after the work: kernels that print or fail are waited for.
    void finish();

    runtime::Device& device;

private:
    std::shared_ptr<runtime::Stream> theirs_;  // null on the CPU
    std::optional<runtime::UseStream> stream_;
    std::optional<runtime::UseDevice> default_;
};

// Within the memory of a device, in the order of its current stream.
void copy_within(runtime::Device& device, void* to, const void* from, std::int64_t size_bytes);
void clear_within(runtime::Device& device, void* at, std::int64_t size_bytes);

// Large results of XLA are fresh from the system: without huge pages the first write to them takes several times as
// long as most kernels. `size_bytes`: of one sample. Only of memory of the host.
void expect_first_write(const xla::Buffer& result, int rank, std::int64_t size_bytes);

// Memory that XLA owns during the call.
runtime::BufferPtr lent(runtime::Device& device, void* data, std::int64_t size_bytes);

nanobind::object handler_capsule(xla::Handler* handler);

// ---- the frame of a call ----

bool answers_metadata(xla::CallFrame& frame, std::uint32_t traits);
std::int64_t id_of(const xla::CallFrame& frame);  // the id of the call that was registered for it
xla::Error* error(const xla::CallFrame& frame, const char* message);

// Runs `run(id)`; exceptions become XLA's errors.
template <typename Run>
xla::Error* handle(xla::CallFrame* frame, Run&& run, std::uint32_t traits = 0) {
    if (answers_metadata(*frame, traits)) return nullptr;
    try {
        const ForeignCall running;
        run(id_of(*frame));
        return nullptr;
    } catch (const std::exception& failure) {
        return error(*frame, failure.what());
    }
}

}  // namespace weft::bindings

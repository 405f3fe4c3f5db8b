// Memory of a CUDA device for one piece of work.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/device.h"
#include "runtime/out_of_memory.h"

namespace weft::runtime {

// Memory of a device that is freed in the order of its stream.
class CudaMemory {
public:
    // Throws UsageError if there is no more memory.
    CudaMemory(Device& device, std::int64_t size_bytes, bool zeroed, Stream& stream, const char* api = "launch()")
        : device_(device),
          stream_(stream),
          size_bytes_(size_bytes),
          data_(take_memory(device, size_bytes, zeroed, stream, api)) {}
    ~CudaMemory() {
        if (data_) device_.free(data_, size_bytes_, stream_);
    }
    CudaMemory(CudaMemory&& from) noexcept
        : device_(from.device_), stream_(from.stream_), size_bytes_(from.size_bytes_), data_(from.release()) {}
    CudaMemory(const CudaMemory&) = delete;
    CudaMemory& operator=(const CudaMemory&) = delete;

    void* data() const { return data_; }
    // The memory is the caller's from then on.
    void* release() { return std::exchange(data_, nullptr); }
    std::int64_t size_bytes() const { return size_bytes_; }

private:
    Device& device_;
    Stream& stream_;
    std::int64_t size_bytes_;
    void* data_;
};

}  // namespace weft::runtime

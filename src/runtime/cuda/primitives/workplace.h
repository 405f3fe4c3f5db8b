// The parts that operations on whole arrays of a CUDA device share.
#pragma once

#include <cstdint>

#include "runtime/array.h"
#include "runtime/cuda/device.h"

namespace weft::runtime {

// The device of an operation's arrays, and the current stream of this thread there.
struct Workplace {
    explicit Workplace(const Array& array)
        : device(static_cast<CudaDevice&>(*array.device)), stream(current_stream(device)) {}

    CudaMemory memory(std::int64_t size_bytes) const { return {device, size_bytes, /*zeroed=*/false, stream}; }

    // Memory for kernels that leave it ready for the next launch in the stream (devlib/cuda/look_back.h), zeros at
    // first. In a capture it belongs to the graph, for this one operation.
    void* state(std::int64_t size_bytes) const;

    CudaDevice& device;
    Stream& stream;
};

inline std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Whether kernels may read it in pieces of 16 bytes.
inline bool is_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

}  // namespace weft::runtime

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

    CudaDevice& device;
    Stream& stream;
};

// Replaces `counts` by exclusive running sums, and stores the total after the last.
void add_up_places(const Workplace& at, std::int64_t* counts, std::int64_t count);

}  // namespace weft::runtime

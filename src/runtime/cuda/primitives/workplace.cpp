#include "runtime/cuda/primitives/workplace.h"

#include "runtime/cuda/capture.h"

namespace weft::runtime {

void* Workplace::state(std::int64_t size_bytes) const {
    CudaRecording* const recording = cuda_recording(stream);
    return recording ? recording->keep_zeros(size_bytes) : static_cast<CudaStream&>(stream).state(size_bytes);
}

}  // namespace weft::runtime

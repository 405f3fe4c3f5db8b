// What programs ask of the memory of a CUDA device, with the checks around it.
#include "runtime/verify.h"

#include "runtime/copy_plan.h"
#include "runtime/cuda/device.h"
#include "support/error.h"

namespace weft::runtime {

void CudaDevice::verify(Stream& stream, const char* api) {
    if (!verifies_cuda()) return;
    try {
        stream.synchronize();
    } catch (const UsageError& error) {
        throw UsageError(api, "it failed on '" + alias + "', or what was put into its stream before: " + error.what(),
                         error.category);
    }
}

void CudaDevice::copy(const CopyPlan& plan, Stream& stream) {
    put_copy(plan, stream);
    verify(stream, "copy()");
}

void CudaDevice::fill(const CopyPlan& plan, Stream& stream) {
    put_fill(plan, stream);
    verify(stream, "array.fill_()");
}

void CudaDevice::clear(void* data, std::int64_t size_bytes, Stream& stream) {
    put_clear(data, size_bytes, stream);
    verify(stream, "array.zero_()");
}

}  // namespace weft::runtime

// What programs ask of the memory of a CUDA device: described where a graph is captured, checked where that is wanted.
#include "runtime/verify.h"

#include "runtime/copy_plan.h"
#include "runtime/cuda/capture.h"
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
    if (plan.sides == CopyPlan::Sides::to_host && stream.recording())
        refuse_recording(*this, "copy()", "copy to the host after wp.capture_launch()");
    put_copy(plan, stream);
    if (CudaRecording* const recording = cuda_recording(stream)) {
        const void* const from = plan.sides == CopyPlan::Sides::inside ? plan.from : nullptr;
        return recording->describe("copy", {plan.to, from});
    }
    verify(stream, "copy()");
}

void CudaDevice::fill(const CopyPlan& plan, Stream& stream) {
    put_fill(plan, stream);
    if (CudaRecording* const recording = cuda_recording(stream)) return recording->describe("fill", {plan.to});
    verify(stream, "array.fill_()");
}

void CudaDevice::clear(void* data, std::int64_t size_bytes, Stream& stream) {
    put_clear(data, size_bytes, stream);
    if (CudaRecording* const recording = cuda_recording(stream)) return recording->describe("fill", {data});
    verify(stream, "array.zero_()");
}

}  // namespace weft::runtime

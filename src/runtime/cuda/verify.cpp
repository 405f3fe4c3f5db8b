// Work of programs on the memory of a CUDA device: described as nodes during a capture, verified if that is enabled.
#include "runtime/verify.h"

#include <cstddef>
#include <vector>

#include "runtime/copy_plan.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/device.h"
#include "support/error.h"

namespace weft::runtime {

void CudaDevice::verify(Stream& stream, const char* api) {
    if (!verifies_cuda()) return;
    try {
        stream.synchronize();
    } catch (const UsageError& error) {
        throw UsageError(api, "it failed on '" + alias + "', or earlier work of its stream: " + error.what(),
                         error.category);
    }
}

void CudaDevice::copy(const CopyPlan& plan, Stream& stream) {
    if (CudaRecording* const recording = cuda_recording(stream)) {
        if (plan.sides == CopyPlan::Sides::to_host) return record_to_host(plan, stream, *recording);
        // Pinned memory is read by each launch of the graph; other memory of the host is read now.
        const bool is_read_now = plan.sides == CopyPlan::Sides::from_host && !is_pinned_line(plan);
        const CopyPlan inside = is_read_now ? kept_on_device(plan, *recording) : plan;
        put_copy(inside, stream);
        return recording->describe("copy", {inside.to, inside.from},
                                   [this, inside](Stream& again) { copy(inside, again); });
    }
    put_copy(plan, stream);
    verify(stream, "copy()");
}

void CudaDevice::fill(const CopyPlan& plan, Stream& stream) {
    put_fill(plan, stream);
    if (CudaRecording* const recording = cuda_recording(stream)) {
        const auto* const element = static_cast<const std::byte*>(plan.from);
        auto again = [this, plan, kept = std::vector<std::byte>(element, element + plan.element)](Stream& to) {
            CopyPlan same = plan;
            same.from = kept.data();
            fill(same, to);
        };
        return recording->describe("fill", {plan.to}, std::move(again));
    }
    verify(stream, "array.fill_()");
}

void CudaDevice::clear(void* data, std::int64_t size_bytes, Stream& stream) {
    static_cast<CudaStream&>(stream).put_clear(data, size_bytes);
    if (CudaRecording* const recording = cuda_recording(stream))
        return recording->describe("fill", {data},
                                   [this, data, size_bytes](Stream& again) { clear(data, size_bytes, again); });
    verify(stream, "array.zero_()");
}

}  // namespace weft::runtime

#include "runtime/cuda/capture.h"
#include "runtime/cuda/device.h"
#include "runtime/foreign_memory.h"
#include "runtime/recording.h"
#include "runtime/waiting.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

const CUstream kLegacyStream = reinterpret_cast<CUstream>(1);

CudaStream& current_cuda_stream(const Device& device) { return static_cast<CudaStream&>(current_stream(device)); }

// Whether this thread captures through Weft; a capture of another library counts as ordinary work of the stream.
bool captures_here(const Stream& stream) {
    const Recording* const found = stream.recording();
    return found && !found->is_external();
}

}  // namespace

Device* cuda_device_of(const void* memory) {
    if (gpus().empty()) return nullptr;
    const CudaDevice::Inside inside(*gpus().front());  // the driver needs a current context, any of them
    int ordinal = 0;
    const CUresult result =
        driver().cuPointerGetAttribute(&ordinal, kPointerDeviceOrdinal, reinterpret_cast<CUdeviceptr>(memory));
    if (result == kSuccess)
        for (CudaDevice* const mapped : mapped_devices()) {
            CUcontext context = nullptr;
            if (driver().cuPointerGetAttribute(&context, kPointerContext, reinterpret_cast<CUdeviceptr>(memory)) ==
                    kSuccess &&
                context == mapped->context())
                return mapped;
        }
    return result == kSuccess ? gpus()[static_cast<std::size_t>(ordinal)] : nullptr;
}

void make_cuda_context_current(Device& device) {
    auto& gpu = static_cast<CudaDevice&>(device);
    gpu.check(driver().cuCtxSetCurrent(gpu.context()), "cuCtxSetCurrent");
}

std::shared_ptr<Stream> foreign_stream(Device& device, std::uint64_t stream) {
    return static_cast<CudaDevice&>(device).adopt_stream(reinterpret_cast<CUstream>(stream));
}

std::uint64_t stream_for_others(Stream& stream) {
    return reinterpret_cast<std::uint64_t>(static_cast<CudaStream&>(stream).share_handle());
}

std::shared_ptr<Event> foreign_event(Device& device, std::uint64_t event) {
    return std::make_shared<CudaEvent>(static_cast<CudaDevice&>(device), reinterpret_cast<CUevent>(event));
}

std::uint64_t event_for_others(Event& event) {
    return reinterpret_cast<std::uint64_t>(static_cast<CudaEvent&>(event).share_handle());
}

void wait_for_cuda_stream(Device& device, std::uint64_t stream) {
    auto& gpu = static_cast<CudaDevice&>(device);
    const CudaDevice::Inside inside(gpu);
    const RelaxedCapture relaxed;
    wait_until([&] { return driver().cuStreamQuery(reinterpret_cast<CUstream>(stream)) != kNotReady; });
    gpu.check(driver().cuStreamSynchronize(reinterpret_cast<CUstream>(stream)), "cuStreamSynchronize");
}

void let_foreign_stream_wait(Device& device, std::uint64_t stream, std::string_view api) {
    CudaStream& ours = current_cuda_stream(device);
    if (ours.own_handle() == reinterpret_cast<CUstream>(stream)) return;
    if (captures_here(ours)) refuse_recording(device, api, "exchange the array before or after the capture");
    // The legacy default stream waits for ours by itself. An explicit wait would end the captures of other threads.
    if (reinterpret_cast<CUstream>(stream) == kLegacyStream && !ours.is_foreign()) return;
    CudaStream theirs(static_cast<CudaDevice&>(device), reinterpret_cast<CUstream>(stream));
    if (theirs.recording() && !ours.recording()) {
        throw UsageError(api, "the stream that is to wait is being captured on '" + device.alias +
                                  "', and the work that it would wait for is no part of that. help: exchange the "
                                  "array before the capture");
    }
    const std::shared_ptr<Event> done = device.make_event();
    done->record(ours);
    done->make_wait(theirs);
}

std::uint64_t stream_that_waits(Device& device) {
    CudaStream& ours = current_cuda_stream(device);
    const CUstream own = ours.own_handle();
    const Recording* const found = ours.recording();
    if (found && found->is_external()) return reinterpret_cast<std::uint64_t>(own);
    // A captured stream cannot wait for work outside of the capture. The side stream does, and the launch of a graph
    // comes after that.
    const CUstream outside = ours.handle_outside_if_made();
    return reinterpret_cast<std::uint64_t>(outside);
}

void notice_foreign_capture(Device& device) {
    CudaStream& ours = current_cuda_stream(device);
    if (ours.is_recorded()) return;
    auto& gpu = static_cast<CudaDevice&>(device);
    const CudaDevice::Inside inside(gpu);
    CUstreamCaptureStatus status = kCaptureNone;
    gpu.check(driver().cuStreamIsCapturing(ours.own_handle(), &status), "cuStreamIsCapturing");
    if (status != kCaptureNone) ours.share_handle();
}

}  // namespace weft::runtime

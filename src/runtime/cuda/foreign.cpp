#include "runtime/cuda/capture.h"
#include "runtime/cuda/device.h"
#include "runtime/foreign_memory.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

const CUstream kLegacyStream = reinterpret_cast<CUstream>(1);

CUstream named_stream(std::uint64_t stream) { return stream ? reinterpret_cast<CUstream>(stream) : kLegacyStream; }

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

std::shared_ptr<Stream> stream_of_handle(Device& device, std::uint64_t stream) {
    return static_cast<CudaDevice&>(device).stream_of_handle(named_stream(stream));
}

void bring_reports(Stream& stream) {
    auto& queue = static_cast<CudaStream&>(stream);
    if (queue.is_foreign() && !queue.recording() && !queue.reports().is_empty()) queue.synchronize();
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

// ---- a library that only names its stream ----

namespace {

// Whether the driver orders both streams, or they are one.
bool is_ordered(CudaStream& ours, CUstream theirs) {
    return ours.own_handle() == theirs || (theirs == kLegacyStream && !ours.is_foreign());
}

bool is_captured(CudaContext& gpu, CUstream stream) {
    if (stream == kLegacyStream) return false;
    const CudaContext::Inside inside(gpu);
    CUstreamCaptureStatus status = kCaptureNone;
    gpu.check(driver().cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");
    return status != kCaptureNone;
}

// `waiting` continues after the work that is in `working` now.
void put_in_order(CudaContext& gpu, CUstream working, CUstream waiting) {
    const CudaContext::Inside inside(gpu);
    CUevent done = nullptr;
    gpu.check(driver().cuEventCreate(&done, kNoTiming), "cuEventCreate");
    const CUresult recorded = driver().cuEventRecord(done, working);
    const CUresult waits = recorded == kSuccess ? driver().cuStreamWaitEvent(waiting, done, 0) : kSuccess;
    destroy_quietly(driver().cuEventDestroy_v2, done);
    gpu.check(recorded, "cuEventRecord");
    gpu.check(waits, "cuStreamWaitEvent");
}

}  // namespace

bool is_captured_stream(Device& device, std::uint64_t stream) {
    return is_captured(static_cast<CudaDevice&>(device), named_stream(stream));
}

void wait_for_foreign_stream(Device& device, std::uint64_t stream, std::string_view api) {
    auto& gpu = static_cast<CudaDevice&>(device);
    CudaStream& ours = current_cuda_stream(device);
    const CUstream theirs = named_stream(stream);
    if (is_ordered(ours, theirs)) return;
    if (is_captured(gpu, theirs) && (captures_here(ours) || !ours.recording())) {
        throw UsageError(api, "the stream in which the owner of the memory works is being captured on '" +
                                  device.alias +
                                  "', and this work is in another stream, which is no part of that "
                                  "capture. help: use that stream here, too (wp.ScopedStream with "
                                  "wp.stream_from_torch(), or wp.Stream(device, cuda_stream=...))");
    }
    put_in_order(gpu, theirs, reinterpret_cast<CUstream>(stream_that_waits(device)));
}

void continue_foreign_stream(Device& device, std::uint64_t stream) {
    auto& gpu = static_cast<CudaDevice&>(device);
    CudaStream& ours = current_cuda_stream(device);
    const CUstream theirs = named_stream(stream);
    if (is_ordered(ours, theirs) || captures_here(ours)) return;
    if (ours.recording() && !is_captured(gpu, theirs)) return;
    put_in_order(gpu, ours.own_handle(), theirs);
}

}  // namespace weft::runtime

#include "runtime/cuda/stream.h"

#include <new>
#include <utility>

#include "runtime/cuda/capture.h"
#include "runtime/cuda/device.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

// ---- streams ----

CudaStream::CudaStream(CudaDevice& device) : Stream(device), cuda_(device) {}

// 0 names the legacy default stream.
CudaStream::CudaStream(CudaDevice& device, CUstream foreign)
    : Stream(device), cuda_(device), is_foreign_(true), handle_(foreign ? foreign : reinterpret_cast<CUstream>(1)) {
    std::call_once(once_, [] {});
    share();
}

// Nobody waits for it any more; what its launches say is lost with it.
CudaStream::~CudaStream() {
    reports_.drop();
    external_.reset();
    drop_recording(*this);  // its capture, which nobody can end
    CUstream made = handle_.load(std::memory_order_acquire);
    // A stream that is gone would end the capture of another one that it has joined.
    if (CudaRecording* const joined = made && !is_foreign_ ? cuda_recording(*this) : nullptr) {
        joined->keep_stream(std::exchange(made, nullptr), std::exchange(aside_, nullptr));
    }
    const CudaDevice::Inside inside(cuda_, std::nothrow);
    if (!inside.is_inside()) return;
    if (made != nullptr && !is_foreign_) give_up(driver().cuStreamDestroy_v2, made);
    if (aside_ != nullptr) give_up(driver().cuStreamDestroy_v2, aside_);
    if (border_ != nullptr) give_up(driver().cuEventDestroy_v2, border_);
}

CUstream CudaStream::handle() {
    if (!is_recorded()) return own_handle();
    CudaRecording* const recording = cuda_recording(*this);
    return recording ? recording->handle(*this) : aside();
}

CUstream CudaStream::share_handle() {
    const CUstream shared = own_handle();
    share();
    return shared;
}

// Destructors ask, too, and must not throw. A driver that does not answer twice will not take work either, and then
// says why: the stream may be gone with the library that lent it.
Recording* CudaStream::find_recording() {
    const CUstream own = handle_.load(std::memory_order_acquire);
    if (own == nullptr) return nullptr;
    const std::lock_guard lock(external_mutex_);
    const CudaDevice::Inside inside(cuda_, std::nothrow);
    CUstreamCaptureStatus status = kCaptureNone;
    CUgraph graph = nullptr;
    cuuint64_t id = 0;
    const auto ask = [&] {
        return driver().cuStreamGetCaptureInfo_v3(own, &status, &id, &graph, nullptr, nullptr, nullptr);
    };
    if (driver().cuStreamGetCaptureInfo_v3 && ask() != kSuccess && ask() != kSuccess) status = kCaptureNone;
    if (status != kCaptureActive) {
        external_.reset();
    } else if (!external_ || external_id_ != id) {
        external_.reset();
        external_ = std::make_unique<CudaRecording>(*this, graph);
        external_id_ = id;
    }
    return external_.get();
}

void CudaStream::begin_external() {
    share_handle();
    const Recording* const found = recording();
    if (!found)
        throw UsageError("capture_begin()", "external=True, and nobody captures this stream of '" + cuda_.alias +
                                                "'. help: begin the capture in the other library first, or leave "
                                                "external out");
    if (!found->is_external()) refuse_second_recording(*this);
}

void CudaStream::end_external() {
    const std::lock_guard lock(external_mutex_);
    external_.reset();
}

// One that the legacy default stream waits for, and that waits for it: the order that other libraries expect.
CUstream CudaStream::own_handle() {
    std::call_once(once_, [&] {
        const CudaDevice::Inside inside(cuda_);
        CUstream made = nullptr;
        cuda_.check(driver().cuStreamCreate(&made, 0), "cuStreamCreate");
        handle_.store(made, std::memory_order_release);
    });
    return handle_.load(std::memory_order_acquire);
}

CUstream CudaStream::handle_outside_if_made() {
    return is_recorded() ? aside() : handle_.load(std::memory_order_acquire);
}

CUstream CudaStream::aside() {
    const std::lock_guard lock(aside_mutex_);
    const CudaDevice::Inside inside(cuda_);
    if (aside_ == nullptr) cuda_.check(driver().cuStreamCreate(&aside_, 0), "cuStreamCreate");
    if (is_behind_) cuda_.check(driver().cuStreamWaitEvent(aside_, border_, 0), "cuStreamWaitEvent");
    is_behind_ = false;
    is_aside_used_ = true;
    return aside_;
}

void CudaStream::prepare_aside() {
    const CUstream own = own_handle();
    const std::lock_guard lock(aside_mutex_);
    const CudaDevice::Inside inside(cuda_);
    if (border_ == nullptr) cuda_.check(driver().cuEventCreate(&border_, kNoTiming), "cuEventCreate");
    cuda_.check(driver().cuEventRecord(border_, own), "cuEventRecord");
    is_behind_ = true;
}

void CudaStream::end_aside() noexcept {
    const std::lock_guard lock(aside_mutex_);
    if (!std::exchange(is_aside_used_, false)) return;
    const CudaDevice::Inside inside(cuda_, std::nothrow);
    if (!inside.is_inside()) return;
    // Where it cannot be told to wait, it waits here.
    if (driver().cuEventRecord(border_, aside_) != kSuccess ||
        driver().cuStreamWaitEvent(handle_.load(std::memory_order_acquire), border_, 0) != kSuccess)
        driver().cuStreamSynchronize(aside_);
}

void CudaStream::synchronize() {
    if (recording())
        throw UsageError("synchronize()",
                         "a graph is being captured from a stream of '" + cuda_.alias +
                             "', and what was launched in it has not run. help: wait after the capture");
    if (handle_.load(std::memory_order_acquire) == nullptr) return;  // nothing was put into it
    try {
        const CudaDevice::Inside inside(cuda_);
        cuda_.check(driver().cuStreamSynchronize(handle()), "cuStreamSynchronize");
        reports_.collect(cuda_, *this);
        ExternalUse::free_unused();
        ExternalUse::collect(cuda_, *this);
    } catch (...) {
        // Who asked for them is told by this error, and gone afterwards.
        reports_.drop();
        throw;
    }
}

// ---- events ----

CudaEvent::CudaEvent(CudaDevice& device) : device_(device) {
    const CudaDevice::Inside inside(device_);
    device_.check(driver().cuEventCreate(&handle_, 0), "cuEventCreate");
}

CudaEvent::~CudaEvent() {
    const CudaDevice::Inside inside(device_, std::nothrow);
    if (inside.is_inside()) give_up(driver().cuEventDestroy_v2, handle_);
}

void CudaEvent::record(Stream& stream) {
    const CudaDevice::Inside inside(device_);
    Recording* const recording = stream.recording();
    is_external_ = recording && recording->is_external();
    capture_ = recording && !is_external_ ? recording->number() : 0;
    device_.check(driver().cuEventRecord(handle_, static_cast<CudaStream&>(stream).handle()), "cuEventRecord");
    is_recorded_ = true;
}

void CudaEvent::require_no_capture(const char* api) const {
    if (capture_ == 0 && !is_external_) return;
    throw UsageError(api,
                     "the event was recorded in a capture, where it orders streams and has no time. help: record it "
                     "in a stream that is not captured");
}

// The stream may be another CUDA device's. What waits for an event of a capture belongs to the capture from then on.
void CudaEvent::make_wait(Stream& stream) {
    if (is_external_) {
        static_cast<CudaStream&>(stream).share();  // the driver knows to which capture it belongs
    } else if (capture_ != 0) {
        Recording* const recording = find_recording(capture_);
        if (!recording)
            throw UsageError("wait_event()",
                             "the event was recorded in a capture that is over, or another thread's. "
                             "help: record it again");
        recording->join(stream);
    } else if (is_recorded_ && stream.recording()) {
        throw UsageError("wait_event()",
                         "the stream is being captured, and the event was recorded outside of the "
                         "capture. help: wait before the capture, or record the event in it");
    }
    auto& waiting = static_cast<CudaDevice&>(stream.device());
    const CudaDevice::Inside inside(waiting);
    waiting.check(driver().cuStreamWaitEvent(static_cast<CudaStream&>(stream).handle(), handle_, 0),
                  "cuStreamWaitEvent");
}

void CudaEvent::synchronize() {
    require_no_capture("synchronize_event()");
    const CudaDevice::Inside inside(device_);
    device_.check(driver().cuEventSynchronize(handle_), "cuEventSynchronize");
}

bool CudaEvent::is_complete() {
    require_no_capture("Event.is_complete");
    const CudaDevice::Inside inside(device_);
    const CUresult result = driver().cuEventQuery(handle_);
    if (result == kNotReady) return false;
    device_.check(result, "cuEventQuery");
    return true;
}

double CudaEvent::ms_since(const Event& earlier) const {
    require_no_capture("get_event_elapsed_time()");
    static_cast<const CudaEvent&>(earlier).require_no_capture("get_event_elapsed_time()");
    const CudaDevice::Inside inside(device_);
    const CUevent from = static_cast<const CudaEvent&>(earlier).handle_;
    const auto elapsed = driver().cuEventElapsedTime_v2 ? driver().cuEventElapsedTime_v2 : driver().cuEventElapsedTime;
    WEFT_CHECK(elapsed != nullptr, "the CUDA driver has no cuEventElapsedTime");
    float ms = 0.0F;
    device_.check(elapsed(&ms, from, handle_), "cuEventElapsedTime");
    return ms;
}

}  // namespace weft::runtime

#include "runtime/cuda/stream.h"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/cuda/external_use.h"
#include "runtime/cuda/relaxed_capture.h"
#include "runtime/cuda/timing.h"
#include "runtime/waiting.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

CUdeviceptr device_address(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }
std::size_t count(std::int64_t size_bytes) { return static_cast<std::size_t>(size_bytes); }

// All recordings of CUDA streams are of this class.
StreamRecording* recording_of(const Stream& stream) { return static_cast<StreamRecording*>(stream.recording()); }

}  // namespace

// ---- streams ----

CudaStream::CudaStream(CudaContext& device, int priority) : Stream(device), cuda_(device), priority_(priority) {}

// 0 means the legacy default stream.
CudaStream::CudaStream(CudaContext& device, CUstream foreign, std::shared_ptr<CudaStream> owner)
    : Stream(device),
      cuda_(device),
      is_foreign_(true),
      owner_(std::move(owner)),
      handle_(foreign ? foreign : reinterpret_cast<CUstream>(1)) {
    std::call_once(once_, [] {});
    share();
}

// No thread can wait for the stream any more, so its reports are lost. The driver is not asked about a stream of
// another library: if that library has destroyed it, the query would end the process on a GPU.
CudaStream::~CudaStream() {
    reports_.drop();
    external_.reset();
    CUstream made = handle_.load(std::memory_order_acquire);
    // Destroying a stream that has joined another library's capture would invalidate the capture.
    if (StreamRecording* const joined = made && !is_foreign_ ? recording_of(*this) : nullptr) {
        joined->keep_stream(std::exchange(made, nullptr), std::exchange(side_stream_, nullptr));
    }
    const CudaContext::Inside inside(cuda_, std::nothrow);
    if (!inside.is_inside()) return;
    if (made != nullptr && !is_foreign_) destroy_quietly(driver().cuStreamDestroy_v2, made);
    if (side_stream_ != nullptr) destroy_quietly(driver().cuStreamDestroy_v2, side_stream_);
    if (border_ != nullptr) destroy_quietly(driver().cuEventDestroy_v2, border_);
    if (states_.empty()) return;
    const RelaxedCapture relaxed;
    for (const CUdeviceptr each : states_) destroy_quietly(driver().cuMemFree_v2, each);  // waits for the work
}

// Launches mark their entries with 32-bit numbers. Entries that no launch has written for so long that a number comes
// again are cleared.
void* CudaStream::state(std::int64_t size_bytes) {
    constexpr std::int64_t kLeastBytes = 1 << 16;
    const WorkLock lock = lock_work();
    if (state_bytes_ < size_bytes) {
        const std::int64_t bytes = std::max({kLeastBytes, size_bytes, 2 * state_bytes_});
        const CudaContext::Inside inside(cuda_);
        const RelaxedCapture relaxed;
        states_.reserve(states_.size() + 1);
        CUdeviceptr made = 0;
        cuda_.check(driver().cuMemAlloc_v2(&made, count(bytes)), "cuMemAlloc");
        states_.push_back(made);
        state_bytes_ = 0;  // until it is cleared
        put_clear(reinterpret_cast<void*>(made), bytes);
        state_bytes_ = bytes;
        state_uses_ = 0;
    }
    void* const data = reinterpret_cast<void*>(states_.back());
    if (state_uses_++ == 1u << 31) {
        put_clear(data, state_bytes_);
        state_uses_ = 0;
    }
    return data;
}

CudaStream::Handle CudaStream::handle() {
    WorkLock lock = lock_work();
    if (!is_recorded()) return {std::move(lock), own_handle()};
    StreamRecording* const recording = recording_of(*this);
    return {std::move(lock), recording ? recording->handle(*this) : side_stream()};
}

CUstream CudaStream::share_handle() {
    const CUstream shared = own_handle();
    share();
    return shared;
}

// Destructors call this too, and it must not throw. If the driver fails twice, it will reject work too and report the
// reason then: the stream may have been destroyed by the library that owned it.
Recording* CudaStream::find_recording() {
    const CUstream own = handle_.load(std::memory_order_acquire);
    if (own == nullptr) return nullptr;
    std::unique_ptr<StreamRecording> over;  // destroyed without the lock: it frees memory, which calls this function
                                            // again
    const std::lock_guard lock(external_mutex_);
    const CudaContext::Inside inside(cuda_, std::nothrow);
    CUstreamCaptureStatus status = kCaptureNone;
    CUgraph graph = nullptr;
    cuuint64_t id = 0;
    const auto ask = [&] {
        return driver().cuStreamGetCaptureInfo_v3(own, &status, &id, &graph, nullptr, nullptr, nullptr);
    };
    if (driver().cuStreamGetCaptureInfo_v3 && ask() != kSuccess && ask() != kSuccess) status = kCaptureNone;
    if (status != kCaptureActive) {
        over = std::move(external_);
    } else if (!external_ || external_id_ != id) {
        over = std::move(external_);
        external_ = cuda_.record_external(*this, graph);
        external_id_ = id;
    }
    return external_.get();
}

void CudaStream::begin_external() {
    share_handle();
    const Recording* const found = recording();
    if (!found)
        throw UsageError("capture_begin()", "external=True, and this stream is not captured, of '" + cuda_.alias +
                                                "'. help: begin the capture in the other library first, or leave "
                                                "external out");
    if (!found->is_external()) refuse_second_recording(*this);
}

void CudaStream::end_external() {
    std::unique_ptr<StreamRecording> over;
    const std::lock_guard lock(external_mutex_);
    over = std::move(external_);
}

// A stream that synchronizes with the legacy default stream in both directions, as other libraries expect.
CUstream CudaStream::own_handle() {
    std::call_once(once_, [&] {
        const CudaContext::Inside inside(cuda_);
        CUstream made = nullptr;
        if (priority_ == 0)
            cuda_.check(driver().cuStreamCreate(&made, 0), "cuStreamCreate");
        else
            cuda_.check(driver().cuStreamCreateWithPriority(&made, 0, priority_), "cuStreamCreateWithPriority");
        handle_.store(made, std::memory_order_release);
    });
    return handle_.load(std::memory_order_acquire);
}

CudaStream::Handle CudaStream::handle_outside_if_made() {
    WorkLock lock = lock_work();
    return {std::move(lock), is_recorded() ? side_stream() : handle_.load(std::memory_order_acquire)};
}

CUstream CudaStream::side_stream() {
    const WorkLock lock = lock_work();
    const CudaContext::Inside inside(cuda_);
    if (side_stream_ == nullptr) cuda_.check(driver().cuStreamCreate(&side_stream_, 0), "cuStreamCreate");
    if (is_behind_) cuda_.check(driver().cuStreamWaitEvent(side_stream_, border_, 0), "cuStreamWaitEvent");
    is_behind_ = false;
    is_side_stream_used_ = true;
    return side_stream_;
}

void CudaStream::prepare_side_stream() {
    const CUstream own = own_handle();
    const WorkLock lock = lock_work();
    const CudaContext::Inside inside(cuda_);
    if (border_ == nullptr) cuda_.check(driver().cuEventCreate(&border_, kNoTiming), "cuEventCreate");
    cuda_.check(driver().cuEventRecord(border_, own), "cuEventRecord");
    is_behind_ = true;
}

void CudaStream::end_side_stream() noexcept {
    const WorkLock lock = lock_work();
    if (!std::exchange(is_side_stream_used_, false)) return;
    const CudaContext::Inside inside(cuda_, std::nothrow);
    if (!inside.is_inside()) return;
    // If the stream cannot be made to wait, this thread waits.
    if (driver().cuEventRecord(border_, side_stream_) != kSuccess ||
        driver().cuStreamWaitEvent(handle_.load(std::memory_order_acquire), border_, 0) != kSuccess) {
        const RelaxedCapture relaxed;
        driver().cuStreamSynchronize(side_stream_);
    }
}

void CudaStream::synchronize() {
    if (recording()) {
        reports_.forget_faults();  // of launches from before another library began a capture
        throw UsageError("synchronize()", "a graph is being captured from a stream of '" + cuda_.alias +
                                              "', and its launches have not run. help: wait after the capture");
    }
    if (handle_.load(std::memory_order_acquire) == nullptr) return;  // no work yet
    std::shared_ptr<LateFault> late;
    try {
        wait();
        // Memory in the order of a stream that its owner may destroy is freed while the stream is there.
        late = reports_.collect(*this, /*keeps=*/!is_foreign_);
        ExternalUse::free_unused();
        ExternalUse::collect(cuda_, *this);
    } catch (...) {
        // This thread will not read its faults; other threads still read theirs.
        reports_.forget_faults();
        throw;
    }
    if (late) late->throw_fault();
}

void CudaStream::wait() {
    const CudaContext::Inside inside(cuda_);
    const RelaxedCapture relaxed;
    wait_until([&] { return driver().cuStreamQuery(handle()) != kNotReady; });
    // Reports an error of finished work. Synchronizing also makes pools return memory above their thresholds.
    cuda_.check(driver().cuStreamSynchronize(handle()), "cuStreamSynchronize");
}

bool CudaStream::is_complete() {
    if (recording())
        throw UsageError("Stream.is_complete", "a graph is being captured from the stream of '" + cuda_.alias +
                                                   "', and its launches have not run. help: ask after the "
                                                   "capture");
    if (handle_.load(std::memory_order_acquire) == nullptr) return true;  // no work yet
    const CudaContext::Inside inside(cuda_);
    const RelaxedCapture relaxed;
    const CUresult result = driver().cuStreamQuery(handle());
    if (result == kNotReady) return false;
    cuda_.check(result, "cuStreamQuery");
    return true;
}

int CudaStream::priority() {
    const CUstream own = own_handle();
    const CudaContext::Inside inside(cuda_);
    int priority = 0;
    cuda_.check(driver().cuStreamGetPriority(own, &priority), "cuStreamGetPriority");
    return priority;
}

// ---- contiguous bytes ----

void CudaStream::put_clear(void* data, std::int64_t size_bytes) {
    const CudaContext::Inside inside(cuda_);
    const TimedWork timed(*this, kTimedFill, "memset");
    cuda_.check(driver().cuMemsetD8Async(device_address(data), 0, count(size_bytes), handle()), "cuMemsetD8Async");
}

void CudaStream::put_line(void* to, const void* from, std::int64_t size_bytes) {
    const CudaContext::Inside inside(cuda_);
    const TimedWork timed(*this, kTimedCopy, "memcpy DtoD");
    cuda_.check(driver().cuMemcpyDtoDAsync_v2(device_address(to), device_address(from), count(size_bytes), handle()),
                "cuMemcpyDtoDAsync");
}

void CudaStream::read(void* to, const void* from, std::int64_t size_bytes) {
    if (recording())
        throw UsageError("copy()",
                         "a graph is being captured, and its launches have not run: nothing can be copied "
                         "from '" +
                             cuda_.alias + "' to the host. help: copy after wp.capture_launch()");
    wait();
    // No interrupt before the bytes have arrived: the caller's memory might be freed.
    const Uninterrupted uninterrupted;
    put_to_host(to, from, size_bytes);
    wait();
}

void CudaStream::put_to_host(void* to, const void* from, std::int64_t size_bytes) {
    const CudaContext::Inside inside(cuda_);
    const TimedWork timed(*this, kTimedCopy, "memcpy DtoH");
    cuda_.check(driver().cuMemcpyDtoHAsync_v2(to, device_address(from), count(size_bytes), handle()),
                "cuMemcpyDtoHAsync");
}

// For memory that is not pinned, the driver has made a copy when the call returns.
void CudaStream::put_from_host(void* to, const void* from, std::int64_t size_bytes) {
    const CudaContext::Inside inside(cuda_);
    const TimedWork timed(*this, kTimedCopy, "memcpy HtoD");
    cuda_.check(driver().cuMemcpyHtoDAsync_v2(device_address(to), from, count(size_bytes), handle()),
                "cuMemcpyHtoDAsync");
}

// ---- events ----

CudaEvent::Owner::~Owner() {
    const CudaContext::Inside inside(device_, std::nothrow);
    if (handle && inside.is_inside()) destroy_quietly(driver().cuEventDestroy_v2, handle);
}

CudaEvent::CudaEvent(CudaContext& device, unsigned flags)
    : device_(device), owner_(std::make_shared<Owner>(device)), is_shared_((flags & kInterprocess) != 0) {
    const CudaContext::Inside inside(device_);
    device_.check(driver().cuEventCreate(&handle_, flags), "cuEventCreate");
    owner_->handle = handle_;
}

CudaEvent::CudaEvent(CudaContext& device, CUevent foreign, bool owns)
    : device_(device), owner_(owns ? std::make_shared<Owner>(device) : nullptr), handle_(foreign), is_shared_(true) {
    if (owns) owner_->handle = foreign;
}

CUevent CudaEvent::share_handle() {
    is_shared_ = true;
    return handle_;
}

void CudaEvent::record(Stream& stream, bool by_graph) {
    const CudaContext::Inside inside(device_);
    StreamRecording* const recording = recording_of(stream);
    if (recording && by_graph) {
        recording->add_event(handle_, owner_, static_cast<CudaStream&>(stream), true);
        is_external_ = false;
        capture_ = 0;
        by_graph_ = true;
        return;
    }
    device_.check(driver().cuEventRecord(handle_, static_cast<CudaStream&>(stream).handle()), "cuEventRecord");
    is_external_ = recording && recording->is_external();
    capture_ = recording && !is_external_ ? recording->number() : 0;
    is_recorded_ = true;
}

void CudaEvent::require_no_capture(const char* api) const {
    if (capture_ == 0 && !is_external_) return;
    throw UsageError(api,
                     "the event was recorded in a capture: it orders streams there, and has no time. help: record it "
                     "with external=True, by which each launch of the graph records it, or in a stream that is not "
                     "captured");
}

void CudaEvent::require_inside(Stream& stream) const {
    if (!is_recorded() || !stream.recording()) return;
    if (is_shared_) {
        const CudaContext::Inside inside(device_);
        const RelaxedCapture relaxed;
        if (driver().cuEventQuery(handle_) == kCapturedEvent) return;
    }
    throw UsageError("wait_event()",
                     "the stream is being captured, and the event was recorded outside of the "
                     "capture. help: wait before the capture, record the event in it, or wait with external=True, by "
                     "which each launch of the graph waits for the event");
}

// The stream may be that of another CUDA device. A stream that waits for an event of a capture joins the capture.
void CudaEvent::make_wait(Stream& stream, bool by_graph) {
    auto& waiting = static_cast<CudaContext&>(stream.device());
    auto& queue = static_cast<CudaStream&>(stream);
    if (StreamRecording* const recording = by_graph ? recording_of(stream) : nullptr)
        return recording->add_event(handle_, owner_, queue, false);
    if (is_external_) {
        queue.share();  // the driver knows the capture
    } else if (capture_ != 0) {
        Recording* const recording = find_recording(capture_);
        if (!recording)
            throw UsageError("wait_event()",
                             "the event was recorded in a capture that is over, or another thread's. "
                             "help: record it again");
        recording->join(stream);
    } else {
        require_inside(stream);
        if (is_shared_) queue.share();  // may have been recorded in a capture of another library
    }
    const CudaContext::Inside inside(waiting);
    waiting.check(driver().cuStreamWaitEvent(queue.handle(), handle_, 0), "cuStreamWaitEvent");
}

void CudaEvent::synchronize() {
    require_no_capture("synchronize_event()");
    const CudaContext::Inside inside(device_);
    const RelaxedCapture relaxed;
    wait_until([&] { return driver().cuEventQuery(handle_) != kNotReady; });
    device_.check(driver().cuEventSynchronize(handle_), "cuEventSynchronize");
}

bool CudaEvent::is_complete() {
    require_no_capture("Event.is_complete");
    const CudaContext::Inside inside(device_);
    const RelaxedCapture relaxed;
    const CUresult result = driver().cuEventQuery(handle_);
    if (result == kNotReady) return false;
    device_.check(result, "cuEventQuery");
    return true;
}

double CudaEvent::ms_since(const Event& earlier) const {
    const char* const api = "get_event_elapsed_time()";
    const auto& before = static_cast<const CudaEvent&>(earlier);
    require_no_capture(api);
    before.require_no_capture(api);
    const CudaContext::Inside inside(device_);
    const auto elapsed = driver().cuEventElapsedTime_v2 ? driver().cuEventElapsedTime_v2 : driver().cuEventElapsedTime;
    WEFT_CHECK(elapsed != nullptr, "the CUDA driver has no cuEventElapsedTime");
    float ms = 0.0F;
    const CUresult result = elapsed(&ms, before.handle_, handle_);
    if (result == kInvalidHandle && (by_graph_ || before.by_graph_))
        throw UsageError(api,
                         "a graph records the event when it is launched, and it was not. help: wp.capture_launch() "
                         "first");
    if (result == kInvalidHandle && (is_shared_ || before.is_shared_))
        throw UsageError(api,
                         "an event of another library was not recorded, or was made without time. help: its library "
                         "makes events that measure time on request");
    device_.check(result, "cuEventElapsedTime");
    return ms;
}

}  // namespace weft::runtime

#include "runtime/cuda/stream.h"

#include <new>

#include "runtime/cuda/device.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

// ---- streams ----

CudaStream::CudaStream(CudaDevice& device) : Stream(device), cuda_(device) {}

// Nobody waits for it any more; what its launches say is lost with it.
CudaStream::~CudaStream() {
    reports_.drop();
    const CUstream made = handle_.load(std::memory_order_acquire);
    const CudaDevice::Inside inside(cuda_, std::nothrow);
    if (made != nullptr && inside.is_inside()) driver().cuStreamDestroy_v2(made);
}

// One that the legacy default stream waits for, and that waits for it: the order that other libraries expect.
CUstream CudaStream::handle() {
    std::call_once(once_, [&] {
        const CudaDevice::Inside inside(cuda_);
        CUstream made = nullptr;
        cuda_.check(driver().cuStreamCreate(&made, 0), "cuStreamCreate");
        handle_.store(made, std::memory_order_release);
    });
    return handle_.load(std::memory_order_acquire);
}

void CudaStream::synchronize() {
    if (handle_.load(std::memory_order_acquire) == nullptr) return;  // nothing was put into it
    try {
        const CudaDevice::Inside inside(cuda_);
        cuda_.check(driver().cuStreamSynchronize(handle()), "cuStreamSynchronize");
        reports_.collect(cuda_, *this);
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
    if (inside.is_inside()) driver().cuEventDestroy_v2(handle_);
}

void CudaEvent::record(Stream& stream) {
    const CudaDevice::Inside inside(device_);
    device_.check(driver().cuEventRecord(handle_, static_cast<CudaStream&>(stream).handle()), "cuEventRecord");
    is_recorded_ = true;
}

// The stream may be another CUDA device's.
void CudaEvent::make_wait(Stream& stream) {
    auto& waiting = static_cast<CudaDevice&>(stream.device());
    const CudaDevice::Inside inside(waiting);
    waiting.check(driver().cuStreamWaitEvent(static_cast<CudaStream&>(stream).handle(), handle_, 0),
                  "cuStreamWaitEvent");
}

void CudaEvent::synchronize() {
    const CudaDevice::Inside inside(device_);
    device_.check(driver().cuEventSynchronize(handle_), "cuEventSynchronize");
}

bool CudaEvent::is_complete() {
    const CudaDevice::Inside inside(device_);
    const CUresult result = driver().cuEventQuery(handle_);
    if (result == kNotReady) return false;
    device_.check(result, "cuEventQuery");
    return true;
}

double CudaEvent::ms_since(const Event& earlier) const {
    const CudaDevice::Inside inside(device_);
    const CUevent from = static_cast<const CudaEvent&>(earlier).handle_;
    const auto elapsed = driver().cuEventElapsedTime_v2 ? driver().cuEventElapsedTime_v2 : driver().cuEventElapsedTime;
    WEFT_CHECK(elapsed != nullptr, "the CUDA driver has no cuEventElapsedTime");
    float ms = 0.0F;
    device_.check(elapsed(&ms, from, handle_), "cuEventElapsedTime");
    return ms;
}

}  // namespace weft::runtime

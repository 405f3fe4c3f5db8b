// Calls of the driver beside captures of this thread.
#pragma once

#include "runtime/cuda/driver.h"

namespace weft::runtime {

// While it lives, this thread may make driver calls that are no work of a captured stream: load code, allocate memory,
// query and wait for other streams. Otherwise the driver refuses them and invalidates captures of this thread.
class RelaxedCapture {
public:
    RelaxedCapture() { cuda::driver().cuThreadExchangeStreamCaptureMode(&mode_); }
    ~RelaxedCapture() { cuda::driver().cuThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

private:
    cuda::CUstreamCaptureMode mode_ = cuda::kCaptureRelaxed;
};

}  // namespace weft::runtime

// Streams and events of CUDA devices.
#pragma once

#include <atomic>
#include <mutex>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/reports.h"
#include "runtime/device.h"

namespace weft::runtime {

class CudaDevice;

class CudaStream final : public Stream {
public:
    explicit CudaStream(CudaDevice& device);
    ~CudaStream() override;

    // Collects what the launches in it have to say, too.
    void synchronize() override;
    // The driver's own; made at the first call.
    cuda::CUstream handle();
    PendingReports& reports() { return reports_; }

private:
    CudaDevice& cuda_;
    std::once_flag once_;
    std::atomic<cuda::CUstream> handle_{nullptr};
    PendingReports reports_;
};

class CudaEvent final : public Event {
public:
    explicit CudaEvent(CudaDevice& device);
    ~CudaEvent() override;

    void record(Stream& stream) override;
    void make_wait(Stream& stream) override;
    void synchronize() override;
    bool is_complete() override;
    double ms_since(const Event& earlier) const override;
    bool is_recorded() const override { return is_recorded_; }

private:
    CudaDevice& device_;
    cuda::CUevent handle_ = nullptr;
    bool is_recorded_ = false;
};

}  // namespace weft::runtime

// Streams and events of CUDA devices.
#pragma once

#include <atomic>
#include <mutex>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/reports.h"
#include "runtime/device.h"

namespace weft::runtime {

class CudaDevice;
class CudaRecording;

class CudaStream final : public Stream {
public:
    explicit CudaStream(CudaDevice& device);
    // A stream of another library, which lives longer than this object.
    CudaStream(CudaDevice& device, cuda::CUstream foreign);
    ~CudaStream() override;

    // Collects what the launches in it have to say, too. Throws UsageError where this thread captures it.
    void synchronize() override;
    // The driver's stream for the work of this thread: its own, made at the first call; while it is captured, what the
    // thread that captures is told by the recording, and aside() for all others.
    cuda::CUstream handle();
    cuda::CUstream own_handle();
    PendingReports& reports() { return reports_; }
    CudaDevice& cuda_device() const { return cuda_; }

    // While it is captured: a stream for what is no part of the graph. Its work comes after what was in this one before
    // prepare_aside(), and before what is put into this one after end_aside().
    cuda::CUstream aside();
    void prepare_aside();
    void end_aside() noexcept;
    // Another library may put work into it from now on, and capture it.
    cuda::CUstream share_handle();
    // Between these two the capture of another library is expected. Throws UsageError where there is none.
    void begin_external();
    void end_external();
    bool is_foreign() const { return is_foreign_; }
    // Into which memory is given back; null where there has been no work.
    cuda::CUstream handle_outside_if_made();

private:
    friend class CudaEvent;
    // That of another library's capture.
    Recording* find_recording() override;

    CudaDevice& cuda_;
    const bool is_foreign_ = false;
    std::mutex external_mutex_;
    std::unique_ptr<CudaRecording> external_;  // while its capture, `external_id_` to the driver, goes on
    std::uint64_t external_id_ = 0;
    std::once_flag once_;
    std::atomic<cuda::CUstream> handle_{nullptr};
    PendingReports reports_;
    std::mutex aside_mutex_;
    cuda::CUstream aside_ = nullptr;
    cuda::CUevent border_ = nullptr;  // between its work and that of aside_
    bool is_behind_ = false;          // aside_ has yet to wait for it
    bool is_aside_used_ = false;
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
    // Throws UsageError where it was last recorded in a capture: it has no time then.
    void require_no_capture(const char* api) const;
    bool is_external_ = false;   // it was recorded in a capture of another library
    std::uint64_t capture_ = 0;  // in which it was recorded last
    CudaDevice& device_;
    cuda::CUevent handle_ = nullptr;
    bool is_recorded_ = false;
};

}  // namespace weft::runtime

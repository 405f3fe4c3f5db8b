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
    explicit CudaStream(CudaDevice& device, int priority = 0);
    // A stream of another library, which lives longer than this object.
    CudaStream(CudaDevice& device, cuda::CUstream foreign, std::shared_ptr<CudaStream> owner = nullptr);
    ~CudaStream() override;

    // Collects what the launches in it have to say, too. Throws UsageError where this thread captures it.
    void synchronize() override;
    bool is_complete() override;
    int priority() override;

    // Nobody begins or ends a capture of the stream while it lives.
    using WorkLock = std::unique_lock<std::recursive_mutex>;
    WorkLock lock_work() { return WorkLock(work_mutex_); }
    // The driver's stream for the work of this thread, for one call of the driver, or for some that belong together:
    // its own, made at the first call; while it is captured, what the thread that captures is told by the recording,
    // and aside() for all others.
    class Handle {
    public:
        Handle(WorkLock lock, cuda::CUstream handle) : lock_(std::move(lock)), handle_(handle) {}
        operator cuda::CUstream() const { return handle_; }

    private:
        WorkLock lock_;
        cuda::CUstream handle_;
    };
    Handle handle();
    cuda::CUstream own_handle();
    // Returns when the work that is in the stream is done, for this thread; leaves what launches have to say to whoever
    // synchronizes. May be interrupted (runtime/waiting.h).
    void wait();
    PendingReports& reports() { return reports_; }
    CudaDevice& cuda_device() const { return cuda_; }

    // While it is captured, with the lock of work: a stream for what is no part of the graph. Its work comes after what
    // was in this one before prepare_aside(), and before what is put into this one after end_aside().
    cuda::CUstream aside();
    void prepare_aside();
    void end_aside() noexcept;
    // Another library may put work into it from now on, and capture it.
    cuda::CUstream share_handle();
    // Between these two the capture of another library is expected. Throws UsageError where there is none.
    void begin_external();
    void end_external();
    bool is_foreign() const { return is_foreign_; }
    // Whether the driver's stream is its own, and this one.
    bool lends(cuda::CUstream handle) const {
        return !is_foreign_ && handle_.load(std::memory_order_acquire) == handle;
    }
    // Into which memory is given back; null where there has been no work.
    Handle handle_outside_if_made();

private:
    friend class CudaEvent;
    // That of another library's capture.
    Recording* find_recording() override;

    CudaDevice& cuda_;
    const bool is_foreign_ = false;
    // A stream of ours that was lent to us again, by way of another library: it stays as long.
    const std::shared_ptr<CudaStream> owner_;
    const int priority_ = 0;
    std::mutex external_mutex_;
    std::unique_ptr<CudaRecording> external_;  // while its capture, `external_id_` to the driver, goes on
    std::uint64_t external_id_ = 0;
    std::once_flag once_;
    std::atomic<cuda::CUstream> handle_{nullptr};
    PendingReports reports_;
    std::recursive_mutex work_mutex_;
    cuda::CUstream aside_ = nullptr;
    cuda::CUevent border_ = nullptr;  // between its work and that of aside_
    bool is_behind_ = false;          // aside_ has yet to wait for it
    bool is_aside_used_ = false;
};

class CudaEvent final : public Event {
public:
    CudaEvent(CudaDevice& device, bool has_time);
    // An event of another library, which lives longer than this object.
    CudaEvent(CudaDevice& device, cuda::CUevent foreign);

    void record(Stream& stream, bool by_graph) override;
    void make_wait(Stream& stream, bool by_graph) override;
    void synchronize() override;
    bool is_complete() override;
    double ms_since(const Event& earlier) const override;
    bool is_recorded() const override { return is_recorded_ || by_graph_ || is_shared_; }
    // Another library may record it from now on.
    cuda::CUevent share_handle();

private:
    friend class CudaRecording;
    // Nodes of graphs keep it, too.
    class Owner {
    public:
        explicit Owner(CudaDevice& device) : device_(device) {}
        ~Owner();
        Owner(const Owner&) = delete;
        Owner& operator=(const Owner&) = delete;
        cuda::CUevent handle = nullptr;

    private:
        CudaDevice& device_;
    };

    // Throws UsageError where it was last recorded in a capture: it has no time then.
    void require_no_capture(const char* api) const;
    // Throws UsageError where the stream is captured, and the event lies outside of the capture.
    void require_inside(Stream& stream) const;

    CudaDevice& device_;
    std::shared_ptr<Owner> owner_;  // null for another library's
    cuda::CUevent handle_ = nullptr;
    bool is_shared_ = false;  // others record it, without our knowledge
    bool is_recorded_ = false;
    bool is_external_ = false;   // it was recorded in a capture of another library
    bool by_graph_ = false;      // a graph records it
    std::uint64_t capture_ = 0;  // in which it was recorded last
};

}  // namespace weft::runtime

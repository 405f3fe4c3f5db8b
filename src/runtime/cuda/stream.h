// Streams and events of CUDA devices.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "runtime/cuda/context.h"
#include "runtime/cuda/reports.h"
#include "runtime/recording.h"

namespace weft::runtime {

class CudaStream;

// A recording of CUDA streams (capture.h), as the streams see it.
class StreamRecording : public Recording {
public:
    // The driver's stream for this thread's work in a stream of the capture.
    virtual cuda::CUstream handle(CudaStream& stream) = 0;
    // Adds a node that records an event which lives outside of the graph, or waits for it. Throws UsageError in bodies
    // of conditions, and if the driver is too old.
    virtual void add_event(cuda::CUevent event, std::shared_ptr<const void> owner, CudaStream& stream,
                           bool records) = 0;
    // Takes over the driver's streams of a destroyed stream, which are destroyed after the capture.
    virtual void keep_stream(cuda::CUstream own, cuda::CUstream side_stream) = 0;

protected:
    using Recording::Recording;
};

class CudaStream final : public Stream, public ReportSource {
public:
    explicit CudaStream(CudaContext& device, int priority = 0);
    // A stream of another library, which outlives this object.
    CudaStream(CudaContext& device, cuda::CUstream foreign, std::shared_ptr<CudaStream> owner = nullptr);
    ~CudaStream() override;

    // Also collects the reports of launches, and throws their first late fault. Throws UsageError if this thread
    // captures the stream.
    void synchronize() override;
    // Other libraries wait for their streams by themselves, and would never learn of a fault.
    bool keeps_faults() const override { return !is_foreign_; }
    bool is_complete() override;
    int priority() override;

    // While the lock is held, no thread begins or ends a capture of the stream.
    using WorkLock = std::unique_lock<std::recursive_mutex>;
    WorkLock lock_work() { return WorkLock(work_mutex_); }
    // The driver's stream for the work of this thread, for one call of the driver or several that belong together.
    // Usually it is the stream's own, made at the first call. During a capture, the recording chooses it for the
    // capturing thread, and other threads get side_stream().
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
    // Returns when the work in the stream is done, for this thread; does not collect the reports of launches. May be
    // interrupted (runtime/waiting.h).
    void wait() override;
    PendingReports& reports() { return reports_; }
    CudaContext& cuda_context() const { return cuda_; }

    // Contiguous bytes, in the order of the stream: a copy within the device, from the host, to the host, and a fill
    // with zeros. The host's memory may be used again if it is pinned and the work is done, or if it is not pinned.
    void put_line(void* to, const void* from, std::int64_t size_bytes);
    void put_from_host(void* to, const void* from, std::int64_t size_bytes);
    void put_to_host(void* to, const void* from, std::int64_t size_bytes);
    void put_clear(void* data, std::int64_t size_bytes) override;
    // A copy to the host, done when it returns. Throws UsageError if this thread captures the stream.
    void read(void* to, const void* from, std::int64_t size_bytes) override;

    // During a capture, with the lock of work held: a side stream for work that is no part of the graph. It comes after
    // work that was in this stream before prepare_side_stream(), and before work that is enqueued here after
    // end_side_stream().
    cuda::CUstream side_stream();
    void prepare_side_stream();
    void end_side_stream() noexcept;
    // Another library may enqueue work and capture the stream from now on.
    cuda::CUstream share_handle();
    // The code between these calls expects a capture of another library. Throws UsageError if there is none.
    void begin_external();
    void end_external();
    // Memory for kernels of this stream that leave it ready for the next one of them, zeros at first. It belongs to the
    // stream; later calls may return other memory. Throws UsageError if there is no more.
    void* state(std::int64_t size_bytes);
    bool is_foreign() const { return is_foreign_; }
    // Whether `handle` is the driver's stream that this object owns.
    bool lends(cuda::CUstream handle) const {
        return !is_foreign_ && handle_.load(std::memory_order_acquire) == handle;
    }
    // For freeing memory in the stream's order; null if the stream has had no work.
    Handle handle_outside_if_made();

private:
    friend class CudaEvent;
    // Finds the capture of another library.
    Recording* find_recording() override;

    CudaContext& cuda_;
    const bool is_foreign_ = false;
    // Set if another library lent us a stream of our own: keeps it alive.
    const std::shared_ptr<CudaStream> owner_;
    const int priority_ = 0;
    std::mutex external_mutex_;
    std::unique_ptr<StreamRecording> external_;  // of the driver's capture `external_id_`; null if there is none
    std::uint64_t external_id_ = 0;
    std::once_flag once_;
    std::atomic<cuda::CUstream> handle_{nullptr};
    PendingReports reports_;
    std::recursive_mutex work_mutex_;
    cuda::CUstream side_stream_ = nullptr;
    cuda::CUevent border_ = nullptr;  // orders the stream's work and that of side_stream_
    bool is_behind_ = false;          // side_stream_ has yet to wait for border_
    bool is_side_stream_used_ = false;
    std::vector<cuda::CUdeviceptr> states_;  // the last one is in use; earlier ones were too small
    std::int64_t state_bytes_ = 0;
    std::uint32_t state_uses_ = 0;
};

class CudaEvent final : public Event {
public:
    // A new event with the driver's flags. One that is shared with other processes is also recorded by them.
    CudaEvent(CudaContext& device, unsigned flags);
    // An event of another library, which outlives this object; or, with `owns`, one that is destroyed with it.
    CudaEvent(CudaContext& device, cuda::CUevent foreign, bool owns = false);

    void record(Stream& stream, bool by_graph) override;
    void make_wait(Stream& stream, bool by_graph) override;
    void synchronize() override;
    bool is_complete() override;
    double ms_since(const Event& earlier) const override;
    bool is_recorded() const override { return is_recorded_ || by_graph_ || is_shared_; }
    // Another library may record the event from now on.
    cuda::CUevent share_handle();
    CudaContext& device() const { return device_; }

private:
    // Shared with nodes of graphs.
    class Owner {
    public:
        explicit Owner(CudaContext& device) : device_(device) {}
        ~Owner();
        Owner(const Owner&) = delete;
        Owner& operator=(const Owner&) = delete;
        cuda::CUevent handle = nullptr;

    private:
        CudaContext& device_;
    };

    // Throws UsageError if the last record was in a capture: the event has no time then.
    void require_no_capture(const char* api) const;
    // Throws UsageError if the stream is being captured, and the event lies outside of the capture.
    void require_inside(Stream& stream) const;

    CudaContext& device_;
    std::shared_ptr<Owner> owner_;  // null for events of other libraries
    cuda::CUevent handle_ = nullptr;
    bool is_shared_ = false;  // other libraries or processes record it without notice
    bool is_recorded_ = false;
    bool is_external_ = false;   // recorded in a capture of another library
    bool by_graph_ = false;      // a graph records it
    std::uint64_t capture_ = 0;  // of its last record
};

}  // namespace weft::runtime

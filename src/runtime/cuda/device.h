// GPUs of NVIDIA as devices, through the driver: their memory, copies, streams. A device is opened when it is first
// used: its primary context is retained, so that other libraries of the process (PyTorch, JAX) share it.
//
// The current context of a thread is left as it was found.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/stream.h"
#include "runtime/device.h"

namespace weft::runtime {

class CudaDevice final : public Device {
public:
    explicit CudaDevice(int ordinal);

    void synchronize() override;
    std::shared_ptr<Stream> make_stream() override;
    std::shared_ptr<Event> make_event() override;
    void begin_capture(Stream& stream, const CaptureOptions& options) override;
    std::shared_ptr<Graph> end_capture(Stream& stream) override;
    void* allocate(std::int64_t size_bytes, bool zeroed, Stream& stream) override;
    void free(void* data, std::int64_t size_bytes, Stream& stream) override;
    void copy(const CopyPlan& plan, Stream& stream) override;
    void fill(const CopyPlan& plan, Stream& stream) override;
    void clear(void* data, std::int64_t size_bytes, Stream& stream) override;
    void load(void* to, const void* from, std::int64_t size_bytes) override;
    void store(void* to, const void* from, std::int64_t size_bytes) override;
    Primitives& primitives() override;
    std::int64_t total_memory() const override;
    std::int64_t free_memory() const override;
    const Target* target() const override { return &target_; }
    const CudaProperties* cuda() const override { return &properties_; }

    // While it lives, the device's context is the current one of this thread.
    class Inside {
    public:
        // Throws UsageError where the driver refuses.
        explicit Inside(CudaDevice& device);
        // For what must not throw: gives memory back, ends.
        Inside(CudaDevice& device, std::nothrow_t) noexcept;
        ~Inside();
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

        bool is_inside() const { return is_inside_; }

    private:
        cuda::CUresult enter(cuda::CUcontext wanted);
        bool is_pushed_ = false, is_inside_ = false;
    };

    cuda::CUcontext context();
    bool is_open() const { return context_.load(std::memory_order_acquire) != nullptr; }
    // Throws UsageError where `result` is a failure of `call`.
    void check(cuda::CUresult result, const char* call) const { cuda::check(result, call, alias); }
    // Bytes in a line, in the order of the stream.
    void copy_line(void* to, const void* from, std::int64_t size_bytes, Stream& stream);
    // Done when it returns.
    void to_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream);
    void from_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream);
    // The same, or UsageError where there is no more memory.
    void* require_memory(std::int64_t size_bytes, bool zeroed, Stream& stream);

    void put_clear(void* data, std::int64_t size_bytes, Stream& stream);
    // A stream of another library.
    std::shared_ptr<Stream> adopt_stream(cuda::CUstream foreign);
    // For the work that is in the stream, and nothing else.
    void wait(Stream& stream);

private:
    void open();
    void put_copy(const CopyPlan& plan, Stream& stream);
    void put_fill(const CopyPlan& plan, Stream& stream);
    // Memory that was just made, from the byte `from` on; where that fails, it is given back.
    void clear_or_free(void* data, std::int64_t size_bytes, Stream& stream, std::int64_t from = 0);
    void verify(Stream& stream, const char* api);
    void run_plan(const CopyPlan& plan, Stream& stream);
    bool set_line(const CopyPlan& plan, Stream& stream);

    CudaProperties properties_;
    Target target_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<Stream>> streams_;  // besides the default one
    std::atomic<cuda::CUcontext> context_{nullptr};
};

// Memory of a device that is given back in the order of its stream.
class CudaMemory {
public:
    CudaMemory(CudaDevice& device, std::int64_t size_bytes, bool zeroed, Stream& stream)
        : device_(device),
          stream_(stream),
          size_bytes_(size_bytes),
          data_(device.require_memory(size_bytes, zeroed, stream)) {}
    ~CudaMemory() {
        if (data_) device_.free(data_, size_bytes_, stream_);
    }
    CudaMemory(const CudaMemory&) = delete;
    CudaMemory& operator=(const CudaMemory&) = delete;

    void* data() const { return data_; }
    std::int64_t size_bytes() const { return size_bytes_; }

private:
    CudaDevice& device_;
    Stream& stream_;
    std::int64_t size_bytes_;
    void* data_;
};

// By their ordinals; none where there is no driver. Asks for the driver at the first call.
std::span<CudaDevice* const> gpus();
// Those that have been used. Does not ask for the driver.
bool has_used_cuda();

}  // namespace weft::runtime

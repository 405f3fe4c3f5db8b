// The context of a CUDA device: the part of the device that its streams and its code need. A context is opened at its
// first use. The primary one is retained, so that other libraries of the process (PyTorch, JAX) share it.
//
// The current context of each thread is left unchanged. A thread that has none keeps the primary one of the first GPU
// after work there, as with NVIDIA's runtime, whose threads begin with that GPU: later launches then ask the driver
// once. The context of another GPU does not stay: libraries that ask NVIDIA's runtime for the present GPU would get it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/device.h"

namespace weft::runtime {

class CudaStream;
class StreamRecording;

class CudaContext : public Device {
public:
    const Target* target() const final { return &target_; }
    const GpuProperties* gpu() const final { return &properties_; }

    // While it lives, the device's context is the current one of this thread.
    class Inside {
    public:
        // Throws UsageError if the driver refuses.
        explicit Inside(CudaContext& device);
        // For code that must not throw: frees memory, ends.
        Inside(CudaContext& device, std::nothrow_t) noexcept;
        ~Inside();
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

        bool is_inside() const { return is_inside_; }

    private:
        // `stays`: in a thread that has no current context.
        cuda::CUresult enter(cuda::CUcontext wanted, bool stays);
        bool is_pushed_ = false, is_inside_ = false;
    };

    cuda::CUcontext context();
    bool is_primary() const { return properties_.is_primary; }
    bool is_open() const { return context_.load(std::memory_order_acquire) != nullptr; }
    // Throws UsageError if `result` is a failure of `call`.
    void check(cuda::CUresult result, const char* call) const { cuda::check(result, call, alias); }

    // The recording of a stream that another library captures, into its graph.
    virtual std::unique_ptr<StreamRecording> record_external(CudaStream& stream, cuda::CUgraph graph) = 0;

protected:
    CudaContext(std::string alias, int ordinal, bool is_primary);
    // Before the context is used.
    virtual void begin_pool() = 0;
    // Null if the context is going to be destroyed.
    void set_context(cuda::CUcontext context);

    GpuProperties properties_;

private:
    void open();
    bool stays_current() const { return is_primary() && ordinal == 0; }

    Target target_;
    std::mutex opening_;
    std::atomic<cuda::CUcontext> context_{nullptr};
};

// Whether any CUDA device was used. Does not ask the driver.
bool has_used_cuda();

}  // namespace weft::runtime

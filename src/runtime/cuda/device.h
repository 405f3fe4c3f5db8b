// GPUs of NVIDIA as devices, through the driver: their memory, copies, streams. A device is opened when it is first
// used: its primary context is retained, so that other libraries of the process (PyTorch, JAX) share it.
//
// The current context of a thread is left as it was found.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <unordered_set>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/stream.h"
#include "runtime/device.h"
#include "runtime/pool.h"

namespace weft::runtime {

// Memory whose freeing waits for all work, where there is none now.
void free_late_memory();

class CudaDevice;

// The device's default pool, which other libraries of the process may share.
class CudaPool final : public Pool {
public:
    explicit CudaPool(CudaDevice& device) : device_(device) {}

    bool is_supported() const override;
    bool is_enabled() const override;
    void set_enabled(bool is_enabled) override;
    std::uint64_t release_threshold() override;
    void set_release_threshold(std::uint64_t bytes) override;
    std::uint64_t used() override;
    std::uint64_t most_used() override;

    // The driver's own. Throws UsageError in the name of `api` where there is none.
    cuda::CUmemoryPool handle(const char* api);
    // Until the program says something else, this decides.
    void begin();
    // What is free goes back to the device.
    void trim();

private:
    std::uint64_t number(cuda::CUmemPool_attribute attribute, const char* api);

    CudaDevice& device_;
    enum class Use { undecided, off, on };
    std::atomic<Use> use_{Use::undecided};
};

class CudaDevice final : public Device {
public:
    explicit CudaDevice(int ordinal);
    // Of a context that somebody else has made, and destroys after close().
    CudaDevice(std::string alias, int ordinal, cuda::CUcontext context);

    void synchronize() override;
    std::shared_ptr<Stream> make_stream(int priority) override;
    std::shared_ptr<Event> make_event(bool has_time = false) override;
    void begin_capture(Stream& stream, const CaptureOptions& options) override;
    std::shared_ptr<Graph> end_capture(Stream& stream) override;
    void* allocate(std::int64_t size_bytes, bool zeroed, Stream& stream) override;
    void free(void* data, std::int64_t size_bytes, Stream& stream) override;
    void make_room() override;
    CudaPool* pool() override { return &pool_; }
    void copy(const CopyPlan& plan, Stream& stream) override;
    bool copy_from(void* to, Device& other, const void* from, std::int64_t size_bytes, Stream& stream) override;
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
    bool is_primary() const { return properties_.is_primary; }
    // Precondition: its work is done. From then on it is no device any more. Throws UsageError in the name of `api`
    // where memory of it is in use.
    void close(const char* api);
    bool is_open() const { return context_.load(std::memory_order_acquire) != nullptr; }
    // Throws UsageError where `result` is a failure of `call`.
    void check(cuda::CUresult result, const char* call) const { cuda::check(result, call, alias); }
    // Bytes in a line, in the order of the stream.
    void copy_line(void* to, const void* from, std::int64_t size_bytes, Stream& stream);
    // Done when it returns.
    void to_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream);
    // Done in the order of the stream, where the memory is pinned.
    void put_to_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream);
    void from_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream);
    // The same, or UsageError where there is no more memory.
    void* require_memory(std::int64_t size_bytes, bool zeroed, Stream& stream);

    // Whether the source is a line in memory that the driver reads in its turn.
    static bool is_pinned_line(const CopyPlan& plan);
    // What the recording of the stream keeps of a copy from the host: one inside of the device.
    CopyPlan kept_on_device(const CopyPlan& plan, CudaRecording& recording);
    void put_clear(void* data, std::int64_t size_bytes, Stream& stream);
    // A stream of another library.
    std::shared_ptr<Stream> adopt_stream(cuda::CUstream foreign);
    // For the work that is in the stream, and nothing else.
    void wait(Stream& stream);

    void for_each_stream(const std::function<void(Stream&)>& visit);
    // Whether memory that begins there is from its pool.
    bool is_pooled(const void* data) const;

private:
    void open();
    void begin_pool();
    // Memory from the pool, or from the driver where the pool is off; null where there is no more.
    void* take(std::int64_t size_bytes, Stream& stream);
    void give_back(void* data, Stream& stream);
    bool forget_plain(void* data);
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
    CudaPool pool_{*this};
    mutable std::mutex plain_mutex_;
    std::unordered_set<const void*> plain_;     // memory that is not from the pool, of a device that has one
    std::atomic<bool> has_plain_{false};        // whether there ever was any
    std::atomic<std::int64_t> allocations_{0};  // that are in use
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

// What maps contexts (map_cuda_context): the device of a name, or null; those whose contexts are no primary ones.
Device* mapped_device(std::string_view alias);
std::vector<CudaDevice*> mapped_devices();

// Those of primary contexts, by their ordinals; none where there is no driver. Asks for the driver at the first call.
std::span<CudaDevice* const> gpus();
// Those that have been used. Does not ask for the driver.
bool has_used_cuda();

}  // namespace weft::runtime

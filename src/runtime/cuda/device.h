// GPUs of NVIDIA as devices, through the driver: their memory, copies, streams.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_set>
#include <vector>

#include "runtime/cuda/context.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "runtime/memory_pool.h"

namespace weft::runtime {

class CudaDevice;

// Frees memory whose release waits for all work, if there is no work now.
void free_late_memory();
// Calls `free` when all work of the device is done that is in its streams now: at a later call that frees or waits.
void free_when_idle(CudaDevice& device, std::function<void()> free);

class CudaGeometry;
class CudaObjects;
class CudaRecording;
class ProgramAllocator;
struct Buffer;

// The device's default pool, which other libraries of the process may share.
class CudaPool final : public MemoryPool {
public:
    explicit CudaPool(CudaDevice& device) : device_(device) {}

    bool is_supported() const override;
    bool is_enabled() const override;
    void set_enabled(bool is_enabled) override;
    std::uint64_t release_threshold() override;
    void set_release_threshold(std::uint64_t bytes) override;
    std::uint64_t used() override;
    std::uint64_t most_used() override;

    // The driver's handle. Throws UsageError in the name of `api` if there is no pool.
    cuda::CUmemoryPool handle(const char* api);
    // Sets the initial use, until the program decides.
    void begin();
    // Returns free memory of the pool to the device.
    void trim();

private:
    std::uint64_t number(cuda::CUmemPool_attribute attribute, const char* api);

    CudaDevice& device_;
    enum class Use { undecided, off, on };
    std::atomic<Use> use_{Use::undecided};
};

class CudaDevice final : public CudaContext {
public:
    explicit CudaDevice(int ordinal);
    // For a context that the caller has made, and destroys after close().
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
    spatial::DeviceGeometry* geometry() const override;
    CudaObjects& objects() const;
    std::int64_t total_memory() const override;
    std::int64_t free_memory() const override;
    std::unique_ptr<StreamRecording> record_external(CudaStream& stream, cuda::CUgraph graph) override;

    // Precondition: its work is done. Ends the device. Throws UsageError in the name of `api` if its memory is in use.
    void close(const char* api);
    // As CudaStream::put_from_host(); during a capture, the graph keeps the bytes unless their memory is pinned.
    void from_host(void* to, const void* from, std::int64_t size_bytes, Stream& stream);

    // Whether the source is contiguous pinned memory, which the driver can read in the order of the stream.
    static bool is_pinned_line(const CopyPlan& plan);
    // For a captured copy from the host: a copy within the device, from bytes that the recording keeps.
    CopyPlan kept_on_device(const CopyPlan& plan, CudaRecording& recording);
    // Wraps a stream of another library.
    std::shared_ptr<Stream> adopt_stream(cuda::CUstream foreign);
    // runtime/foreign_memory.h
    std::shared_ptr<Stream> stream_of_handle(cuda::CUstream handle);
    // From a program's own allocator: runtime/allocator.h.
    std::shared_ptr<Buffer> take_from(std::shared_ptr<ProgramAllocator> allocator, std::int64_t size_bytes,
                                      bool zeroed);

    void for_each_stream(const std::function<void(Stream&)>& visit);
    // Whether memory that begins at `data` comes from its pool.
    bool is_pooled(const void* data) const;

private:
    void begin_pool() override;
    // Memory from the pool, or from the driver if the pool is off; null if there is no more.
    void* take(std::int64_t size_bytes, Stream& stream);
    void give_back(void* data, Stream& stream);
    bool forget_plain(void* data);
    void put_copy(const CopyPlan& plan, Stream& stream);
    // A copy to the host, as a part of the graph.
    void record_to_host(const CopyPlan& plan, Stream& stream, CudaRecording& recording);
    void put_fill(const CopyPlan& plan, Stream& stream);
    // Clears new memory from the byte `from` on; frees it on failure.
    void clear_or_free(void* data, std::int64_t size_bytes, Stream& stream, std::int64_t from = 0);
    void verify(Stream& stream, const char* api);
    void run_plan(const CopyPlan& plan, Stream& stream);
    bool set_line(const CopyPlan& plan, Stream& stream);

    std::mutex mutex_;
    CudaGeometry* const geometry_;                // lives as long as the device
    std::vector<std::weak_ptr<Stream>> streams_;  // without the default one
    CudaPool pool_{*this};
    mutable std::mutex plain_mutex_;
    std::unordered_set<const void*> plain_;     // memory that is not from the pool, of devices with a pool
    std::atomic<bool> has_plain_{false};        // whether there ever was any
    std::atomic<std::int64_t> allocations_{0};  // in use now
};

// Devices that map_cuda_context() made: the one of a name, or null; and those whose contexts are not primary.
Device* mapped_device(std::string_view alias);
std::vector<CudaDevice*> mapped_devices();

// GPUs with their primary contexts, by ordinal; empty if there is no driver. The first call asks the driver.
std::span<CudaDevice* const> gpus();
}  // namespace weft::runtime

// CPUs as devices: memory, copies, sums and products, on the host's own threads. Work of "cpu" is done when the call
// returns, so its stream has nothing to wait for. A device with separate memory does its work at the next wait
// (deferred.h).
#pragma once

#include <functional>

#include "runtime/cpu/memory_hooks.h"
#include "runtime/device.h"

namespace weft::runtime {

class DeferredStream;

class CpuDevice final : public Device {
public:
    // Without `memory`: the host's memory, from the pool of block_cache.h.
    explicit CpuDevice(std::string alias, const CpuMemory* memory = nullptr);

    void synchronize() override { default_stream().synchronize(); }
    std::shared_ptr<Stream> make_stream(int priority) override;
    std::shared_ptr<Event> make_event(bool has_time) override;
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
    bool should_privatise(std::span<const GradientView> gradients, std::int64_t threads) const override;
    std::int64_t total_memory() const override;
    std::int64_t free_memory() const override;

    // While it lives, this thread may access the memory of arrays for the device's work, and its further work on the
    // device is done at once.
    class Access {
    public:
        explicit Access(const Device& device) : memory_(static_cast<const CpuDevice&>(device).memory_) {
            if (memory_) enter();
        }
        ~Access() {
            if (memory_) leave();
        }
        Access(const Access&) = delete;
        Access& operator=(const Access&) = delete;

    private:
        void enter();
        void leave();
        const CpuMemory* memory_;
    };

    // Whether work is done at once, in memory that the host may access.
    bool is_direct() const { return !memory_; }
    // Null if work is done at once.
    DeferredStream* deferred() const { return memory_ ? deferred_where_not_inside() : nullptr; }

private:
    DeferredStream* deferred_where_not_inside() const;
    void run(std::function<void()> work);

    const CpuMemory* const memory_;  // lives for ever
};

// The device lives for ever.
Device& make_cpu_device(std::string alias, const CpuMemory* memory = nullptr);

}  // namespace weft::runtime

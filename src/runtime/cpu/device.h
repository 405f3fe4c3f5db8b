// CPUs as devices: their memory, copies, sums and products, on the host's own threads. All work is done when the call
// returns, so that streams have nothing to wait for.
#pragma once

#include "runtime/cpu/memory.h"
#include "runtime/device.h"

namespace weft::runtime {

class CpuDevice final : public Device {
public:
    // Without `memory`: that of the host, from the pool of block_cache.h.
    explicit CpuDevice(std::string alias, const CpuMemory* memory = nullptr);

    void synchronize() override {}
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

    // While it lives, the device's work may touch the memory of arrays.
    class Access {
    public:
        explicit Access(const Device& device) : memory_(static_cast<const CpuDevice&>(device).memory_) {
            if (memory_) memory_->open();
        }
        ~Access() {
            if (memory_) memory_->close();
        }
        Access(const Access&) = delete;
        Access& operator=(const Access&) = delete;

    private:
        const CpuMemory* memory_;
    };

private:
    const CpuMemory* const memory_;  // lives for ever
};

// They live for ever, as devices do.
Device& make_cpu_device(std::string alias, const CpuMemory* memory = nullptr);

}  // namespace weft::runtime

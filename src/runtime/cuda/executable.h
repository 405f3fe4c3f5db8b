// Loads a Binary for GPUs: one driver module for each device, made at the first launch of a kernel there.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/module.h"
#include "runtime/executable.h"

namespace weft::runtime {

class CudaExecutable;

class CudaKernel final : public LoadedKernel {
public:
    struct GridShape {
        unsigned x = 1, y = 1, z = 1;  // blocks
        unsigned threads = 1;
        bool together = false;  // CudaLaunch
    };
    CudaKernel(const KernelEntry& description, CudaExecutable& executable);

    void prepare(Device& device) const override;
    std::string origin(Device& device) const override;
    std::pair<int, int> max_occupancy_block(Device& device) const override;
    std::pair<int, int> thread_needs(Device& device) const override;
    int most_clustered(Device& device, int threads, int shared_bytes) const override;
    bool launch(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                Stream& stream) const override;

private:
    // `threads`: of a block.
    cuda::CUfunction function_on(CudaDevice& device, unsigned threads = 1) const;
    cuda::CUfunction function_of_large_blocks(CudaDevice& device, unsigned threads) const;
    std::int64_t blocks_at_once(CudaDevice& device, cuda::CUfunction function, unsigned threads) const;
    void require_clusters(CudaDevice& device, cuda::CUfunction function, int cluster) const;
    bool waits_for_previous() const;
    void launch_blocks(CudaDevice& device, cuda::CUfunction function, const GridShape& shape, unsigned shared_bytes,
                       int cluster, bool programmatic, cuda::CUstream stream, void** parameters) const;

    CudaExecutable& executable_;
    std::shared_ptr<const std::vector<std::string>> formats_;
    // By ordinal, for devices with primary contexts: the function, and those for blocks of up to 512 and 1024 threads.
    struct Functions {
        std::atomic<cuda::CUfunction> any = nullptr, of_large_blocks[2] = {};
        std::atomic<int> registers = 0;  // of the one that was launched first; 0: not known
    };
    mutable std::vector<Functions> functions_;
};

class CudaExecutable final : public Executable {
public:
    explicit CudaExecutable(Binary binary);
    ~CudaExecutable() override;

    const CudaKernel& kernel(std::string_view name) const override;
    // Loads the code on the device if needed. Throws UsageError if the driver rejects it. With a bound, code whose
    // registers suffice for blocks of so many threads.
    cuda::CUfunction function(const std::string& symbol, CudaDevice& device, unsigned block_bound = 0);
    // Source of the code on the device (CudaModule); "" if it has not been loaded.
    std::string origin(CudaDevice& device);

private:
    std::mutex mutex_;
    // By the device that has loaded it, and the bound.
    std::map<std::pair<CudaDevice*, unsigned>, CudaModule> modules_;
    std::vector<std::unique_ptr<CudaKernel>> kernels_;
};

// The grid of a launch as the kernel reads it, with the numbers that decompose a linear index.
CudaLaunch cuda_launch(const Grid& grid);

}  // namespace weft::runtime

// The strategies that kernels have, and launches that were prepared with one.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "program/launch/grid_order.h"
#include "program/launch/launch_strategy.h"

namespace weft::program {

// Null for nearly all kernels.
inline const LaunchStrategy* strategy_of(const KernelFacts& kernel) {
    return kernel.grid_queries.empty() ? nullptr : &grid_order();
}

// A launch that was prepared before and runs without the kernel and the host's lock: of a graph, or of a program of
// another system. `strategic` is the code of the same launch for the kernel's strategy, or null. This object must
// outlive the launch.
class PreparedLaunch {
public:
    PreparedLaunch(const CompiledKernel& plain, const CompiledKernel* strategic, runtime::Device& device,
                   const std::byte* block, const Grid& grid)
        : kernel_(&plain), block_(block) {
        if (strategic) begin(*strategic, device, grid);
    }
    const CompiledKernel& kernel() const { return *kernel_; }
    const std::byte* block() const { return block_; }

private:
    void begin(const CompiledKernel& strategic, runtime::Device& device, const Grid& grid);

    const CompiledKernel* kernel_;
    const std::byte* block_;
    std::unique_ptr<StrategicLaunch> launch_;
    std::vector<std::byte> larger_;
};

}  // namespace weft::program

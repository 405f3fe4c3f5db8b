// Launches the runtime's own kernels (devlib/cuda), which clang compiled to PTX when Weft was built. Their modules are
// loaded on a device at the first launch there.
#pragma once

#include <cstdint>

#include "devlib/cuda/strided.h"
#include "runtime/copy_plan.h"
#include "runtime/cuda/context.h"

namespace weft::runtime {

// A module of runtime/cuda_kernels.h, which cmake/cuda_kernels.cmake generates, and a kernel in it, which takes one
// struct.
struct OwnKernel {
    const char* ptx;
    const char* name;
};

inline constexpr unsigned kOwnThreads = 256;  // per block

// Precondition: `plan` is the struct that the kernel takes, and `blocks` is at least 1.
void launch_own(OwnKernel kernel, CudaContext& device, Stream& stream, unsigned blocks, unsigned threads,
                const void* plan);

// Launches enough blocks of kOwnThreads for `items`, up to a limit: the kernels loop with the grid's stride.
template <typename Plan>
void launch_own(OwnKernel kernel, CudaContext& device, Stream& stream, std::int64_t items, const Plan& plan) {
    constexpr std::int64_t kMostBlocks = 1 << 20;
    if (items <= 0) return;
    const std::int64_t blocks = (items + kOwnThreads - 1) / kOwnThreads;
    launch_own(kernel, device, stream, static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kOwnThreads,
               &plan);
}

// The elements of a plan, as kernels read them.
devlib::Strided strided(const CopyPlan& plan);
// Launches over a plan's `items` elements. If several elements of the destination share memory, one thread handles all
// in order.
template <typename Plan>
void launch_strided(OwnKernel kernel, CudaContext& device, Stream& stream, const CopyPlan& over, std::int64_t items,
                    const Plan& plan) {
    if (over.writes_once())
        launch_own(kernel, device, stream, items, plan);
    else
        launch_own(kernel, device, stream, 1, 1, &plan);
}

}  // namespace weft::runtime

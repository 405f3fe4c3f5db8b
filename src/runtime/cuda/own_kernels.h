// Launches of the runtime's own kernels (devlib/cuda), which clang compiled to PTX when Weft was built. A module of
// them is loaded for a device when its first kernel is launched there.
#pragma once

#include <cstdint>

#include "devlib/cuda/strided.h"
#include "runtime/copy_plan.h"
#include "runtime/cuda/device.h"

namespace weft::runtime {

// One of the modules in runtime/cuda_kernels.h, and a kernel in it, which takes one struct.
struct OwnKernel {
    const char* ptx;
    const char* name;
};

inline constexpr unsigned kOwnThreads = 256;  // of a block

// Precondition: `plan` is the struct that the kernel takes; `blocks` is at least 1.
void launch_own(OwnKernel kernel, CudaDevice& device, Stream& stream, unsigned blocks, unsigned threads,
                const void* plan);

// In blocks of kOwnThreads that are enough for `items`, as long as a grid may have them: kernels go on in steps.
template <typename Plan>
void launch_own(OwnKernel kernel, CudaDevice& device, Stream& stream, std::int64_t items, const Plan& plan) {
    constexpr std::int64_t kMostBlocks = 1 << 20;
    if (items <= 0) return;
    const std::int64_t blocks = (items + kOwnThreads - 1) / kOwnThreads;
    launch_own(kernel, device, stream, static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kOwnThreads,
               &plan);
}

// The elements of a plan, for kernels.
devlib::Strided strided(const CopyPlan& plan);
// Over them, `items` in all. Where an element of the destination shows several times, one thread takes all in order.
template <typename Plan>
void launch_strided(OwnKernel kernel, CudaDevice& device, Stream& stream, const CopyPlan& over, std::int64_t items,
                    const Plan& plan) {
    if (over.writes_once())
        launch_own(kernel, device, stream, items, plan);
    else
        launch_own(kernel, device, stream, 1, 1, &plan);
}

}  // namespace weft::runtime

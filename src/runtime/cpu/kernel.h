// CPU kernels: an entry point in this process, which the pool's threads call for chunks of the grid.
#pragma once

#include <atomic>

#include "binary/cpu_abi.h"
#include "runtime/cpu/interrupts.h"
#include "runtime/executable.h"

namespace weft::runtime {

namespace spatial {
class PreviousObjects;
}

class CpuKernel final : public LoadedKernel {
public:
    // `code`: the range of the entry and of all functions that it calls, except functions in C++ and the runtime's.
    CpuKernel(const KernelEntry& description, KernelEntryPoint entry, const CodeRange& code = {});

    KernelEntryPoint entry() const { return entry_; }
    bool launch(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                Stream& stream) const override;
    bool launch_fused(std::span<const FusedLaunch> all, std::int64_t piece, const Grid& grid,
                      const LaunchOptions& options) const override;
    void call(const std::byte* arguments, Fault& fault) const override;

private:
    bool launch_apart(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                      Stream& stream) const;
    bool run(KernelEntryPoint entry, const void* arguments, const Grid& grid, const LaunchOptions& options) const;
    bool run_finding(const spatial::PreviousObjects& previous, KernelEntryPoint entry, const void* arguments,
                     const Grid& grid, const LaunchOptions& options) const;
    bool is_quicker_exclusive(std::int64_t threads) const;
    void run_exclusive(KernelEntryPoint entry, const void* arguments, LaunchContext& context, std::int64_t count) const;

    // Null unless the launch can be interrupted within a thread.
    Interrupts* preempts(Interrupts& interrupts) const;

    KernelEntryPoint entry_;
    CodeRange code_;
    // Time of one thread in an exclusive launch, in nanoseconds, as launches measured it; 0 before the first.
    mutable std::atomic<double> cost_exclusive_ns_{0.0};
};

}  // namespace weft::runtime

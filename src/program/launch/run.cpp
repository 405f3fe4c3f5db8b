#include "program/launch/run.h"

#include <memory>
#include <optional>
#include <utility>

#include "program/host/host.h"
#include "program/host/settings.h"
#include "program/launch/fault.h"
#include "program/launch/late_fault.h"
#include "program/launch/recorded_run.h"
#include "runtime/verify.h"
#include "support/error.h"

namespace weft::program {

namespace {

// wp.config.verify_cuda: waits, and reports an error of the launch or of earlier work in its stream.
void verify(const CompiledKernel& kernel, runtime::Stream& stream) {
    try {
        stream.synchronize();
    } catch (const UsageError& error) {
        throw UsageError("launch()",
                         "kernel '" + kernel.description.name + "'" +
                             (kernel.location.empty() ? "" : " (" + kernel.location + ")") + " failed on '" +
                             stream.device().alias + "', or earlier work of its stream: " + error.what(),
                         error.category);
    }
}

// For a launch that is estimated to be short and has loops that may be long. The first question about interrupts gives
// up the host's lock for the rest of the launch.
class LateWithoutHost {
public:
    LateWithoutHost() : outer_(std::exchange(current, this)) {}
    ~LateWithoutHost() { current = outer_; }
    LateWithoutHost(const LateWithoutHost&) = delete;
    LateWithoutHost& operator=(const LateWithoutHost&) = delete;

    static bool ask() {
        if (!current->without_) current->without_.emplace();
        return host().interrupted && host().interrupted();
    }

private:
    static constinit thread_local LateWithoutHost* current;
    LateWithoutHost* outer_;
    std::optional<WithoutHost> without_;
};
constinit thread_local LateWithoutHost* LateWithoutHost::current = nullptr;

}  // namespace

bool runs_without_host(const CompiledKernel& kernel, const Grid& grid) {
    // Shorter launches keep the lock: giving it up and taking it again costs more than others could do meanwhile.
    constexpr double kShortNs = 5000.0;
    return kernel.loaded->cost_ns() * static_cast<double>(grid.count) > kShortNs;
}

void run(const CompiledKernel& kernel, runtime::Stream& stream, const std::byte* block, const Grid& grid,
         Fault* not_finite) {
    if (grid.count == 0) return;
    if (runtime::Recording* const recording = stream.recording())
        return record_run(*recording, kernel, stream, block, grid, not_finite != nullptr);
    Fault fault;  // uninitialised on purpose: clearing it would take longer than a short launch
    runtime::LaunchOptions options = kernel.launch_options();
    std::shared_ptr<runtime::LateFault> late;
    if (!kernel.description.sites.empty()) {
        if (!not_finite) late = late_fault(kernel, stream, block);
        if (late)
            options.late_fault = &late;
        else
            options.fault = &fault;
    }
    options.not_finite = not_finite;
    const std::span arguments(block, static_cast<std::size_t>(kernel.layout.size_bytes));
    bool finished = true;
    if (runs_without_host(kernel, grid)) {
        options.interrupted = host().interrupted;
        const WithoutHost without;
        finished = kernel.loaded->launch(arguments, grid, options, stream);
    } else if (kernel.loaded->may_be_long()) {
        const LateWithoutHost without;
        options.interrupted = &LateWithoutHost::ask;
        finished = kernel.loaded->launch(arguments, grid, options, stream);
    } else {
        finished = kernel.loaded->launch(arguments, grid, options, stream);
    }
    if (runtime::verifies_cuda() && !stream.device().is_cpu)
        verify(kernel, stream);
    else if (options.fault || options.not_finite)
        stream.synchronize();
    flush_prints();
    if (options.fault && fault.claimed) throw_fault(kernel, fault, block);
    if (!finished) host().stop();
}

}  // namespace weft::program

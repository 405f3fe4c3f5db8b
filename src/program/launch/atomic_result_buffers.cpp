#include "program/launch/atomic_result_buffers.h"

#include <algorithm>

#include "program/host/settings.h"
#include "runtime/bytes.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::program {
namespace {

std::int64_t threads_of(std::span<const std::int64_t> shape) {
    std::int64_t threads = 1;
    for (const std::int64_t extent : shape) threads *= extent;
    return threads;
}

}  // namespace

std::vector<runtime::Array> open_atomic_results(const std::vector<KernelFacts::AtomicResult>& kinds,
                                                std::span<const std::int64_t> shape, runtime::Device& device) {
    std::int64_t entry_bytes = 0;
    for (const auto& kind : kinds) entry_bytes += kind.is_log ? kind.element.size_bytes() : 0;
    std::vector<runtime::Array> returned;
    bool has_heads = false;
    for (const auto& kind : kinds) {
        runtime::Array array;
        if (!kind.is_log) {
            array = runtime::empty(kind.element, shape, device);
        } else if (!has_heads) {
            runtime::refuse_recording(device, "launch()",
                                      "a tape keeps how often the atomics of this kernel were called, which it cannot "
                                      "do for a graph; launch with record_tape=False, or outside of the capture");
            const std::int64_t threads = threads_of(shape);
            array = runtime::empty(kind.element, std::vector<std::int64_t>{1 + kMaxDims}, device);
            std::int64_t heads[1 + kMaxDims] = {threads};
            std::copy(shape.begin(), shape.end(), heads + 1);
            runtime::write_bytes(device, array.view.data, heads, sizeof heads);
            has_heads = true;
        } else {
            const std::int64_t most = settings().gradient_log_bytes / entry_bytes;
            array = runtime::empty(kind.element, std::vector<std::int64_t>{threads_of(shape) + most}, device);
        }
        returned.push_back(std::move(array));
    }
    return returned;
}

void close_atomic_results(const std::string& name, const CompiledKernel& compiled, std::span<runtime::Array> returned) {
    std::int64_t used = -1, threads = 0;
    for (const ir::ImplicitParameter& implicit : compiled.implicit_parameters) {
        if (implicit.kind != ir::ImplicitParameter::Kind::log) continue;
        const auto at = static_cast<std::size_t>(implicit.of);
        runtime::Array& log = returned[at];
        if (used < 0) {
            std::int64_t heads[1 + kMaxDims];
            runtime::read_bytes(*log.device, heads, log.view.data, sizeof heads);
            used = heads[0];
            threads = threads_of({heads + 1, static_cast<std::size_t>(std::max(compiled.description.tid_rank, 1))});
            continue;
        }
        if (used > log.view.shape[0]) {
            throw UsageError(
                "launch()",
                "the atomics of kernel '" + name + "' whose results the gradient needs were called " +
                    std::to_string(used - threads) +
                    " times in loops, which is more than the tape keeps of one launch (wp.config.gradient_log_bytes, " +
                    std::to_string(settings().gradient_log_bytes) +
                    "). help: allow more bytes, or launch with record_tape=False");
        }
        runtime::Array needed = runtime::empty(log.dtype, std::vector<std::int64_t>{used}, *log.device);
        runtime::copy_bytes(*log.device, needed.view.data, log.view.data, needed.size_bytes());
        log = std::move(needed);
    }
}

}  // namespace weft::program

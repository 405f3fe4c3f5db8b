// Runs of equal numbers, in chunks: counts the runs that begin in each, computes their places in the output, then
// writes values and starts, from which lengths follow. Numbers are compared by value: -0 equals 0, a NaN equals
// nothing.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

bool begins(const RunsPlan& plan, std::int64_t i) {
    if (i == 0) return true;
    const auto scalar = static_cast<Scalar>(plan.scalar);
    const char* const here = plan.values + i * plan.bytes;
    const char* const before = here - plan.bytes;
    if (facts_of(scalar).kind == Kind::floating)
        return !(load_number<double>(scalar, here) == load_number<double>(scalar, before));
    return load_number<std::uint64_t>(scalar, here) != load_number<std::uint64_t>(scalar, before);
}

// Calls step(i, begins, lower, runs) for each value of the chunk, 32 at a time: whether a run begins at i, how many
// begin at lower lanes, and how many in the group. All lanes of the warp take part.
template <typename Step>
void for_each_value(const RunsPlan& plan, std::int64_t chunk, const Step& step) {
    const std::int64_t begin = chunk * kWarpItems, end = least(plan.count, begin + kWarpItems);
    for (std::int64_t first = begin; first < end; first += kWarp) {
        const std::int64_t i = first + lane();
        const bool is_start = i < end && begins(plan, i);
        const auto all = static_cast<std::uint32_t>(__nvvm_vote_ballot_sync(kAllLanes, is_start));
        step(i, is_start, __builtin_popcount(all & ((1u << lane()) - 1)), __builtin_popcount(all));
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_runs_count(RunsPlan plan) {
    for (std::int64_t chunk = warp_index(); chunk < plan.chunks; chunk += warps()) {
        std::int64_t found = 0;
        for_each_value(plan, chunk, [&](std::int64_t, bool, int, int all) { found += all; });
        if (lane() == 0) plan.counts[chunk] = found;
    }
    if (thread_index() == 0) plan.found[1] = plan.found[2] = plan.found[3] = 0;
}

[[clang::device_kernel]] void weft_runs_write(RunsPlan plan) {
    for (std::int64_t chunk = warp_index(); chunk < plan.chunks; chunk += warps()) {
        std::int64_t next = plan.counts[chunk];
        for_each_value(plan, chunk, [&](std::int64_t i, bool is_start, int below, int all) {
            if (is_start) {
                const std::int64_t run = next + below;
                for (std::int64_t byte = 0; byte < plan.bytes && run < plan.values_room; ++byte)
                    plan.run_values[run * plan.values_stride + byte] = plan.values[i * plan.bytes + byte];
                plan.starts[run] = i;
            }
            next += all;
        });
    }
}

[[clang::device_kernel]] void weft_runs_lengths(RunsPlan plan) {
    const std::int64_t runs = plan.found[0];
    for (std::int64_t run = thread_index(); run < runs; run += threads()) {
        const std::int64_t start = plan.starts[run];
        const std::int64_t length = (run + 1 < runs ? plan.starts[run + 1] : plan.count) - start;
        if (length > 0x7FFFFFFF) {
            if (!is_first(plan.found + 1, run + 1)) continue;
            plan.found[2] = start;
            plan.found[3] = length;
        } else if (run < plan.lengths_room) {
            *reinterpret_cast<std::int32_t*>(plan.run_lengths + run * plan.lengths_stride) =
                static_cast<std::int32_t>(length);
        }
    }
}

[[clang::device_kernel]] void weft_runs_tell(RunsPlan plan) { *plan.told = static_cast<std::int32_t>(plan.found[0]); }

}  // extern "C"

}  // namespace weft::devlib

#include <string>

#include "devlib/cuda/primitives.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives/primitives.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

constexpr OwnKernel kRunsCount{k_run_length_encode_ptx, "weft_runs_count"},
    kRunsWrite{k_run_length_encode_ptx, "weft_runs_write"};
constexpr OwnKernel kRunsLengths{k_run_length_encode_ptx, "weft_runs_lengths"};

}  // namespace

std::int64_t CudaPrimitives::encode_runs(const Array& values, std::int64_t count, const Array& run_values,
                                         const Array& run_lengths) {
    if (count == 0) return 0;
    const Workplace at(values);
    const Array part = slice(values, 0, 0, count, 1);
    const Array packed = overlap(part, run_values) || overlap(part, run_lengths) ? clone(part) : contiguous(part);
    devlib::RunsPlan plan{};
    plan.values = static_cast<const char*>(packed.view.data);
    plan.count = count;
    plan.chunks = (count + devlib::kWarpItems - 1) / devlib::kWarpItems;
    plan.bytes = values.dtype.size_bytes();
    plan.scalar = static_cast<std::int32_t>(values.dtype.scalar());
    const CudaMemory counts = at.memory(8 * (plan.chunks + 1));
    plan.counts = static_cast<std::int64_t*>(counts.data());
    launch_own(kRunsCount, at.device, at.stream, plan.chunks * devlib::kWarp, plan);
    add_up_places(at, plan.counts, plan.chunks);
    at.device.to_host(&plan.runs, plan.counts + plan.chunks, sizeof plan.runs, at.stream);
    check_room_for_runs(run_values, plan.runs, "run_values");
    check_room_for_runs(run_lengths, plan.runs, "run_lengths");

    const CudaMemory starts = at.memory(8 * (plan.runs + 1));
    plan.starts = static_cast<std::int64_t*>(starts.data());
    plan.too_long = plan.starts + plan.runs;
    std::int64_t too_long = -1;
    at.device.from_host(plan.too_long, &too_long, sizeof too_long, at.stream);
    plan.run_values = static_cast<char*>(run_values.view.data);
    plan.values_stride = run_values.view.strides[0];
    plan.run_lengths = static_cast<char*>(run_lengths.view.data);
    plan.lengths_stride = run_lengths.view.strides[0];
    launch_own(kRunsWrite, at.device, at.stream, plan.chunks * devlib::kWarp, plan);
    launch_own(kRunsLengths, at.device, at.stream, plan.runs, plan);
    at.device.to_host(&too_long, plan.too_long, sizeof too_long, at.stream);
    if (too_long >= 0) {
        std::int64_t ends[2] = {0, count};
        const std::int64_t known = too_long + 1 < plan.runs ? 2 : 1;
        at.device.to_host(ends, plan.starts + too_long, known * 8, at.stream);
        throw_long_run(ends[0], ends[1] - ends[0]);
    }
    return plan.runs;
}

}  // namespace weft::runtime

#include <algorithm>
#include <array>

#include "runtime/array.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/geometry.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda_kernels.h"
#include "runtime/primitives.h"

namespace weft::runtime {

namespace {

constexpr OwnKernel kExtents[] = {{k_build_ptx, "weft_build_extents_f32"}, {k_build_ptx, "weft_build_extents_f64"}};
constexpr OwnKernel kCodes[] = {{k_build_ptx, "weft_build_codes_f32"}, {k_build_ptx, "weft_build_codes_f64"}};
constexpr OwnKernel kRuns[] = {{k_build_ptx, "weft_build_runs_f32"}, {k_build_ptx, "weft_build_runs_f64"}};
constexpr OwnKernel kLeaves[] = {{k_build_ptx, "weft_build_leaves_f32"}, {k_build_ptx, "weft_build_leaves_f64"}};
constexpr OwnKernel kGroups{k_build_ptx, "weft_build_groups"}, kCheck{k_build_ptx, "weft_build_check"};

// Threads that reduce: each adds by an atomic at the end.
constexpr std::int64_t kMostReducing = 1 << 16;

// Numbers of one dimension, for the time of a build.
Array numbers(Scalar scalar, std::int64_t count, Device& device) {
    const std::int64_t shape[] = {count};
    return empty(Type::scalar(scalar), shape, device);
}

}  // namespace

void CudaGeometry::build(devlib::BuildPlan plan, Scalar scalar) {
    if (plan.items == 0) return;
    Stream& stream = current_stream(device_);
    const bool is_double = scalar == Scalar::f64;
    const Array extents = numbers(Scalar::u64, 6, device_), codes = numbers(Scalar::u64, plan.items, device_),
                order = numbers(Scalar::i32, plan.items, device_);
    plan.extents = static_cast<devlib::UInt64*>(extents.view.data);
    plan.codes = static_cast<devlib::UInt64*>(codes.view.data);
    plan.order = static_cast<devlib::Int32*>(order.view.data);
    constexpr devlib::UInt64 kNone = ~devlib::UInt64{0};
    constexpr std::array<devlib::UInt64, 6> kNothing{kNone, kNone, kNone, 0, 0, 0};
    write(plan.extents, kNothing.data(), sizeof kNothing);
    launch_own(kExtents[is_double], device_, stream, std::min(plan.items, kMostReducing), plan);
    launch_own(kCodes[is_double], device_, stream, plan.items, plan);
    device_.primitives().sort_pairs(codes, order, plan.items, 0, info(Scalar::u64).bits);
    if (plan.groups) {
        const Array groups = numbers(Scalar::i32, plan.items, device_);
        plan.sorted_groups = static_cast<devlib::Int32*>(groups.view.data);
        launch_own(kGroups, device_, stream, plan.items, plan);
        device_.primitives().sort_pairs(groups, order, plan.items, 0, info(Scalar::i32).bits);
    }
    if (plan.run_count > 0) {
        constexpr std::int64_t kMostBlocks = 1 << 16;
        launch_own(kRuns[is_double], device_, stream, static_cast<unsigned>(std::min(plan.run_count, kMostBlocks)),
                   devlib::kRunThreads, &plan);
    }
    launch_own(kLeaves[is_double], device_, stream, plan.block_count, plan);
}

std::int64_t CudaGeometry::first_wrong(const std::int32_t* indices, std::int64_t count, std::int64_t points) {
    if (count == 0) return 0;
    Stream& stream = current_stream(device_);
    const Array found = numbers(Scalar::i64, 1, device_);
    std::int64_t first = count;
    write(found.view.data, &first, sizeof first);
    const devlib::CheckPlan plan{indices, count, points, static_cast<devlib::Int64*>(found.view.data)};
    launch_own(kCheck, device_, stream, std::min(count, kMostReducing), plan);
    static_cast<CudaStream&>(stream).read(&first, found.view.data, sizeof first);
    return first;
}

}  // namespace weft::runtime

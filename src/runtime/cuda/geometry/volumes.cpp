// The leaves and voxels of points in the memory of a CUDA device. The host reads how many there are, and then these,
// but no points.
#include <algorithm>
#include <bit>
#include <vector>

#include "devlib/cuda/voxels.h"
#include "runtime/array.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/geometry.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda_kernels.h"
#include "runtime/primitives.h"
#include "runtime/spatial/volume/build.h"

namespace weft::runtime {

namespace {

using devlib::nanovdb::kCornerBits, devlib::nanovdb::kLeafBits, devlib::nanovdb::kNodeBits;
using nanovdb::Coordinate, nanovdb::Topology;

// By the scalar: int32, float32, float64.
constexpr OwnKernel kVoxelExtents[] = {{k_voxels_ptx, "weft_voxels_extents_i32"},
                                       {k_voxels_ptx, "weft_voxels_extents_f32"},
                                       {k_voxels_ptx, "weft_voxels_extents_f64"}};
constexpr OwnKernel kVoxelCorners[] = {{k_voxels_ptx, "weft_voxels_corners_i32"},
                                       {k_voxels_ptx, "weft_voxels_corners_f32"},
                                       {k_voxels_ptx, "weft_voxels_corners_f64"}};
constexpr OwnKernel kVoxelKeys[] = {{k_voxels_ptx, "weft_voxels_keys_i32"},
                                    {k_voxels_ptx, "weft_voxels_keys_f32"},
                                    {k_voxels_ptx, "weft_voxels_keys_f64"}};
constexpr OwnKernel kMarkRuns{k_voxels_ptx, "weft_voxels_mark"}, kWriteRuns{k_voxels_ptx, "weft_voxels_write"};

// Threads that reduce: each adds by an atomic at the end.
constexpr std::int64_t kMostExtentThreads = 1 << 16;

class VoxelFinder {
public:
    VoxelFinder(CudaDevice& device, const devlib::VoxelPlan& plan, Scalar scalar)
        : device_(device),
          stream_(static_cast<CudaStream&>(current_stream(device))),
          plan_(plan),
          type_(scalar == Scalar::i32   ? 0u
                : scalar == Scalar::f32 ? 1u
                                        : 2u) {}

    // The first point without a voxel; -1 if all have one.
    std::int64_t find(bool by_voxels, Topology& topology) {
        const devlib::VoxelExtents extents = find_extents();
        if (extents.invalid != ~devlib::UInt64{0}) return static_cast<std::int64_t>(extents.invalid);
        if (extents.count == 0) return -1;
        valid_ = static_cast<std::int64_t>(extents.count);
        keys_ = numbers(Scalar::u64, plan_.count), order_ = numbers(Scalar::i32, plan_.count);
        plan_.keys = static_cast<devlib::UInt64*>(keys_.view.data);
        plan_.order = static_cast<devlib::Int32*>(order_.view.data);
        plan_.inner_bits = by_voxels ? kNodeBits + kLeafBits : kNodeBits;
        int bits = 0;
        for (int axis = 0; axis < 3; ++axis) {
            plan_.least[axis] = extents.least[axis];
            plan_.bits[axis] = static_cast<int>(std::bit_width(extents.greatest[axis] - extents.least[axis]));
            bits += plan_.bits[axis];
        }
        // One bit is left, so that no key is that of a point which does not count.
        const bool is_short = bits + plan_.inner_bits < 64;
        Array corners;
        if (!is_short) {
            launch_own(kVoxelCorners[type_], device_, stream_, plan_.count, plan_);
            corners = runs(/*shift=*/0, nullptr);
            plan_.corners = static_cast<const devlib::UInt64*>(corners.view.data);
            plan_.corner_count = corners.size();
            for (const std::uint64_t key : on_host(corners)) topology.corners.push_back(corner(key));
        }
        launch_own(kVoxelKeys[type_], device_, stream_, plan_.count, plan_);
        Array masks;
        topology.leaves = on_host(runs(by_voxels ? kLeafBits : 0, by_voxels ? &masks : nullptr));
        if (by_voxels) topology.masks = on_host(masks);
        if (is_short) number_tiles(topology);
        return -1;
    }

private:
    Array numbers(Scalar scalar, std::int64_t count) const {
        const std::int64_t shape[] = {count};
        return empty(Type::scalar(scalar), shape, device_);
    }
    std::vector<std::uint64_t> on_host(const Array& from) const {
        std::vector<std::uint64_t> to(static_cast<std::size_t>(from.size()));
        if (!to.empty()) stream_.read(to.data(), from.view.data, from.size() * 8);
        return to;
    }

    devlib::VoxelExtents find_extents() {
        constexpr devlib::UInt64 kNone = ~devlib::UInt64{0};
        devlib::VoxelExtents extents{kNone, {kNone, kNone, kNone}, {0, 0, 0}, 0};
        const Array memory = numbers(Scalar::u64, sizeof extents / 8);
        plan_.extents = static_cast<devlib::VoxelExtents*>(memory.view.data);
        device_.from_host(plan_.extents, &extents, sizeof extents, stream_);
        launch_own(kVoxelExtents[type_], device_, stream_, std::min(plan_.count, kMostExtentThreads), plan_);
        stream_.read(&extents, plan_.extents, sizeof extents);
        return extents;
    }

    // Sorts the keys. The result has those without their lowest bits, each once.
    Array runs(int shift, Array* masks) {
        device_.primitives().sort_pairs(keys_, order_, plan_.count, 0, 64);
        const Array places = numbers(Scalar::i32, valid_);
        devlib::VoxelRunPlan plan{};
        plan.keys = plan_.keys, plan.count = valid_, plan.shift = shift;
        plan.places = static_cast<devlib::Int32*>(places.view.data);
        launch_own(kMarkRuns, device_, stream_, valid_, plan);
        device_.primitives().scan(places, places, /*inclusive=*/true);
        std::int32_t count = 0;
        stream_.read(&count, plan.places + valid_ - 1, sizeof count);
        const Array heads = numbers(Scalar::u64, count);
        plan.heads = static_cast<devlib::UInt64*>(heads.view.data);
        if (masks) {
            const std::int64_t shape[] = {8 * std::int64_t{count}};
            *masks = zeros(Type::scalar(Scalar::u64), shape, device_);
            plan.masks = static_cast<devlib::UInt64*>(masks->view.data);
        }
        launch_own(kWriteRuns, device_, stream_, valid_, plan);
        return heads;
    }

    static Coordinate corner(std::uint64_t key) {
        constexpr std::uint64_t kPart = (1 << kCornerBits) - 1;
        return {devlib::nanovdb::from_corner_part(key >> (2 * kCornerBits)),
                devlib::nanovdb::from_corner_part(key >> kCornerBits & kPart),
                devlib::nanovdb::from_corner_part(key & kPart)};
    }

    // Replaces the tiles of the leaves, which are places in a box, by their numbers among those that exist.
    void number_tiles(Topology& topology) const {
        std::uint64_t previous = ~std::uint64_t{0};
        for (std::uint64_t& leaf : topology.leaves) {
            std::uint64_t tile = leaf >> kNodeBits;
            if (tile != previous) {
                previous = tile;
                std::int32_t at[3];
                for (int axis = 3; axis-- > 0; tile >>= plan_.bits[axis]) {
                    const std::uint64_t part = tile & ((std::uint64_t{1} << plan_.bits[axis]) - 1);
                    at[axis] = devlib::nanovdb::from_corner_part(part + plan_.least[axis]);
                }
                topology.corners.push_back({at[0], at[1], at[2]});
            }
            leaf = (topology.corners.size() - 1) << kNodeBits | (leaf & ((std::uint64_t{1} << kNodeBits) - 1));
        }
    }

    CudaDevice& device_;
    CudaStream& stream_;
    devlib::VoxelPlan plan_;
    std::size_t type_;
    std::int64_t valid_ = 0;
    Array keys_, order_;
};

}  // namespace

std::int64_t CudaGeometry::find_leaves(const spatial::DevicePoints& points, bool by_voxels,
                                       nanovdb::Topology& topology) {
    devlib::VoxelPlan plan{};
    plan.points = points.data, plan.mask = points.mask, plan.count = points.count, plan.map = points.map;
    if (plan.count == 0) return -1;
    return VoxelFinder(device_, plan, points.scalar).find(by_voxels, topology);
}

}  // namespace weft::runtime

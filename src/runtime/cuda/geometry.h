// Geometry on a CUDA device: the table of its ids, and the kernels for its trees and hash grids.
#pragma once

#include "runtime/cuda/objects.h"
#include "runtime/spatial/device_geometry.h"

namespace weft::runtime {

class CudaGeometry final : public spatial::DeviceGeometry {
public:
    explicit CudaGeometry(CudaDevice& device) : device_(device), objects_(device) {}

    spatial::DeviceTable& table() override { return objects_; }
    CudaObjects& objects() { return objects_; }
    void write(void* to, const void* from, std::int64_t size_bytes) override;
    void refit(const devlib::RefitPlan& plan, Scalar scalar, std::int64_t blocks,
               std::span<const std::int64_t> level_ends) override;
    std::int64_t grid_workspace(std::int64_t points, std::int64_t cells) const override;
    void build_grid(const spatial::GridBuild& build) override;

    void build(devlib::BuildPlan plan, Scalar scalar) override;
    std::int64_t first_wrong(const std::int32_t* indices, std::int64_t count, std::int64_t points) override;
    std::int64_t find_leaves(const spatial::DevicePoints& points, bool by_voxels, nanovdb::Topology& topology) override;

private:
    CudaDevice& device_;
    CudaObjects objects_;
};

}  // namespace weft::runtime

// A volume: a NanoVDB grid that kernels sample, look up and write, by its id (runtime/handles.h).
//
// It keeps the grid's bytes in memory of a device, and publishes a descriptor (devlib/spatial/volume.h) of them. The
// grid is checked when the volume is made. Afterwards kernels write values. Code that overwrites other bytes of it
// loses the guarantees of the check.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "devlib/spatial/volume.h"
#include "runtime/array.h"
#include "runtime/handles.h"
#include "runtime/spatial/volume/build.h"
#include "runtime/spatial/volume/cells.h"
#include "runtime/spatial/volume/grid.h"

namespace weft::runtime::spatial {

// A checked grid as kernels read it, at the start of `bytes`; `grid` is a copy of it in the host's memory.
class VolumeView : public Object {
public:
    VolumeView(nanovdb::Bytes grid, const nanovdb::GridDescription& description, Array bytes);
    VolumeView(const VolumeView&) = delete;
    VolumeView& operator=(const VolumeView&) = delete;

    const devlib::VolumeDescriptor& descriptor() const { return descriptor_; }
    // Counts writes through arrays that share the bytes.
    std::uint64_t version() const override;
    // Copies the grid's bytes, since kernels may write its values.
    Contents copy() const override;

private:
    devlib::VolumeDescriptor descriptor_{};
    std::vector<devlib::VolumeTile> tiles_;
    std::unique_ptr<nanovdb::CellTable> cells_;
    nanovdb::GridDescription grid_;
    Array bytes_;
};

// The type of a grid's values in kernels; none if kernels cannot read it, and for index grids.
Type value_type(nanovdb::GridType type);

// Throws UsageError in the name of `api` if volumes cannot be on this device; `help` says what would work.
void require_volume_device(const Device& device, std::string_view api, std::string_view help);

class Volume {
public:
    // The first grid in these bytes (uint8, contiguous), which are shared. Throws UsageError in the name of `api` if
    // they are no grid, or not on the CPU.
    Volume(Array bytes, std::string_view api);
    ~Volume();
    Volume(const Volume&) = delete;
    Volume& operator=(const Volume&) = delete;

    std::uint64_t id() const { return id_; }
    Device& device() const { return *bytes_.device; }
    const Array& bytes() const { return bytes_; }  // starts at this grid, and contains the grids that follow
    const nanovdb::GridDescription& grid() const { return grid_; }
    // Index grids: number of voxels with a place in the external array. Other grids: voxels of all leaves.
    std::uint64_t voxel_count() const;

    // Coordinates in the order of the tree: of the first voxels of leaves, and of the voxels that voxel_count() counts.
    std::vector<nanovdb::Coordinate> tiles() const;
    std::vector<nanovdb::Coordinate> voxels() const;
    // The values of one of the grid's blind data, as a view of its bytes: of their own type (bytes if kernels have no
    // such type), or of type `as`. Throws UsageError if its size does not divide theirs.
    Array blind_data(std::size_t index, std::optional<Type> as = std::nullopt) const;
    // The grid's bytes in the host's memory, as nanovdb::write_grid reads them.
    Array host_bytes() const;

    // Writes a dense box of values in C order; `first` is the coordinate of its first voxel. Other voxels stay
    // unchanged.
    void write_dense(nanovdb::Bytes values, const std::array<std::int64_t, 3>& extent, nanovdb::Coordinate first);
    // Replaces the grid by another of the same size in the same memory, under the same id.
    void replace(const nanovdb::Topology& topology, const nanovdb::Recipe& recipe, const nanovdb::Capacity& capacity);

private:
    void check(nanovdb::Bytes grid, std::string_view api);

    Array bytes_;
    nanovdb::GridDescription grid_;
    std::shared_ptr<VolumeView> view_;
    std::uint64_t id_ = 0;
};

}  // namespace weft::runtime::spatial

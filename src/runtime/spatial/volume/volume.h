// A volume: a NanoVDB grid that kernels sample, look up and write, by its id (runtime/handles.h).
//
// It keeps the grid's bytes in memory of a device, and publishes a descriptor (devlib/spatial/volume.h) of them. The
// grid is checked when the volume is made, on the host. Afterwards kernels write values. Code that overwrites other
// bytes of it loses the guarantees of the check.
//
// On a device with geometry of its own (device_geometry.h) the descriptor, the tiles of the root and the table of cells
// are in that device's memory, too.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
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

    // Its addresses are those of the device.
    const devlib::VolumeDescriptor& descriptor() const { return descriptor_; }
    // A view as the contents of an id: the descriptor in memory that kernels of its device read.
    static Contents contents_of(std::shared_ptr<const VolumeView> view);
    // Counts writes through arrays that share the bytes.
    std::uint64_t version() const override;
    // Copies the grid's bytes, since kernels may write its values.
    Contents copy() const override;

private:
    // The same grid in other bytes of the same device, which has geometry of its own.
    VolumeView(const VolumeView& of, Array bytes);

    void upload();

    devlib::VolumeDescriptor descriptor_{};
    std::vector<devlib::VolumeTile> tiles_;
    std::shared_ptr<const nanovdb::CellTable> cells_;
    nanovdb::GridDescription grid_;
    Array bytes_;
    BufferPtr memory_;  // on a device with geometry of its own: descriptor, tiles, cells
};

// The type of a grid's values in kernels; none if kernels cannot read it, and for index grids.
Type value_type(nanovdb::GridType type);

// Bytes in the host's memory. Throws UsageError in the name of `api` if their device cannot read them.
Array readable_bytes(const Array& bytes, std::string_view api);

class Volume {
public:
    // The first grid in these bytes (uint8, contiguous), which are shared. Throws UsageError in the name of `api` if
    // they are no grid. `host_bytes`: the same bytes in the host's memory, if the caller has them.
    Volume(Array bytes, std::string_view api, const Array* host_bytes = nullptr);
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
    // The grid's bytes in the host's memory, as nanovdb::write_grid reads them; read at once, also in a capture.
    Array host_bytes() const;

    // Replaces the grid by another of the same size in the same memory, under the same id.
    void replace(const nanovdb::Topology& topology, const nanovdb::Recipe& recipe, const nanovdb::Capacity& capacity);

private:
    void check(nanovdb::Bytes grid, std::string_view api);
    std::vector<nanovdb::LeafLocation> leaves() const;

    Array bytes_;
    nanovdb::GridDescription grid_;
    std::vector<nanovdb::LeafLocation> leaves_;  // if the bytes are not the host's
    std::shared_ptr<VolumeView> view_;
    std::uint64_t id_ = 0;
};

}  // namespace weft::runtime::spatial

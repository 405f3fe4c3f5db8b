// A volume: a NanoVDB grid that kernels sample, look up and write, by its id (runtime/spatial/handles.h).
//
// It keeps the grid's bytes, in memory of a device, and publishes a descriptor (devlib/spatial/volume.h) which finds
// them. The grid is checked when the volume is made; nobody else may change other bytes of it than values afterwards.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "devlib/spatial/volume.h"
#include "runtime/array.h"
#include "runtime/spatial/volume/grid.h"

namespace weft::runtime {

// How kernels see a checked grid whose bytes lie at `address`; `grid` are the same in the host's memory.
class VolumeView {
public:
    VolumeView(nanovdb::Bytes grid, const nanovdb::GridDescription& description, void* address);
    VolumeView(const VolumeView&) = delete;
    VolumeView& operator=(const VolumeView&) = delete;

    const devlib::VolumeDescriptor& descriptor() const { return descriptor_; }

private:
    devlib::VolumeDescriptor descriptor_{};
    std::vector<devlib::VolumeTile> tiles_;
};

}  // namespace weft::runtime

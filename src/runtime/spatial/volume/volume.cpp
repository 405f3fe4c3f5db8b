#include "runtime/spatial/volume/volume.h"

#include <algorithm>

namespace weft::runtime {

namespace {

// How many voxels have a place in an array outside.
std::uint64_t places_of(const nanovdb::GridDescription& grid) {
    const bool is_index = grid.type == nanovdb::GridType::index || grid.type == nanovdb::GridType::on_index;
    if (is_index) return grid.value_count == 0 ? 0 : grid.value_count - 1;
    return std::uint64_t{grid.nodes[0]} * nanovdb::kLeafVoxels;
}

}  // namespace

VolumeView::VolumeView(nanovdb::Bytes bytes, const nanovdb::GridDescription& grid, void* address) {
    using namespace nanovdb;
    devlib::VolumeDescriptor& d = descriptor_;
    for (int n = 0; n < 9; ++n) {
        d.matrix[n] = grid.matrix[n], d.matrix_f32[n] = static_cast<float>(grid.matrix[n]);
        d.inverse[n] = grid.inverse[n], d.inverse_f32[n] = static_cast<float>(grid.inverse[n]);
    }
    for (int n = 0; n < 3; ++n)
        d.translation[n] = grid.translation[n], d.translation_f32[n] = static_cast<float>(grid.translation[n]);
    d.voxel_count = static_cast<int>(std::min<std::uint64_t>(places_of(grid), INT32_MAX));
    d.grid = static_cast<unsigned char*>(address);
    const std::byte* tree = bytes.data() + grid::kBytes;
    d.leaves = grid::kBytes + read<std::uint64_t>(tree + tree::kOffsets);
    d.root = grid::kBytes + read<std::uint64_t>(tree + tree::kOffsets + 24);
    d.type = grid.type;
    const Layout layout = layout_of(grid.type);
    const auto count = read<std::uint32_t>(bytes.data() + d.root + root::kTileCount);
    for (std::uint32_t n = 0; n < count; ++n) {
        const std::uint64_t at = d.root + layout.root_bytes + n * layout.tile_bytes;
        const auto child = read<std::uint64_t>(bytes.data() + at + root::tile::kChild);
        devlib::VolumeTile tile{read<std::uint64_t>(bytes.data() + at + root::tile::kKey), nullptr, nullptr};
        (child != 0 ? tile.upper : tile.value) = d.grid + (child != 0 ? d.root + child : at + layout.tile_value);
        tiles_.push_back(tile);
    }
    // Of equal keys the first counts, as where tiles are looked at one after the other.
    std::stable_sort(tiles_.begin(), tiles_.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    const auto same = [](const auto& a, const auto& b) { return a.key == b.key; };
    tiles_.erase(std::unique(tiles_.begin(), tiles_.end(), same), tiles_.end());
    d.tiles = tiles_.data();
    d.tile_count = static_cast<unsigned>(tiles_.size());
}

}  // namespace weft::runtime

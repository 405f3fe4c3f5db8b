#include "runtime/spatial/volume/volume.h"

#include <algorithm>
#include <cstddef>

#include "runtime/bytes.h"
#include "runtime/spatial/device_geometry.h"
#include "support/error.h"
#include "types/objects.h"

namespace weft::runtime::spatial {

using namespace nanovdb;

// Layout that kernels read: types/objects.cpp has these fields in this order.
static_assert(offsetof(devlib::VolumeDescriptor, grid) == 256 &&
              offsetof(devlib::VolumeDescriptor, voxel_count) == 252);

namespace {

std::span<std::byte> span_of(const Array& bytes) { return {host_data(bytes), static_cast<std::size_t>(bytes.size())}; }

std::uint64_t places_of(const GridDescription& grid) {
    const bool is_index = grid.type == GridType::index || grid.type == GridType::on_index;
    if (is_index) return grid.value_count == 0 ? 0 : grid.value_count - 1;
    return std::uint64_t{grid.nodes[0]} * kLeafVoxels;
}

}  // namespace

VolumeView::VolumeView(Bytes bytes, const GridDescription& grid, Array of) : grid_(grid), bytes_(std::move(of)) {
    devlib::VolumeDescriptor& d = descriptor_;
    for (int n = 0; n < 9; ++n) {
        d.matrix[n] = grid.matrix[n], d.matrix_f32[n] = static_cast<float>(grid.matrix[n]);
        d.inverse[n] = grid.inverse[n], d.inverse_f32[n] = static_cast<float>(grid.inverse[n]);
    }
    for (int n = 0; n < 3; ++n)
        d.translation[n] = grid.translation[n], d.translation_f32[n] = static_cast<float>(grid.translation[n]);
    d.voxel_count = static_cast<int>(std::min<std::uint64_t>(places_of(grid), INT32_MAX));
    d.grid = static_cast<unsigned char*>(bytes_.view.data);
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
    // Among equal keys the first is kept, as a sequential search would find it.
    std::stable_sort(tiles_.begin(), tiles_.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    const auto same = [](const auto& a, const auto& b) { return a.key == b.key; };
    tiles_.erase(std::unique(tiles_.begin(), tiles_.end(), same), tiles_.end());
    d.tiles = tiles_.data();
    d.tile_count = static_cast<unsigned>(tiles_.size());
    cells_ = CellTable::make(bytes.first(grid.size_bytes), grid, d.grid);
    if (cells_) d.cells = cells_->view();
    upload();
}

VolumeView::VolumeView(const VolumeView& of, Array bytes)
    : descriptor_(of.descriptor_), tiles_(of.tiles_), cells_(of.cells_), grid_(of.grid_), bytes_(std::move(bytes)) {
    descriptor_.grid = static_cast<unsigned char*>(bytes_.view.data);
    for (devlib::VolumeTile& tile : tiles_)
        for (const unsigned char** const at : {&tile.upper, &tile.value})
            if (*at) *at = descriptor_.grid + (*at - of.descriptor_.grid);
    upload();
}

// All of it is one copy.
void VolumeView::upload() {
    DeviceGeometry* const geometry = bytes_.device->geometry();
    if (!geometry) return;
    constexpr std::size_t kTiles = (sizeof descriptor_ + kAlignment - 1) / kAlignment * kAlignment;
    const std::size_t tile_bytes = tiles_.size() * sizeof(devlib::VolumeTile);
    const std::size_t cells = (kTiles + tile_bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::vector<std::byte> all(cells + (cells_ ? cells_->size_bytes() : 0));
    const auto size = static_cast<std::int64_t>(all.size());
    memory_ = allocate(size, *bytes_.device);
    const auto* const at = static_cast<const unsigned char*>(memory_->data);
    descriptor_.tiles = reinterpret_cast<const devlib::VolumeTile*>(at + kTiles);
    if (cells_) descriptor_.cells = cells_->write(all.data() + cells, at + cells, descriptor_.grid);
    std::memcpy(all.data(), &descriptor_, sizeof descriptor_);
    if (tile_bytes > 0) std::memcpy(all.data() + kTiles, tiles_.data(), tile_bytes);
    geometry->write(memory_->data, all.data(), size);
}

Contents VolumeView::contents_of(std::shared_ptr<const VolumeView> view) {
    DeviceGeometry* const geometry = view->bytes_.device->geometry();
    const void* const descriptor = geometry ? view->memory_->data : static_cast<const void*>(&view->descriptor_);
    return {descriptor, std::move(view), geometry ? &geometry->table() : nullptr};
}

std::uint64_t VolumeView::version() const { return bytes_.buffer ? bytes_.buffer->version : 0; }

Contents VolumeView::copy() const {
    Array bytes = clone(slice(bytes_, 0, 0, static_cast<std::int64_t>(grid_.size_bytes), 1), *bytes_.device);
    // Kernels write values of leaves alone, so that the tiles and cells are as they were.
    if (memory_) return contents_of(std::shared_ptr<const VolumeView>(new VolumeView(*this, std::move(bytes))));
    const Array host = on_host(bytes);
    return contents_of(std::make_shared<const VolumeView>(span_of(host), grid_, std::move(bytes)));
}

Type value_type(GridType type) {
    switch (type) {
        case GridType::f32:
        case GridType::fp4:
        case GridType::fp8:
        case GridType::fp16:
        case GridType::fpn:
            return Type::scalar(Scalar::f32);
        case GridType::f64:
            return Type::scalar(Scalar::f64);
        case GridType::f16:
            return Type::scalar(Scalar::f16);
        case GridType::i16:
            return Type::scalar(Scalar::i16);
        case GridType::i32:
            return Type::scalar(Scalar::i32);
        case GridType::i64:
            return Type::scalar(Scalar::i64);
        case GridType::u8:
            return Type::scalar(Scalar::u8);
        case GridType::u32:
            return Type::scalar(Scalar::u32);
        case GridType::boolean:
            return Type::scalar(Scalar::boolean);
        case GridType::rgba8:
            return Type::vector(Scalar::u8, 4);
        case GridType::vec3f:
            return Type::vector(Scalar::f32, 3);
        case GridType::vec3d:
            return Type::vector(Scalar::f64, 3);
        case GridType::vec4f:
            return Type::vector(Scalar::f32, 4);
        case GridType::vec4d:
            return Type::vector(Scalar::f64, 4);
        case GridType::unknown:
        case GridType::mask:
        case GridType::index:
        case GridType::on_index:
        case GridType::point_index:
            break;
    }
    return Type::none();
}

Array readable_bytes(const Array& bytes, std::string_view api) {
    try {
        return on_host(bytes);
    } catch (const UsageError& error) {
        throw UsageError(api, std::to_string(bytes.size()) + " bytes at address " + std::to_string(bytes.address()) +
                                  " cannot be read as memory of '" + bytes.device->alias + "': " + error.what());
    }
}

Volume::Volume(Array bytes, std::string_view api, const Array* host_bytes) : bytes_(std::move(bytes)) {
    const Array host = host_bytes ? *host_bytes : readable_bytes(bytes_, api);
    check(span_of(host), api);
    id_ = publish(ObjectKind::volume, VolumeView::contents_of(view_));
}

Volume::~Volume() { withdraw(id_); }

void Volume::check(Bytes grid, std::string_view api) {
    if (bytes_.address() % kAlignment != 0)
        throw UsageError(api, "a grid begins at a multiple of " + std::to_string(kAlignment) +
                                  " bytes, and this array at " + std::to_string(bytes_.address()) +
                                  ". help: copy it (copy=True)");
    grid_ = check_grid(grid, api);
    if (!bytes_.device->is_host_memory) leaves_ = leaves_of(grid);
    view_ = std::make_shared<VolumeView>(grid, grid_, bytes_);
}

std::uint64_t Volume::voxel_count() const { return places_of(grid_); }

Array Volume::host_bytes() const {
    const WithoutRecording without;
    return on_host(slice(bytes_, 0, 0, static_cast<std::int64_t>(grid_.size_bytes), 1));
}

std::vector<LeafLocation> Volume::leaves() const {
    return bytes_.device->is_host_memory ? leaves_of(span_of(bytes_)) : leaves_;
}

std::vector<Coordinate> Volume::tiles() const {
    std::vector<Coordinate> result;
    for (const LeafLocation& leaf : leaves()) result.push_back(leaf.origin);
    return result;
}

std::vector<Coordinate> Volume::voxels() const {
    std::vector<Coordinate> result;
    result.reserve(voxel_count());
    const bool has_masks = grid_.type == GridType::on_index;
    const Array bytes = has_masks ? host_bytes() : Array();
    for (const LeafLocation& leaf : leaves()) {
        const std::byte* mask = has_masks ? host_data(bytes) + leaf.offset + leaf::kValueMask : nullptr;
        for (int n = 0; n < kLeafVoxels; ++n) {
            if (mask && (static_cast<unsigned>(mask[n / 8]) >> (n % 8) & 1) == 0) continue;
            result.push_back({leaf.origin.i + n / 64, leaf.origin.j + n / 8 % 8, leaf.origin.k + n % 8});
        }
    }
    return result;
}

Array Volume::blind_data(std::size_t index, std::optional<Type> as) const {
    const BlindData& data = grid_.blind_data[index];
    const Type known = value_type(data.type);
    const bool has_type = !known.is_none() && known.size_bytes() == data.value_size;
    const std::int64_t bytes = static_cast<std::int64_t>(data.value_count) * data.value_size;
    const Type type = as.value_or(has_type ? known : Type::scalar(Scalar::u8));
    if (type.is_none() || data.value_size % type.size_bytes() != 0)
        throw UsageError("Volume.feature_array()",
                         "feature array " + std::to_string(index) + " has " + std::to_string(data.value_count) +
                             " values of " + std::to_string(data.value_size) + " bytes, which " + type.python_name() +
                             " with " + std::to_string(type.size_bytes()) + " bytes does not divide",
                         ErrorCategory::type);
    Array result = slice(bytes_, 0, static_cast<std::int64_t>(data.offset), bytes, 1);
    result.dtype = type;
    result.view.shape[0] = bytes / type.size_bytes();
    result.view.strides[0] = type.size_bytes();
    return result;
}

void Volume::replace(const nanovdb::Topology& topology, const Recipe& recipe, const Capacity& capacity) {
    keep_apart(id_);
    HostWrite written(bytes_);
    build_grid(span_of(written.array()), topology, recipe, capacity);
    check(span_of(written.array()), "Volume.rebuild()");
    written.finish();
    spatial::replace(id_, VolumeView::contents_of(view_));
}

}  // namespace weft::runtime::spatial

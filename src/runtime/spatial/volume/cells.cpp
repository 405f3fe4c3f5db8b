#include "runtime/spatial/volume/cells.h"

#include <algorithm>

namespace weft::runtime::nanovdb {

namespace {

constexpr std::int64_t kMostConstants = 16;
// Limit of the table's cells, 8 bytes each: per leaf, at most an eighth of the smallest leaf of floats.
constexpr std::int64_t kCellsPerLeaf = 32, kCellsAnyway = 4096;
constexpr std::int64_t kLowerCells = 16;  // cells along an edge of an entry of an upper node

bool can_be_constant(GridType type) {
    const LeafKind kind = shape_of(type).leaf_kind;
    return kind == LeafKind::values || kind == LeafKind::on_index ||
           (kind == LeafKind::quantised && type != GridType::fpn);
}

}  // namespace

std::unique_ptr<CellTable> CellTable::make(Bytes grid, const GridDescription& description, unsigned char* address) {
    if (!can_be_constant(description.type) || description.nodes[0] == 0) return nullptr;
    const std::vector<LeafLocation> leaves = leaves_of(grid);
    Box box{{INT32_MAX, INT32_MAX, INT32_MAX}, {}};
    std::int64_t high[3] = {INT32_MIN, INT32_MIN, INT32_MIN}, cells = 1;
    for (const auto& [offset, origin] : leaves) {
        const std::int64_t at[3] = {origin.i >> 3, origin.j >> 3, origin.k >> 3};
        for (int a = 0; a < 3; ++a) box.low[a] = std::min(box.low[a], at[a]), high[a] = std::max(high[a], at[a]);
    }
    const std::int64_t most = kCellsPerLeaf * static_cast<std::int64_t>(leaves.size()) + kCellsAnyway;
    for (int a = 0; a < 3; ++a) {
        box.low[a] -= 1;
        box.count[a] = high[a] - box.low[a] + 2;
        cells *= box.count[a];
        if (cells > most) return nullptr;
    }
    std::unique_ptr<CellTable> table(new CellTable(grid, description.type, address, box));
    return table->fill(leaves) ? std::move(table) : nullptr;
}

CellTable::CellTable(Bytes grid, GridType type, unsigned char* address, const Box& box)
    : grid_(grid), type_(type), address_(address), box_(box) {}

std::size_t CellTable::index(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return static_cast<std::size_t>(((i - box_.low[0]) * box_.count[1] + j - box_.low[1]) * box_.count[2] + k -
                                    box_.low[2]);
}

const unsigned char* CellTable::leaf_of(const std::byte* value) {
    const Layout layout = layout_of(type_);
    const auto bytes = static_cast<std::size_t>(shape_of(type_).bytes);
    const std::string key(reinterpret_cast<const char*>(value), bytes);
    std::unique_ptr<std::byte[]>& leaf = constants_[key];
    if (!leaf) {
        if (static_cast<std::int64_t>(constants_.size()) > kMostConstants) return nullptr;
        // A leaf of indices without active voxels, none of which has a value in the external array.
        const bool has_places = shape_of(type_).leaf_kind == LeafKind::on_index;
        if (has_places && key.find_first_not_of('\0') != std::string::npos) return nullptr;
        leaf = std::make_unique<std::byte[]>(layout.leaf_bytes);
        if (shape_of(type_).leaf_kind == LeafKind::values)
            for (std::size_t n = 0; n < kLeafVoxels; ++n)
                std::memcpy(leaf.get() + layout.leaf_table + n * bytes, value, bytes);
        if (shape_of(type_).leaf_kind == LeafKind::quantised) std::memcpy(leaf.get() + leaf::kMinimum, value, bytes);
    }
    return reinterpret_cast<const unsigned char*>(leaf.get());
}

// False if a part of the cube is outside of the leaves' box.
bool CellTable::set(Coordinate corner, std::int64_t cells, const std::byte* value) {
    const std::int64_t from[3] = {corner.i >> 3, corner.j >> 3, corner.k >> 3};
    for (int a = 0; a < 3; ++a)
        if (from[a] <= box_.low[a] || from[a] + cells >= box_.low[a] + box_.count[a]) return false;
    const unsigned char* leaf = leaf_of(value);
    if (!leaf) return false;
    for (std::int64_t i = from[0]; i < from[0] + cells; ++i)
        for (std::int64_t j = from[1]; j < from[1] + cells; ++j)
            std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(index(i, j, from[2])), cells, leaf);
    return true;
}

bool CellTable::fill(const std::vector<LeafLocation>& leaves) {
    const Layout layout = layout_of(type_);
    const auto bytes = static_cast<std::size_t>(shape_of(type_).bytes);
    const std::byte* root = grid_.data() + grid::kBytes + read<std::uint64_t>(grid_.data() + grid::kBytes + 24);
    const std::byte* background = root + layout.background;
    const unsigned char* outside = leaf_of(background);
    if (!outside) return false;
    cells_.assign(static_cast<std::size_t>(box_.count[0] * box_.count[1] * box_.count[2]), outside);
    const auto bit = [](const std::byte* mask, unsigned n) {
        return (static_cast<unsigned>(mask[n / 8]) >> (n % 8) & 1) != 0;
    };
    const auto corner_of = [](Coordinate from, const Level& level, unsigned n) {
        const unsigned inside = (1u << level.log_dim) - 1;
        const auto along = [&](std::int32_t x, unsigned part) {
            return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) + ((part & inside) << level.log_child));
        };
        return Coordinate{along(from.i, n >> (2 * level.log_dim)), along(from.j, n >> level.log_dim), along(from.k, n)};
    };
    const auto is_other = [&](const std::byte* value) { return std::memcmp(value, background, bytes) != 0; };
    const auto tiles = read<std::uint32_t>(root + root::kTileCount);
    for (std::uint32_t t = 0; t < tiles; ++t) {
        const std::byte* tile = root + layout.root_bytes + t * layout.tile_bytes;
        const auto child = read<std::uint64_t>(tile + root::tile::kChild);
        if (child == 0 && is_other(tile + layout.tile_value)) return false;
        if (child == 0) continue;
        const std::byte* upper = root + child;
        const auto key = read<std::uint64_t>(tile + root::tile::kKey);
        const auto part = [&](int shift) {
            return static_cast<std::int32_t>(static_cast<std::uint32_t>(key >> shift & 0x1fffff) << 12);
        };
        const Coordinate corner{part(42), part(21), part(0)};
        for (unsigned n = 0; n < static_cast<unsigned>(kUpper.entries()); ++n) {
            const std::byte* entry = upper + layout.upper_table + n * layout.entry_bytes;
            const Coordinate at = corner_of(corner, kUpper, n);
            if (!bit(upper + kUpper.child_mask(), n)) {
                if (is_other(entry) && !set(at, kLowerCells, entry)) return false;
                continue;
            }
            const std::byte* lower = upper + read<std::uint64_t>(entry);
            for (unsigned m = 0; m < static_cast<unsigned>(kLower.entries()); ++m) {
                const std::byte* cell = lower + layout.lower_table + m * layout.entry_bytes;
                if (bit(lower + kLower.child_mask(), m) || !is_other(cell)) continue;
                if (!set(corner_of(at, kLower, m), 1, cell)) return false;
            }
        }
    }
    for (const auto& [offset, origin] : leaves)
        cells_[index(origin.i >> 3, origin.j >> 3, origin.k >> 3)] = address_ + offset;
    return true;
}

devlib::VolumeCells CellTable::view_of(const unsigned char* const* cells) const {
    devlib::VolumeCells result{cells, {}, {}};
    for (int a = 0; a < 3; ++a) {
        result.low[a] = static_cast<int>(box_.low[a]);
        result.count[a] = static_cast<int>(box_.count[a]);
    }
    return result;
}

devlib::VolumeCells CellTable::view() const { return view_of(cells_.data()); }

std::size_t CellTable::size_bytes() const {
    return constants_.size() * layout_of(type_).leaf_bytes + cells_.size() * sizeof(cells_[0]);
}

devlib::VolumeCells CellTable::write(std::byte* to, const unsigned char* at, const unsigned char* grid) const {
    const std::size_t leaf_bytes = layout_of(type_).leaf_bytes;
    std::map<const unsigned char*, const unsigned char*> constants;
    std::size_t end = 0;
    for (const auto& [value, leaf] : constants_) {
        std::memcpy(to + end, leaf.get(), leaf_bytes);
        constants[reinterpret_cast<const unsigned char*>(leaf.get())] = at + end;
        end += leaf_bytes;
    }
    for (std::size_t n = 0; n < cells_.size(); ++n) {
        const auto constant = constants.find(cells_[n]);
        nanovdb::write(to + end + n * sizeof(cells_[n]),
                       constant != constants.end() ? constant->second : grid + (cells_[n] - address_));
    }
    return view_of(reinterpret_cast<const unsigned char* const*>(at + end));
}

}  // namespace weft::runtime::nanovdb

#include "runtime/spatial/volume/build.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/spatial/parallel.h"

namespace weft::runtime::nanovdb {

namespace {

constexpr std::int64_t kGrain = 1 << 14;  // the least number of points in a task

template <typename Body>
void in_parallel(std::size_t count, std::int64_t grain, const Body& body) {
    for_ranges(static_cast<std::int64_t>(count), grain, [&](std::int64_t begin, std::int64_t end) {
        body(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
    });
}

template <typename T>
void sort_unique(std::vector<T>& values) {
    tbb::parallel_sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
}

// The corner of a root tile as an integer of the same order.
std::uint64_t corner_key(Coordinate at) {
    return corner_part(at.i) << (2 * kCornerBits) | corner_part(at.j) << kCornerBits | corner_part(at.k);
}
Coordinate corner_of(std::uint64_t key) {
    constexpr std::uint64_t kPart = (1 << kCornerBits) - 1;
    return {from_corner_part(key >> (2 * kCornerBits)), from_corner_part(key >> kCornerBits & kPart),
            from_corner_part(key & kPart)};
}

// A key for each distinct voxel, ascending: number of its root tile, entries in the nodes, voxel in the leaf.
std::vector<std::uint64_t> sorted_voxels(std::span<const Coordinate> points, bool by_leaf, Topology& topology) {
    std::vector<std::uint64_t> keys(points.size()), corners;
    in_parallel(points.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t n = begin; n < end; ++n) keys[n] = corner_key(points[n]);
    });
    for (std::size_t n = 0; n < keys.size(); ++n)
        if (n == 0 || keys[n] != keys[n - 1]) corners.push_back(keys[n]);
    sort_unique(corners);
    for (const std::uint64_t corner : corners) topology.corners.push_back(corner_of(corner));
    in_parallel(points.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        std::size_t tile = 0;
        for (std::size_t n = begin; n < end; ++n) {
            if (corners[tile] != keys[n])
                tile = static_cast<std::size_t>(std::lower_bound(corners.begin(), corners.end(), keys[n]) -
                                                corners.begin());
            const auto [i, j, k] = points[n];
            const std::uint64_t key = tile << kNodeBits | leaf_in_tile(i, j, k);
            keys[n] = by_leaf ? key : key << kLeafBits | kLeaf.entry(i, j, k);
        }
    });
    sort_unique(keys);
    return keys;
}

// The offsets of a grid's nodes.
struct NodeOffsets {
    NodeOffsets(GridType type, const Capacity& capacity) : layout(layout_of(type)) {
        root = grid::kBytes + tree::kBytes;
        upper = root + layout.root_bytes + capacity.upper * layout.tile_bytes;
        lower = upper + capacity.upper * layout.upper_bytes;
        leaf = lower + capacity.lower * layout.lower_bytes;
        end = leaf + capacity.leaves * layout.leaf_bytes;
    }
    Layout layout;
    std::uint64_t root, upper, lower, leaf, end;
};

// A box of voxels, both ends included; initially empty.
struct Box {
    std::int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};

    void add(const Box& other) {
        for (int a = 0; a < 3; ++a) {
            low[a] = std::min(low[a], other.low[a]);
            high[a] = std::max(high[a], other.high[a]);
        }
    }
    bool is_empty() const { return low[0] > high[0]; }
    void write_to(std::byte* at) const {
        std::memcpy(at, low, sizeof low);
        std::memcpy(at + sizeof low, high, sizeof high);
    }
};

Coordinate moved(Coordinate from, const Level& level, std::uint64_t entry) {
    const std::uint64_t inside = (1u << level.log_dim) - 1;
    const auto along = [&](std::int32_t x, std::uint64_t part) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) +
                                         (static_cast<std::uint32_t>(part & inside) << level.log_child));
    };
    return {along(from.i, entry >> (2 * level.log_dim)), along(from.j, entry >> level.log_dim), along(from.k, entry)};
}

// The box of a leaf's active voxels.
Box box_of(Coordinate origin, const std::uint64_t* mask) {
    const std::int32_t from[3] = {origin.i, origin.j, origin.k};
    int low[3] = {0, 0, 0}, high[3] = {7, 7, 7};
    if (mask) {
        // Words are planes of i, bytes in them rows of j.
        std::uint64_t rows = 0;
        low[0] = 8, high[0] = -1;
        for (int i = 0; i < 8; ++i) {
            if (mask[i] == 0) continue;
            rows |= mask[i];
            low[0] = std::min(low[0], i), high[0] = i;
        }
        low[1] = std::countr_zero(rows) / 8, high[1] = 7 - std::countl_zero(rows) / 8;
        unsigned row = 0;
        for (int j = 0; j < 8; ++j) row |= static_cast<unsigned>(rows >> (8 * j)) & 255;
        low[2] = std::countr_zero(row), high[2] = 31 - std::countl_zero(row);
    }
    Box box;
    for (int a = 0; a < 3; ++a) box.low[a] = from[a] + low[a], box.high[a] = from[a] + high[a];
    return box;
}

// Fills `count` entries of `size` bytes with the same value, and the rest of each with zeros.
void fill(std::byte* to, std::size_t count, std::size_t size, std::span<const std::byte> value) {
    const bool is_zero = std::all_of(value.begin(), value.end(), [](std::byte b) { return b == std::byte{0}; });
    if (is_zero || value.size() < size) std::memset(to, 0, count * size);
    if (is_zero) return;
    for (std::size_t n = 0; n < count; ++n) std::memcpy(to + n * size, value.data(), value.size());
}

class GridBuilder {
public:
    GridBuilder(std::span<std::byte> to, const Topology& topology, const Recipe& recipe, const Capacity& capacity)
        : to_(to), topology_(topology), recipe_(recipe), places_(recipe.type, capacity), layout_(places_.layout) {
        const auto bytes = static_cast<std::size_t>(shape_of(recipe.type).bytes);
        background_ = recipe.background.empty() ? std::vector<std::byte>(bytes) : recipe.background;
    }

    void run() {
        std::memset(to_.data(), 0, places_.upper);
        const std::size_t leaves = topology_.leaves.size();
        if (!topology_.masks.empty()) count_voxels();
        std::vector<Box> boxes(leaves);
        in_parallel(leaves, 64, [&](std::size_t begin, std::size_t end) {
            for (std::size_t n = begin; n < end; ++n) boxes[n] = write_leaf(n);
        });
        boxes = write_nodes(boxes, kLower, kLowerBits, places_.lower, layout_.lower_bytes, layout_.lower_table,
                            places_.leaf, layout_.leaf_bytes, topology_.leaves);
        boxes = write_nodes(boxes, kUpper, kUpperBits, places_.upper, layout_.upper_bytes, layout_.upper_table,
                            places_.lower, layout_.lower_bytes, parents_);
        write_root(boxes);
        write_header(boxes);
    }

private:
    std::byte* at(std::uint64_t offset) const { return to_.data() + offset; }

    Coordinate origin_of(std::uint64_t leaf) const {
        const Coordinate corner = topology_.corners[leaf >> kNodeBits];
        return moved(moved(corner, kUpper, leaf >> kLowerBits), kLower, leaf);
    }

    void count_voxels() {
        const std::size_t leaves = topology_.leaves.size();
        first_.resize(leaves);
        std::uint64_t first = 1;
        for (std::size_t n = 0; n < leaves; ++n) {
            first_[n] = first;
            for (int w = 0; w < 8; ++w) first += static_cast<std::uint64_t>(std::popcount(topology_.masks[8 * n + w]));
        }
    }

    Box write_leaf(std::size_t n) const {
        std::byte* leaf = at(places_.leaf + n * layout_.leaf_bytes);
        std::memset(leaf, 0, layout_.leaf_table);
        const std::uint64_t* mask = topology_.masks.empty() ? nullptr : &topology_.masks[8 * n];
        const Coordinate origin = origin_of(topology_.leaves[n]);
        const Box box = box_of(origin, mask);
        std::memcpy(leaf + leaf::kBoxMin, box.low, sizeof box.low);
        for (int a = 0; a < 3; ++a)
            write(leaf + leaf::kBoxExtent + a, static_cast<std::uint8_t>(box.high[a] - box.low[a]));
        write(leaf + leaf::kFlags, std::uint8_t{2});  // the leaf has a box
        if (mask)
            std::memcpy(leaf + leaf::kValueMask, mask, 64);
        else
            std::memset(leaf + leaf::kValueMask, 0xff, 64);
        switch (recipe_.type) {
            case GridType::index:
                write(leaf + leaf::kFirstIndex, std::uint64_t{1} + n * kLeafVoxels);
                break;
            case GridType::on_index: {
                write(leaf + leaf::kFirstIndex, first_[n]);
                std::uint64_t sums = 0, before = 0;
                for (int w = 1; w < 8; ++w) {
                    before += static_cast<std::uint64_t>(std::popcount(mask[w - 1]));
                    sums |= before << (9 * (w - 1));
                }
                write(leaf + leaf::kPrefixSums, sums);
                break;
            }
            default:
                fill(leaf + layout_.leaf_table, kLeafVoxels, background_.size(), background_);
        }
        return box;
    }

    // Writes the nodes of one level above `children`, whose keys are ascending. Returns the boxes of these nodes; their
    // keys are left in parents_.
    std::vector<Box> write_nodes(const std::vector<Box>& child_boxes, const Level& level, int bits, std::uint64_t place,
                                 Size bytes, Size table, std::uint64_t child_place, Size child_bytes,
                                 std::vector<std::uint64_t> children) {
        std::vector<std::size_t> first;
        parents_.clear();
        for (std::size_t n = 0; n < children.size(); ++n) {
            if (n != 0 && children[n] >> bits == children[n - 1] >> bits) continue;
            first.push_back(n);
            parents_.push_back(children[n] >> bits);
        }
        first.push_back(children.size());
        std::vector<Box> boxes(parents_.size());
        in_parallel(parents_.size(), 1, [&](std::size_t begin, std::size_t end) {
            for (std::size_t p = begin; p < end; ++p) {
                const std::uint64_t own = place + p * bytes;
                std::byte* node = at(own);
                std::memset(node, 0, table);
                fill(node + table, static_cast<std::size_t>(level.entries()), layout_.entry_bytes, background_);
                for (std::size_t c = first[p]; c < first[p + 1]; ++c) {
                    const std::uint64_t entry = children[c] & ((1ull << bits) - 1);
                    std::byte* word = node + level.child_mask() + entry / 64 * 8;
                    write(word, read<std::uint64_t>(word) | 1ull << (entry % 64));
                    write(node + table + entry * layout_.entry_bytes, child_place + c * child_bytes - own);
                    boxes[p].add(child_boxes[c]);
                }
                boxes[p].write_to(node + node::kBoxMin);
            }
        });
        return boxes;
    }

    void write_root(const std::vector<Box>& boxes) {
        std::byte* root = at(places_.root);
        for (const Box& box : boxes) whole_.add(box);
        whole_.write_to(root + root::kBoxMin);
        write(root + root::kTileCount, static_cast<std::uint32_t>(topology_.corners.size()));
        std::memcpy(root + layout_.background, background_.data(), background_.size());
        for (std::size_t t = 0; t < topology_.corners.size(); ++t) {
            std::byte* tile = root + layout_.root_bytes + t * layout_.tile_bytes;
            const auto [i, j, k] = topology_.corners[t];
            write(tile + root::tile::kKey, root_key(i, j, k));
            write(tile + root::tile::kChild, places_.upper + t * layout_.upper_bytes - places_.root);
            std::memcpy(tile + layout_.tile_value, background_.data(), background_.size());
        }
    }

    void write_header(const std::vector<Box>&) const {
        std::byte* grid = at(0);
        write(grid + grid::kMagic, kMagicGrid);
        write(grid + grid::kChecksum, kNoChecksum);
        write(grid + grid::kVersion, kBuiltVersion);
        write(grid + grid::kFlags, grid::kHasBox | grid::kIsBreadthFirst);
        write(grid + grid::kCount, std::uint32_t{1});
        write(grid + grid::kSize, places_.end);
        std::memcpy(grid + grid::kName, recipe_.name.data(), std::min<Size>(recipe_.name.size(), grid::kNameSize - 1));
        const bool is_index = recipe_.type == GridType::index || recipe_.type == GridType::on_index;
        write(grid + grid::kClass, is_index ? GridClass::index_grid : GridClass::unknown);
        write(grid + grid::kType, recipe_.type);
        if (is_index) write(grid + grid::kValueCount, topology_.active_voxels + 1);
        write(grid + grid::kBlindOffset, places_.end);
        write_map(grid);
        std::byte* tree = grid + grid::kBytes;
        const std::uint64_t offsets[] = {places_.leaf, places_.lower, places_.upper, places_.root};
        for (int level = 0; level < 4; ++level) write(tree + tree::kOffsets + 8 * level, offsets[level] - grid::kBytes);
        write(tree + tree::kNodeCounts, static_cast<std::uint32_t>(topology_.leaves.size()));
        write(tree + tree::kNodeCounts + 4, static_cast<std::uint32_t>(topology_.lower_nodes));
        write(tree + tree::kNodeCounts + 8, static_cast<std::uint32_t>(topology_.corners.size()));
        write(tree + tree::kVoxelCount, topology_.active_voxels);
    }

    void write_map(std::byte* grid) const {
        const Map& map = recipe_.map;
        std::byte* to = grid + grid::kMap;
        for (int n = 0; n < 9; ++n) {
            write(to + map::kMatrixF + 4 * n, static_cast<float>(map.matrix[n]));
            write(to + map::kInverseF + 4 * n, static_cast<float>(map.inverse[n]));
            write(to + map::kMatrix + 8 * n, map.matrix[n]);
            write(to + map::kInverse + 8 * n, map.inverse[n]);
        }
        for (int n = 0; n < 3; ++n) {
            write(to + map::kVectorF + 4 * n, static_cast<float>(map.translation[n]));
            write(to + map::kVector + 8 * n, map.translation[n]);
            // The lengths of the three edges of a voxel.
            const double x = map.matrix[n], y = map.matrix[3 + n], z = map.matrix[6 + n];
            write(grid + grid::kVoxelSize + 8 * n, std::sqrt(x * x + y * y + z * z));
        }
        write(to + map::kTaperF, 1.0f);
        write(to + map::kTaper, 1.0);
        write_world_box(grid + grid::kWorldBox);
    }

    void write_world_box(std::byte* to) const {
        if (whole_.is_empty()) return;
        const Map& map = recipe_.map;
        double low[3], high[3];
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = high[axis] = map.translation[axis];
            for (int n = 0; n < 3; ++n) {
                const double a = map.matrix[3 * axis + n] * whole_.low[n],
                             b = map.matrix[3 * axis + n] * (whole_.high[n] + 1.0);
                low[axis] += std::min(a, b);
                high[axis] += std::max(a, b);
            }
        }
        std::memcpy(to, low, sizeof low);
        std::memcpy(to + sizeof low, high, sizeof high);
    }

    std::span<std::byte> to_;
    const Topology& topology_;
    const Recipe& recipe_;
    NodeOffsets places_;
    const Layout& layout_;
    std::vector<std::byte> background_;
    std::vector<std::uint64_t> first_;    // index of each leaf's first active voxel
    std::vector<std::uint64_t> parents_;  // keys of the level that was written last
    Box whole_;
};

}  // namespace

std::optional<Map> make_map(const std::array<double, 9>& m, const std::array<double, 3>& translation) {
    Map map;
    map.matrix = m;
    map.translation = translation;
    const double cofactors[9] = {m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                                 m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                                 m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
    const double determinant = m[0] * cofactors[0] + m[1] * cofactors[3] + m[2] * cofactors[6];
    for (int n = 0; n < 9; ++n) {
        map.inverse[n] = cofactors[n] / determinant;
        if (!std::isfinite(map.inverse[n]) || !std::isfinite(m[n])) return std::nullopt;
    }
    return map;
}

void count_nodes(Topology& topology) {
    const auto& leaves = topology.leaves;
    for (std::size_t n = 0; n < leaves.size(); ++n)
        topology.lower_nodes += n == 0 || leaves[n] >> kLowerBits != leaves[n - 1] >> kLowerBits;
    if (topology.masks.empty()) topology.active_voxels = leaves.size() * kLeafVoxels;
    for (const std::uint64_t word : topology.masks)
        topology.active_voxels += static_cast<std::uint64_t>(std::popcount(word));
}

Topology tiles_of(std::span<const Coordinate> points) {
    Topology result;
    result.leaves = sorted_voxels(points, true, result);
    count_nodes(result);
    return result;
}

Topology voxels_of(std::span<const Coordinate> points) {
    Topology result;
    const std::vector<std::uint64_t> voxels = sorted_voxels(points, false, result);
    for (const std::uint64_t voxel : voxels) {
        if (result.leaves.empty() || result.leaves.back() != voxel >> kLeafBits) {
            result.leaves.push_back(voxel >> kLeafBits);
            result.masks.resize(result.masks.size() + 8);
        }
        const std::uint64_t n = voxel & (kLeafVoxels - 1);
        result.masks[result.masks.size() - 8 + n / 64] |= 1ull << (n % 64);
    }
    count_nodes(result);
    return result;
}

Capacity capacity_of(const Topology& topology) {
    return {topology.active_voxels, topology.leaves.size(), topology.lower_nodes, topology.corners.size()};
}

std::uint64_t grid_bytes(GridType type, const Capacity& capacity) { return NodeOffsets(type, capacity).end; }

void build_grid(std::span<std::byte> to, const Topology& topology, const Recipe& recipe, const Capacity& capacity) {
    GridBuilder(to, topology, recipe, capacity).run();
}

void write_dense(std::span<std::byte> grid, Bytes values, const std::array<std::int64_t, 3>& extent, Coordinate first) {
    const auto type = static_cast<GridType>(read<std::uint32_t>(grid.data() + grid::kType));
    const auto size = static_cast<std::int64_t>(shape_of(type).bytes);
    const Size table = layout_of(type).leaf_table;
    const std::vector<LeafLocation> leaves = leaves_of(grid);
    in_parallel(leaves.size(), 64, [&](std::size_t begin, std::size_t end) {
        for (std::size_t n = begin; n < end; ++n) {
            const auto [offset, origin] = leaves[n];
            const std::int64_t from[3] = {std::int64_t{origin.i} - first.i, std::int64_t{origin.j} - first.j,
                                          std::int64_t{origin.k} - first.k};
            std::int64_t low[3], high[3];  // range of the leaf's voxels within the box
            for (int a = 0; a < 3; ++a) {
                low[a] = std::clamp<std::int64_t>(-from[a], 0, 8);
                high[a] = std::clamp<std::int64_t>(extent[a] - from[a], 0, 8);
            }
            if (low[2] >= high[2]) continue;
            for (std::int64_t i = low[0]; i < high[0]; ++i) {
                for (std::int64_t j = low[1]; j < high[1]; ++j) {
                    const std::int64_t row = ((from[0] + i) * extent[1] + from[1] + j) * extent[2] + from[2] + low[2];
                    std::memcpy(grid.data() + offset + table + static_cast<Size>((i * 64 + j * 8 + low[2]) * size),
                                values.data() + row * size, static_cast<std::size_t>((high[2] - low[2]) * size));
                }
            }
        }
    });
}

}  // namespace weft::runtime::nanovdb

#include "runtime/spatial/volume/grid.h"

#include <zlib.h>

#include <bit>
#include <functional>

#include "support/error.h"

namespace weft::runtime::nanovdb {

namespace {

constexpr std::string_view kTypeNames[kGridTypes] = {
    "?",     "float",  "double",  "int16", "int32",  "int64",      "Vec3f",   "Vec3d",   "Mask",
    "Half",  "uint32", "bool",    "RGBA8", "Float4", "Float8",     "Float16", "FloatN",  "Vec4f",
    "Vec4d", "Index",  "OnIndex", "?",     "?",      "PointIndex", "Vec3u8",  "Vec3u16", "uint8"};

struct Tree {
    std::uint64_t root = 0, root_end = 0;  // offsets in the grid
    std::uint32_t tiles = 0;
    std::array<std::uint32_t, 3> nodes{};
};

// Walks the nodes of a grid. Every offset is checked before it is followed. The number of visited nodes of each kind is
// limited to the tree's, so that the walk ends soon even if nodes share children.
class Walk {
public:
    using Wrong = std::function<void(const std::string&)>;

    Walk(Bytes grid, GridType type, Wrong wrong)
        : grid_(grid), type_(type), layout_(layout_of(type)), wrong_(std::move(wrong)) {}

    template <typename Visit>
    Tree run(Visit&& visit) {
        Tree tree;
        const std::byte* header = grid_.data() + grid::kBytes;
        const auto root_offset = read<std::uint64_t>(header + tree::kOffsets + 24);
        tree.root = checked_offset(grid::kBytes, root_offset, layout_.root_bytes, "the root");
        for (unsigned level = 0; level < 3; ++level)
            tree.nodes[level] = read<std::uint32_t>(header + tree::kNodeCounts + 4 * level);
        tree.tiles = read<std::uint32_t>(at(tree.root) + root::kTileCount);
        if (tree.tiles > (grid_.size() - tree.root - layout_.root_bytes) / layout_.tile_bytes)
            wrong_("its root has " + std::to_string(tree.tiles) + " tiles, for which there are not enough bytes");
        tree.root_end = tree.root + layout_.root_bytes + tree.tiles * layout_.tile_bytes;
        std::array<std::uint32_t, 3> found{};
        const auto count = [&](unsigned level, const char* kind) {
            if (++found[level] > tree.nodes[level])
                wrong_("it has more " + std::string(kind) + " than the " + std::to_string(tree.nodes[level]) +
                       " that it says");
        };
        for (std::uint32_t t = 0; t < tree.tiles; ++t) {
            const std::byte* tile = at(tree.root + layout_.root_bytes + t * layout_.tile_bytes);
            const auto child = read<std::uint64_t>(tile + root::tile::kChild);
            if (child == 0) continue;
            count(2, "upper nodes");
            const auto upper = checked_offset(tree.root, child, layout_.upper_bytes, "an upper node");
            const auto key = read<std::uint64_t>(tile + root::tile::kKey);
            const Coordinate corner{from_key(key >> 42), from_key(key >> 21), from_key(key)};
            children(upper, kUpper, layout_.upper_table, corner, [&](std::uint64_t offset, Coordinate lower_corner) {
                count(1, "lower nodes");
                const auto lower = checked_offset(upper, offset, layout_.lower_bytes, "a lower node");
                children(lower, kLower, layout_.lower_table, lower_corner, [&](std::uint64_t leaf, Coordinate origin) {
                    count(0, "leaves");
                    visit(LeafLocation{checked_offset(lower, leaf, layout_.leaf_bytes, "a leaf"), origin});
                });
            });
        }
        if (found != tree.nodes)
            wrong_("its root leads to " + std::to_string(found[0]) + " leaves, " + std::to_string(found[1]) +
                   " lower and " + std::to_string(found[2]) + " upper nodes, and it says " +
                   std::to_string(tree.nodes[0]) + ", " + std::to_string(tree.nodes[1]) + " and " +
                   std::to_string(tree.nodes[2]));
        return tree;
    }

    const std::byte* at(std::uint64_t offset) const { return grid_.data() + offset; }

private:
    static std::int32_t from_key(std::uint64_t part) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(part & 0x1fffff) << 12);
    }

    // The offset of a node `offset` bytes after the one at `from`, or before it (modulo 2^64).
    std::uint64_t checked_offset(std::uint64_t from, std::uint64_t offset, std::uint64_t size, const char* what) const {
        const std::uint64_t result = from + offset;
        if (result % kAlignment != 0 || result < grid::kBytes + tree::kBytes || result > grid_.size() ||
            size > grid_.size() - result) {
            wrong_(std::string(what) + " of " + std::to_string(size) + " bytes is said to begin at byte " +
                   std::to_string(static_cast<std::int64_t>(result)) + " of " + std::to_string(grid_.size()) +
                   "; nodes lie inside of the grid, at multiples of 32");
        }
        return result;
    }

    template <typename Visit>
    void children(std::uint64_t node, const Level& level, Size table, Coordinate corner, Visit&& visit) const {
        const std::byte* mask = at(node) + level.child_mask();
        const int log_dim = level.log_dim;
        for (Size w = 0; w < level.mask_bytes() / 8; ++w) {
            for (auto word = read<std::uint64_t>(mask + 8 * w); word != 0; word &= word - 1) {
                const unsigned n = static_cast<unsigned>(64 * w) + static_cast<unsigned>(std::countr_zero(word));
                const unsigned inside = (1u << log_dim) - 1;
                const auto along = [&](std::int32_t from, unsigned part) {
                    return static_cast<std::int32_t>(static_cast<std::uint32_t>(from) + (part << level.log_child));
                };
                const Coordinate child{along(corner.i, n >> (2 * log_dim)), along(corner.j, n >> log_dim & inside),
                                       along(corner.k, n & inside)};
                visit(read<std::uint64_t>(at(node) + table + n * layout_.entry_bytes), child);
            }
        }
    }

    Bytes grid_;
    GridType type_;
    Layout layout_;
    Wrong wrong_;
};

// Checks of leaves besides their position.
class LeafCheck {
public:
    LeafCheck(Bytes grid, GridType type, std::uint64_t value_count, Walk::Wrong wrong)
        : grid_(grid),
          kind_(shape_of(type).leaf_kind),
          type_(type),
          value_count_(value_count),
          wrong_(std::move(wrong)) {}

    void operator()(const LeafLocation& leaf) const {
        const std::byte* at = grid_.data() + leaf.offset;
        if (type_ == GridType::fpn) {
            const auto flags = read<unsigned char>(at + leaf::kFlags);
            if (flags >> 5 > 4) wrong_("a leaf of quantised values has 2^" + std::to_string(flags >> 5) + " bits");
            if (fpn_leaf_bytes(flags) > grid_.size() - leaf.offset) wrong_("a leaf reaches beyond the end");
        }
        if (kind_ == LeafKind::on_index) sums(at);
        if (kind_ == LeafKind::index) indices(read<std::uint64_t>(at + leaf::kFirstIndex), kLeafVoxels);
    }

private:
    void indices(std::uint64_t first, std::uint64_t count) const {
        if (count != 0 && (first >= value_count_ || count > value_count_ - first))
            wrong_("a leaf has the indices " + std::to_string(first) + " to " + std::to_string(first + count - 1) +
                   ", and the grid says that there are " + std::to_string(value_count_) + " values");
    }
    void sums(const std::byte* at) const {
        const auto prefix = read<std::uint64_t>(at + leaf::kPrefixSums);
        std::uint64_t before = 0;
        for (unsigned word = 0; word < 8; ++word) {
            if (word > 0 && (prefix >> (9 * (word - 1)) & 511) != (before & 511))
                wrong_("a leaf's counts of active voxels do not fit its mask");
            before += static_cast<std::uint64_t>(std::popcount(read<std::uint64_t>(at + leaf::kValueMask + 8 * word)));
        }
        indices(read<std::uint64_t>(at + leaf::kFirstIndex), before);
    }

    Bytes grid_;
    LeafKind kind_;
    GridType type_;
    std::uint64_t value_count_;
    Walk::Wrong wrong_;
};

// The text in a field of fixed size.
std::string text(const std::byte* at, std::size_t size, const Walk::Wrong& wrong, const char* what) {
    const char* begin = reinterpret_cast<const char*>(at);
    const void* end = std::memchr(begin, 0, size);
    if (!end) wrong(std::string(what) + " has no end");
    return {begin, static_cast<const char*>(end)};
}

std::vector<BlindData> blind_data(Bytes grid, const Walk::Wrong& wrong) {
    const auto offset = read<std::uint64_t>(grid.data() + grid::kBlindOffset);
    const auto count = read<std::uint32_t>(grid.data() + grid::kBlindCount);
    if (count == 0) return {};
    if (offset > grid.size() || count > (grid.size() - offset) / blind::kBytes || offset % 8 != 0)
        wrong("it has " + std::to_string(count) + " arrays of blind data, described from byte " +
              std::to_string(offset) + " on, and " + std::to_string(grid.size()) + " bytes");
    std::vector<BlindData> result;
    for (std::uint32_t n = 0; n < count; ++n) {
        const std::uint64_t header = offset + n * blind::kBytes;
        const std::byte* at = grid.data() + header;
        BlindData data;
        data.offset = header + read<std::uint64_t>(at + blind::kDataOffset);
        data.value_count = read<std::uint64_t>(at + blind::kValueCount);
        data.value_size = read<std::uint32_t>(at + blind::kValueSize);
        const auto type = read<std::uint32_t>(at + blind::kType);
        data.type = type < kGridTypes ? static_cast<GridType>(type) : GridType::unknown;
        // Before version 32.5, this field contained flags.
        if (read<std::uint32_t>(grid.data() + grid::kVersion) < version(32, 5, 0))
            data.value_size = static_cast<std::uint32_t>(shape_of(data.type).bytes);
        data.name = text(at + blind::kName, blind::kBytes - blind::kName, wrong, "the name of its blind data");
        if (data.offset > grid.size() ||
            (data.value_size != 0 && data.value_count > (grid.size() - data.offset) / data.value_size))
            wrong("its blind data '" + data.name + "', " + std::to_string(data.value_count) + " values of " +
                  std::to_string(data.value_size) + " bytes, do not lie inside of the grid");
        result.push_back(std::move(data));
    }
    return result;
}

std::string name_of(Bytes grid, const std::vector<BlindData>& blind, const Walk::Wrong& wrong) {
    const std::byte* at = grid.data() + grid::kName;
    if (!(read<std::uint32_t>(grid.data() + grid::kFlags) & grid::kHasLongName))
        return text(at, grid::kNameSize, wrong, "its name");
    const auto offset = read<std::uint64_t>(grid.data() + grid::kBlindOffset);
    for (std::size_t n = 0; n < blind.size(); ++n) {
        if (read<std::uint32_t>(grid.data() + offset + n * blind::kBytes + blind::kClass) != blind::kClassGridName)
            continue;
        return text(grid.data() + blind[n].offset, blind[n].value_count, wrong, "its name");
    }
    wrong("its name should be in blind data, and is not there");
    return {};
}

std::uint32_t crc(std::uint32_t start, const std::byte* from, std::uint64_t size) {
    return static_cast<std::uint32_t>(crc32_z(start, reinterpret_cast<const Bytef*>(from), size));
}

// The checksum of the checksums of blocks of 4096 bytes; the last block includes the rest.
std::uint32_t blocked_crc(Bytes bytes) {
    constexpr std::uint64_t kBlock = 4096;
    const std::uint64_t blocks = bytes.size() / kBlock;
    if (bytes.empty()) return ~0u;
    std::uint32_t result = 0;
    for (std::uint64_t n = 0; n < blocks; ++n) {
        const std::uint64_t size = n + 1 == blocks ? bytes.size() - n * kBlock : kBlock;
        const std::uint32_t sum = crc(0, bytes.data() + n * kBlock, size);
        result = crc(result, reinterpret_cast<const std::byte*>(&sum), sizeof sum);
    }
    return result;
}

constexpr std::uint64_t kHeadBegin = grid::kVersion, kHeadEnd = grid::kBytes + tree::kBytes;

}  // namespace

std::string_view type_name(GridType type) {
    return static_cast<unsigned>(type) < kGridTypes ? kTypeNames[static_cast<unsigned>(type)] : kTypeNames[0];
}

GridDescription check_grid(Bytes bytes, std::string_view api) {
    const Walk::Wrong wrong = [&](const std::string& what) {
        throw UsageError(api, "the bytes are no NanoVDB grid that can be used: " + what, ErrorCategory::runtime);
    };
    if (bytes.size() < grid::kBytes + tree::kBytes)
        wrong("there are " + std::to_string(bytes.size()) + " bytes, and a grid has at least " +
              std::to_string(grid::kBytes + tree::kBytes));
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0)
        wrong("they begin at an address that is no multiple of " + std::to_string(kAlignment));
    const auto magic = read<std::uint64_t>(bytes.data() + grid::kMagic);
    if (magic != kMagicAny && magic != kMagicGrid) {
        const bool swapped = __builtin_bswap64(magic) == kMagicAny || __builtin_bswap64(magic) == kMagicGrid;
        wrong(swapped ? "they are of a computer with the other order of bytes"
                      : "they do not begin with 'NanoVDB0' or 'NanoVDB1'");
    }
    GridDescription result;
    result.version = read<std::uint32_t>(bytes.data() + grid::kVersion);
    if (result.version >> 21 != kMajorVersion)
        wrong("the format's version is " + std::to_string(result.version >> 21) + ", and " +
              std::to_string(kMajorVersion) + " is expected");
    result.size_bytes = read<std::uint64_t>(bytes.data() + grid::kSize);
    if (result.size_bytes > bytes.size() || result.size_bytes < grid::kBytes + tree::kBytes)
        wrong("the grid says that it has " + std::to_string(result.size_bytes) + " bytes, and there are " +
              std::to_string(bytes.size()));
    const Bytes grid = bytes.first(result.size_bytes);
    const auto type = read<std::uint32_t>(grid.data() + grid::kType);
    if (type >= kGridTypes || shape_of(static_cast<GridType>(type)).leaf_kind == LeafKind::none)
        wrong("the type of its values has the number " + std::to_string(type) + ", which is not known");
    result.type = static_cast<GridType>(type);
    const auto grid_class = read<std::uint32_t>(grid.data() + grid::kClass);
    if (grid_class >= kGridClasses)
        wrong("its class has the number " + std::to_string(grid_class) + ", which is not known");
    result.grid_class = static_cast<GridClass>(grid_class);
    result.index = read<std::uint32_t>(grid.data() + grid::kIndex);
    result.count = read<std::uint32_t>(grid.data() + grid::kCount);
    result.value_count = read<std::uint64_t>(grid.data() + grid::kValueCount);
    result.active_voxels = read<std::uint64_t>(grid.data() + grid::kBytes + tree::kVoxelCount);
    const Tree tree = Walk(grid, result.type, wrong).run(LeafCheck(grid, result.type, result.value_count, wrong));
    result.nodes = tree.nodes;
    result.root_end = tree.root_end;
    result.blind_data = blind_data(grid, wrong);
    result.name = name_of(grid, result.blind_data, wrong);
    std::memcpy(result.matrix.data(), grid.data() + grid::kMap + map::kMatrix, sizeof result.matrix);
    std::memcpy(result.inverse.data(), grid.data() + grid::kMap + map::kInverse, sizeof result.inverse);
    std::memcpy(result.translation.data(), grid.data() + grid::kMap + map::kVector, sizeof result.translation);
    std::memcpy(result.voxel_size.data(), grid.data() + grid::kVoxelSize, sizeof result.voxel_size);
    return result;
}

void check_checksum(Bytes grid, const GridDescription& description, std::string_view api) {
    const auto head = read<std::uint32_t>(grid.data() + grid::kChecksum),
               tail = read<std::uint32_t>(grid.data() + grid::kChecksum + 4);
    const std::uint32_t none = ~0u;
    const bool is_old = description.version <= version(32, 6, 0);
    const std::uint64_t head_end = is_old ? description.root_end : kHeadEnd;
    const bool fits_head = head == none || head == crc(0, grid.data() + kHeadBegin, head_end - kHeadBegin);
    const bool fits_tail = is_old || tail == none || tail == blocked_crc(grid.subspan(kHeadEnd));
    if (!fits_head || !fits_tail)
        throw UsageError(api, "the grid '" + description.name + "' has been damaged: its " +
                                  (fits_head ? "nodes do" : "header does") + " not fit its checksum");
}

std::vector<LeafLocation> leaves_of(Bytes grid) {
    std::vector<LeafLocation> result;
    const auto type = static_cast<GridType>(read<std::uint32_t>(grid.data() + grid::kType));
    result.reserve(read<std::uint32_t>(grid.data() + grid::kBytes + tree::kNodeCounts));
    Walk(grid, type, [](const std::string& what) {
        throw InternalError("a checked grid: " + what);
    }).run([&](const LeafLocation& leaf) { result.push_back(leaf); });
    return result;
}

std::uint64_t checksum_of(Bytes grid) {
    const std::uint64_t head = crc(0, grid.data() + kHeadBegin, kHeadEnd - kHeadBegin);
    return head | static_cast<std::uint64_t>(blocked_crc(grid.subspan(kHeadEnd))) << 32;
}

}  // namespace weft::runtime::nanovdb

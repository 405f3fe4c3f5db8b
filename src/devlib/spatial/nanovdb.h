// The NanoVDB format, version 32, as numbers: the offset of each field of a grid, for every type of value.
//
// A grid is one block of bytes without pointers, so that it can be copied, stored and read on any device:
//
//     [grid 672][tree 64][root][root's tiles] [upper nodes] [lower nodes] [leaves] [descriptions of blind data] [blind
//     data]
//
// A tree has four levels. The root has a table of tiles, each a cube of 4096 voxels along an edge, found by a key. An
// upper node divides such a cube into 32^3 parts, a lower node one of these into 16^3, a leaf one of these into 8^3
// voxels. Each entry of an inner node is the offset of a child, or a value for its whole part; two masks distinguish
// these and mark active values. All nodes begin at multiples of 32 bytes.
//
// The sizes follow from the value's size and alignment as those of C structs do: layout() computes them. The C++ tests
// compare them with NanoVDB's own headers. This file needs no system header, as the host and the device library share
// it.
#pragma once

namespace weft::devlib::nanovdb {

using Size = unsigned long;
using Word = unsigned long;
static_assert(sizeof(Word) == 8);

// The values in files.
enum class GridType : unsigned {
    unknown = 0,
    f32 = 1,
    f64 = 2,
    i16 = 3,
    i32 = 4,
    i64 = 5,
    vec3f = 6,
    vec3d = 7,
    mask = 8,
    f16 = 9,
    u32 = 10,
    boolean = 11,
    rgba8 = 12,
    fp4 = 13,  // floats of 4, 8 or 16 bits between a leaf's minimum and maximum
    fp8 = 14,
    fp16 = 15,
    fpn = 16,  // the number of bits varies by leaf: 1, 2, 4, 8 or 16
    vec4f = 17,
    vec4d = 18,
    index = 19,     // positions of values in an external array: for each voxel of a leaf
    on_index = 20,  // for active voxels only
    point_index = 23,
    u8 = 26,
};
inline constexpr unsigned kGridTypes = 27;

enum class GridClass : unsigned {
    unknown = 0,
    level_set = 1,
    fog_volume = 2,
    staggered = 3,
    point_index = 4,
    point_data = 5,
    topology = 6,
    voxel_volume = 7,
    index_grid = 8,
    tensor_grid = 9,
    voxel_bvh = 10,
};
inline constexpr unsigned kGridClasses = 11;

inline constexpr Word kMagicAny = 0x304244566f6e614eul;   // "NanoVDB0": files, and grids before version 32.6
inline constexpr Word kMagicGrid = 0x314244566f6e614eul;  // "NanoVDB1"
inline constexpr Word kMagicFile = 0x324244566f6e614eul;  // "NanoVDB2"
inline constexpr unsigned kMajorVersion = 32;
inline constexpr unsigned version(unsigned major, unsigned minor, unsigned patch) {
    return major << 21 | minor << 10 | patch;
}

inline constexpr Size kAlignment = 32;  // of nodes

// ---- fields with the same offset for all types ----

namespace grid {
inline constexpr Size kMagic = 0, kChecksum = 8, kVersion = 16, kFlags = 20, kIndex = 24, kCount = 28, kSize = 32,
                      kName = 40, kNameSize = 256, kMap = 296, kWorldBox = 560, kVoxelSize = 608, kClass = 632,
                      kType = 636, kBlindOffset = 640, kBlindCount = 648,
                      kValueCount = 656,  // of index grids: one more than the last index
    kBytes = 672;
// Flags.
inline constexpr unsigned kHasLongName = 1, kHasBox = 2, kIsBreadthFirst = 32;
}  // namespace grid
// From index space to the world: x -> matrix x + vector.
namespace map {
inline constexpr Size kMatrixF = 0, kInverseF = 36, kVectorF = 72, kTaperF = 84, kMatrix = 88, kInverse = 160,
                      kVector = 232, kTaper = 256, kBytes = 264;
}
// Offsets of nodes relative to the tree, by level: 0 leaves, 1 lower, 2 upper, 3 the root.
namespace tree {
inline constexpr Size kOffsets = 0, kNodeCounts = 32, kTileCounts = 44, kVoxelCount = 56, kBytes = 64;
}
namespace root {
inline constexpr Size kBoxMin = 0, kBoxMax = 12, kTileCount = 24;
namespace tile {
inline constexpr Size kKey = 0, kChild = 8, kState = 16;  // the child's offset is relative to the root; 0: a value
}
}  // namespace root
// Upper and lower nodes: a box, flags, the masks of active values and of children.
namespace node {
inline constexpr Size kBoxMin = 0, kBoxMax = 12, kFlags = 24, kValueMask = 32;
}
namespace leaf {
inline constexpr Size kBoxMin = 0, kBoxExtent = 12, kFlags = 15, kValueMask = 16, kValues = 80;
// Of quantised floats.
inline constexpr Size kMinimum = 80, kQuantum = 84;
// Of index grids: the first index. Of on_index also seven counts of 9 bits: the active voxels before each word of the
// mask but the first.
inline constexpr Size kFirstIndex = 80, kPrefixSums = 88;
inline constexpr Size kPointOffset = 80, kPointCount = 88;
}  // namespace leaf
namespace blind {
inline constexpr Size kDataOffset = 0, kValueCount = 8, kValueSize = 16, kSemantic = 20, kClass = 24, kType = 28,
                      kName = 32, kBytes = 288;
inline constexpr unsigned kClassGridName = 3;
}  // namespace blind

// ---- the shape of the tree ----

// A node that divides its cube into 2^log_dim parts along each axis, each of 2^log_child voxels.
struct Level {
    int log_dim, log_child;
    constexpr int entries() const { return 1 << (3 * log_dim); }
    constexpr Size mask_bytes() const { return static_cast<Size>(entries()) / 8; }
    constexpr Size child_mask() const { return node::kValueMask + mask_bytes(); }
    // The index of the entry that contains a voxel of the node's cube.
    constexpr unsigned entry(int i, int j, int k) const {
        const unsigned inside = (1u << log_dim) - 1;
        const auto part = [&](int x) { return (static_cast<unsigned>(x) >> log_child) & inside; };
        return part(i) << (2 * log_dim) | part(j) << log_dim | part(k);
    }
};
inline constexpr Level kUpper{5, 7}, kLower{4, 3}, kLeaf{3, 0};
inline constexpr int kLeafVoxels = 512;

// The key of a tile of the root: 21 bits of each coordinate in units of 4096 voxels.
constexpr Word root_key(int i, int j, int k) {
    const auto part = [](int x) { return static_cast<Word>(static_cast<unsigned>(x) >> 12); };
    return part(k) | part(j) << 21 | part(i) << 42;
}

// ---- fields that depend on the type of the values ----

enum class LeafKind : unsigned char { none, values, bits, mask, quantised, index, on_index, points };

struct ValueShape {
    int bytes, alignment;  // in tiles of nodes
    int statistic_bytes;   // of average and deviation, with the same alignment
    int leaf_bits;         // per voxel in a leaf's table
    LeafKind leaf_kind;
    bool is_known() const { return leaf_kind != LeafKind::none; }
};

constexpr ValueShape shape_of(GridType type) {
    using enum LeafKind;
    switch (type) {
        case GridType::f32:
        case GridType::i32:
        case GridType::u32:
        case GridType::rgba8:
            return {4, 4, 4, 32, values};
        case GridType::f64:
        case GridType::i64:
            return {8, 8, 8, 64, values};
        case GridType::i16:
        case GridType::f16:
            return {2, 2, 4, 16, values};
        case GridType::u8:
            return {1, 1, 4, 8, values};
        case GridType::vec3f:
            return {12, 4, 4, 96, values};
        case GridType::vec3d:
            return {24, 8, 8, 192, values};
        case GridType::vec4f:
            return {16, 4, 4, 128, values};
        case GridType::vec4d:
            return {32, 8, 8, 256, values};
        case GridType::boolean:
            return {1, 1, 1, 1, bits};
        case GridType::mask:
            return {1, 1, 1, 0, LeafKind::mask};
        case GridType::fp4:
            return {4, 4, 4, 4, quantised};
        case GridType::fp8:
            return {4, 4, 4, 8, quantised};
        case GridType::fp16:
            return {4, 4, 4, 16, quantised};
        case GridType::fpn:
            return {4, 4, 4, 0, quantised};
        case GridType::index:
            return {8, 8, 8, 0, LeafKind::index};
        case GridType::on_index:
            return {8, 8, 8, 0, LeafKind::on_index};
        case GridType::point_index:
            return {8, 8, 8, 16, points};
        case GridType::unknown:
            break;
    }
    return {0, 1, 1, 0, none};
}

struct Layout {
    Size background, root_bytes, tile_value, tile_bytes;
    Size entry_bytes;  // of an inner node's table: a value, or the offset of a child relative to the node
    Size upper_table, upper_bytes, lower_table, lower_bytes;
    Size leaf_table, leaf_bytes;  // leaf_bytes of fpn: without its table
};

constexpr Size aligned(Size at, Size alignment) { return (at + alignment - 1) / alignment * alignment; }

constexpr Layout layout_of(GridType type) {
    const ValueShape shape = shape_of(type);
    const Size bytes = static_cast<Size>(shape.bytes), alignment = static_cast<Size>(shape.alignment),
               statistic = static_cast<Size>(shape.statistic_bytes);
    // The end of minimum, maximum, average and deviation at `at`.
    const auto after_statistics = [&](Size at) {
        return aligned(aligned(at, alignment) + 2 * bytes, statistic) + 2 * statistic;
    };
    Layout result{};
    result.background = aligned(28, alignment);
    result.root_bytes = aligned(after_statistics(result.background + bytes), kAlignment);
    result.tile_value = aligned(20, alignment);
    result.tile_bytes = aligned(result.tile_value + bytes, kAlignment);
    result.entry_bytes = aligned(bytes > 8 ? bytes : 8, 8);
    const auto inner = [&](const Level& level, Size& table, Size& size) {
        table = aligned(after_statistics(level.child_mask() + level.mask_bytes()), kAlignment);
        size = aligned(table + static_cast<Size>(level.entries()) * result.entry_bytes, kAlignment);
    };
    inner(kUpper, result.upper_table, result.upper_bytes);
    inner(kLower, result.lower_table, result.lower_bytes);
    switch (shape.leaf_kind) {
        case LeafKind::values:
            result.leaf_table = aligned(after_statistics(leaf::kValues), kAlignment);
            break;
        case LeafKind::bits:  // the values follow the mask, and padding follows them
            result.leaf_table = leaf::kValues;
            break;
        case LeafKind::none:
        case LeafKind::mask:
        case LeafKind::quantised:
        case LeafKind::index:
        case LeafKind::on_index:
        case LeafKind::points:
            result.leaf_table = 96;
            break;
    }
    result.leaf_bytes = aligned(result.leaf_table + static_cast<Size>(shape.leaf_bits) * kLeafVoxels / 8, kAlignment);
    return result;
}

// A leaf of fpn; its flags contain the number of bits.
constexpr Size fpn_leaf_bytes(unsigned char flags) { return 96 + (64ul << (flags >> 5)); }

}  // namespace weft::devlib::nanovdb

// Reading and writing voxels of NanoVDB grids (devlib/spatial/nanovdb.h) in kernels: from a coordinate to the value's
// address. The results are values, or positions in arrays, and have no derivative; the kernel's own code computes
// smooth functions of them.
//
// A Finder serves lanes one by one and remembers the last leaf and the nodes above it, as neighbouring lanes usually
// read neighbouring voxels. A grid is checked when its volume is made (runtime/spatial/volume/grid.h), so that no
// coordinate leads outside of its bytes.
#pragma once

#include "devlib/spatial/nanovdb.h"

namespace weft::devlib {

// A tile of the root: an upper node, or one value.
struct VolumeTile {
    nanovdb::Word key;
    const unsigned char *upper, *value;  // one of them is null
};

// A dense table over a box of cells, of 8^3 voxels each: the address of a cell's leaf, or of a constant leaf with the
// cell's value. The cells at the box's ends represent everything beyond them.
struct VolumeCells {
    const unsigned char* const* leaves;  // null: there is no table
    int low[3], count[3];
};

// The descriptor of a volume, to which its id leads. Kernels read the fields before `grid` (types/objects.cpp);
// matrices are stored row by row. A descriptor of zeros is a volume without voxels, in which every lookup gives 0.
struct VolumeDescriptor {
    double matrix[9], inverse[9], translation[3];  // index space -> world: x -> matrix x + translation
    float matrix_f32[9], inverse_f32[9], translation_f32[3];
    int voxel_count;  // of index grids: voxels with a place; of others: 512 for each leaf
    unsigned char* grid;
    const VolumeTile* tiles;  // of the root, by ascending keys without duplicates
    unsigned tile_count;
    nanovdb::GridType type;
    nanovdb::Size root, leaves;  // their offsets
    VolumeCells cells;
};

namespace volume {

using nanovdb::GridType;
using nanovdb::Size;
using nanovdb::Word;
namespace format = nanovdb;

template <typename T>
T load(const unsigned char* at) {
    T value;
    __builtin_memcpy(&value, __builtin_assume_aligned(at, alignof(T)), sizeof value);
    return value;
}
template <typename T>
void store(unsigned char* at, T value) {
    __builtin_memcpy(__builtin_assume_aligned(at, alignof(T)), &value, sizeof value);
}

// The location of the values around a voxel: a leaf's 512 values, or one for all of a larger cube.
struct LeafValues {
    const unsigned char* leaf;      // null if `constant` applies
    const unsigned char* constant;  // a value, or null in an empty volume
};

// Finds leaves in a grid of one type.
template <GridType type>
class Finder {
public:
    explicit Finder(const VolumeDescriptor* volume) : volume_(volume) {}

    LeafValues find(int i, int j, int k) {
        // Coordinates in the same cube differ in their lowest bits only.
        const bool same_leaf = (((i ^ i_) | (j ^ j_) | (k ^ k_)) & ~7) == 0;
        if (same_leaf && has_leaf_) return found_;
        found_ = descend(i, j, k);
        i_ = i, j_ = j, k_ = k;
        has_leaf_ = true;
        return found_;
    }

private:
    static constexpr format::Layout kLayout = format::layout_of(type);

    static bool bit(const unsigned char* mask, unsigned n) {
        return (load<Word>(mask + n / 64 * 8) >> (n % 64) & 1) != 0;
    }

    LeafValues descend(int i, int j, int k) {
        const int differs = (i ^ i_) | (j ^ j_) | (k ^ k_);
        if (!lower_ || (differs & ~127) != 0) {
            lower_ = nullptr;
            if (!upper_ || (differs & ~4095) != 0) {
                const LeafValues found = tile(i, j, k);
                upper_ = found.leaf;
                if (!upper_) return found;
            }
            const unsigned n = format::kUpper.entry(i, j, k);
            const unsigned char* entry = upper_ + kLayout.upper_table + n * kLayout.entry_bytes;
            if (!bit(upper_ + format::kUpper.child_mask(), n)) return {nullptr, entry};
            lower_ = upper_ + load<long>(entry);
        }
        const unsigned n = format::kLower.entry(i, j, k);
        const unsigned char* entry = lower_ + kLayout.lower_table + n * kLayout.entry_bytes;
        if (!bit(lower_ + format::kLower.child_mask(), n)) return {nullptr, entry};
        return {lower_ + load<long>(entry), nullptr};
    }

    // `leaf` is an upper node. The search has no branches, since its outcomes cannot be predicted.
    LeafValues tile(int i, int j, int k) const {
        const Word key = format::root_key(i, j, k);
        const VolumeTile* at = volume_->tiles;
        for (unsigned count = volume_->tile_count; count > 1;) {
            const unsigned half = count / 2;
            at = at[half].key <= key ? at + half : at;
            count -= half;
        }
        if (volume_->tile_count != 0 && at->key == key) return {at->upper, at->value};
        return {nullptr, volume_->grid + volume_->root + kLayout.background};
    }

    const VolumeDescriptor* volume_;
    const unsigned char *upper_ = nullptr, *lower_ = nullptr;
    LeafValues found_{};
    int i_ = 0, j_ = 0, k_ = 0;
    bool has_leaf_ = false;
};

// ---- values ----

// A value as consecutive numbers.
template <typename T, int count>
struct Value {
    using Number = T;
    static constexpr int kNumbers = count;
    T numbers[count];
};

// A float of 16 bits.
inline float half(unsigned short bits) {
    _Float16 value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return static_cast<float>(value);
}

// A value of `V` as stored in a grid of this type.
template <GridType type, typename V>
struct Stored {
    static V in_leaf(const VolumeDescriptor&, const unsigned char* leaf, unsigned n) {
        return load<V>(leaf + format::layout_of(type).leaf_table + n * sizeof(V));
    }
    static V constant(const unsigned char* at) { return load<V>(at); }
    static constexpr bool kHasConstantLeaves = true;
};

// Reads a value of `V` from a grid of this type.
template <GridType type, typename V>
struct Cell : Stored<type, V> {};

template <int bits>
struct Quantised {
    static constexpr bool kHasConstantLeaves = bits != 0;
    using V = Value<float, 1>;
    static V in_leaf(const VolumeDescriptor&, const unsigned char* leaf, unsigned n) {
        int log_bits = bits == 4 ? 2 : bits == 8 ? 3 : 4;
        if (bits == 0) log_bits = leaf[format::leaf::kFlags] >> 5;
        const unsigned at = n << log_bits;
        const unsigned code =
            load<unsigned>(leaf + format::layout_of(GridType::fpn).leaf_table + at / 32 * 4) >> (at % 32);
        const float mask = static_cast<float>(code & ((1u << (1 << log_bits)) - 1));
        return {{mask * load<float>(leaf + format::leaf::kQuantum) + load<float>(leaf + format::leaf::kMinimum)}};
    }
    static V constant(const unsigned char* at) { return load<V>(at); }
};
template <>
struct Cell<GridType::fp4, Value<float, 1>> : Quantised<4> {};
template <>
struct Cell<GridType::fp8, Value<float, 1>> : Quantised<8> {};
template <>
struct Cell<GridType::fp16, Value<float, 1>> : Quantised<16> {};
template <>
struct Cell<GridType::fpn, Value<float, 1>> : Quantised<0> {};

template <>
struct Cell<GridType::f16, Value<float, 1>> {
    static constexpr bool kHasConstantLeaves = true;
    using V = Value<float, 1>;
    static V in_leaf(const VolumeDescriptor&, const unsigned char* leaf, unsigned n) {
        return {{half(load<unsigned short>(leaf + format::layout_of(GridType::f16).leaf_table + n * 2))}};
    }
    static V constant(const unsigned char* at) { return {{half(load<unsigned short>(at))}}; }
};

// Converts the numbers of a value `Own` to those of `V`.
template <typename V, typename Own>
V converted(const Own& own) {
    V result;
    for (int n = 0; n < V::kNumbers; ++n) result.numbers[n] = static_cast<typename V::Number>(own.numbers[n]);
    return result;
}
template <GridType type, typename V, typename Own>
struct InOtherNumbers {
    static constexpr bool kHasConstantLeaves = Cell<type, Own>::kHasConstantLeaves;
    static V in_leaf(const VolumeDescriptor& volume, const unsigned char* leaf, unsigned n) {
        return converted<V>(Cell<type, Own>::in_leaf(volume, leaf, n));
    }
    static V constant(const unsigned char* at) { return converted<V>(Cell<type, Own>::constant(at)); }
};
template <GridType type>
struct Cell<type, Value<double, 1>> : InOtherNumbers<type, Value<double, 1>, Value<float, 1>> {};
template <>
struct Cell<GridType::f64, Value<double, 1>> : Stored<GridType::f64, Value<double, 1>> {};
template <>
struct Cell<GridType::f64, Value<float, 1>> : InOtherNumbers<GridType::f64, Value<float, 1>, Value<double, 1>> {};
template <>
struct Cell<GridType::vec3f, Value<double, 3>> : InOtherNumbers<GridType::vec3f, Value<double, 3>, Value<float, 3>> {};
template <>
struct Cell<GridType::vec3d, Value<float, 3>> : InOtherNumbers<GridType::vec3d, Value<float, 3>, Value<double, 3>> {};
template <>
struct Cell<GridType::vec4f, Value<double, 4>> : InOtherNumbers<GridType::vec4f, Value<double, 4>, Value<float, 4>> {};
template <>
struct Cell<GridType::vec4d, Value<float, 4>> : InOtherNumbers<GridType::vec4d, Value<float, 4>, Value<double, 4>> {};

template <>
struct Cell<GridType::boolean, Value<unsigned char, 1>> {
    static constexpr bool kHasConstantLeaves = false;
    using V = Value<unsigned char, 1>;
    static V in_leaf(const VolumeDescriptor&, const unsigned char* leaf, unsigned n) {
        return {
            {static_cast<unsigned char>(leaf[format::layout_of(GridType::boolean).leaf_table + n / 8] >> (n % 8) & 1)}};
    }
    static V constant(const unsigned char* at) { return {{*at}}; }
};

// The position of a voxel in an external array, -1 if it has none. In grids of values, voxels are numbered leaf by
// leaf.
struct VoxelIndex {
    int numbers[1];
    using Number = int;
    static constexpr int kNumbers = 1;
};
template <GridType type>
struct Cell<type, VoxelIndex> {
    static constexpr bool kHasConstantLeaves = false;
    static VoxelIndex in_leaf(const VolumeDescriptor& volume, const unsigned char* leaf, unsigned n) {
        const long number =
            (leaf - (volume.grid + volume.leaves)) / static_cast<long>(format::layout_of(type).leaf_bytes);
        return {{static_cast<int>(number * format::kLeafVoxels + n)}};
    }
    static VoxelIndex constant(const unsigned char*) { return {{-1}}; }
};
template <>
struct Cell<GridType::index, VoxelIndex> {
    static constexpr bool kHasConstantLeaves = false;
    static VoxelIndex in_leaf(const VolumeDescriptor&, const unsigned char* leaf, unsigned n) {
        return {{static_cast<int>(load<Word>(leaf + format::leaf::kFirstIndex) + n - 1)}};
    }
    static VoxelIndex constant(const unsigned char* at) { return {{static_cast<int>(load<Word>(at) - 1)}}; }
};
template <>
struct Cell<GridType::on_index, VoxelIndex> {
    static constexpr bool kHasConstantLeaves = true;
    static VoxelIndex in_leaf(const VolumeDescriptor&, const unsigned char* leaf, unsigned n) {
        const unsigned w = n / 64;
        const Word mask = load<Word>(leaf + format::leaf::kValueMask + w * 8), own = 1ul << (n % 64);
        if ((mask & own) == 0) return {{-1}};
        Word place =
            load<Word>(leaf + format::leaf::kFirstIndex) + static_cast<Word>(__builtin_popcountl(mask & (own - 1)));
        if (w > 0) place += load<Word>(leaf + format::leaf::kPrefixSums) >> (9 * (w - 1)) & 511;
        return {{static_cast<int>(place - 1)}};
    }
    static VoxelIndex constant(const unsigned char* at) { return {{static_cast<int>(load<Word>(at) - 1)}}; }
};

// ---- lanes ----

inline int next(int x) { return static_cast<int>(static_cast<unsigned>(x) + 1); }

// The cell of a coordinate along one axis.
inline int cell(const VolumeCells& cells, int axis, int x) {
    const int at = (x >> 3) - cells.low[axis], last = cells.count[axis] - 1;
    return at < 0 ? 0 : at > last ? last : at;
}

// stencil() with the table of cells: the same instructions for voxels in one leaf and in eight, so that no branch has
// to be predicted.
template <GridType type, typename V>
void stencil_by_cells(const VolumeDescriptor& volume, int i, int j, int k, V (&corners)[8]) {
    const VolumeCells& cells = volume.cells;
    const int x[2] = {i, next(i)}, y[2] = {j, next(j)}, z[2] = {k, next(k)};
    long plane[2], row[2], column[2];
    unsigned ni[2], nj[2], nk[2];
    for (int n = 0; n < 2; ++n) {
        plane[n] = static_cast<long>(cell(cells, 0, x[n])) * cells.count[1] * cells.count[2];
        row[n] = static_cast<long>(cell(cells, 1, y[n])) * cells.count[2];
        column[n] = cell(cells, 2, z[n]);
        ni[n] = (static_cast<unsigned>(x[n]) & 7) << 6;
        nj[n] = (static_cast<unsigned>(y[n]) & 7) << 3;
        nk[n] = static_cast<unsigned>(z[n]) & 7;
    }
    for (unsigned c = 0; c < 8; ++c) {
        const unsigned char* leaf = cells.leaves[plane[c >> 2] + row[c >> 1 & 1] + column[c & 1]];
        corners[c] = Cell<type, V>::in_leaf(volume, leaf, ni[c >> 2] | nj[c >> 1 & 1] | nk[c & 1]);
    }
}

// The eight voxels with the lowest corner (i, j, k): that of (i + x, j + y, k + z) has the number 4 x + 2 y + z.
template <GridType type, typename V>
void stencil(Finder<type>& finder, const VolumeDescriptor& volume, int i, int j, int k, V (&corners)[8]) {
    using C = Cell<type, V>;
    if constexpr (C::kHasConstantLeaves)
        if (volume.cells.leaves) return stencil_by_cells<type>(volume, i, j, k, corners);
    if ((i & 7) != 7 && (j & 7) != 7 && (k & 7) != 7) {
        const LeafValues found = finder.find(i, j, k);
        const unsigned n = format::kLeaf.entry(i, j, k);
        for (unsigned c = 0; c < 8; ++c) {
            const unsigned at = n + (c >> 2) * 64 + (c >> 1 & 1) * 8 + (c & 1);
            corners[c] = found.leaf ? C::in_leaf(volume, found.leaf, at) : C::constant(found.constant);
        }
        return;
    }
    // The axes along which the corners are in two leaves: one search for each leaf.
    const unsigned crossed = ((i & 7) == 7) * 4u + ((j & 7) == 7) * 2u + ((k & 7) == 7);
    LeafValues found[8];
    for (unsigned c = 0; c < 8; ++c) {
        const int x = c & 4 ? next(i) : i, y = c & 2 ? next(j) : j, z = c & 1 ? next(k) : k;
        found[c] = (c & ~crossed) == 0 ? finder.find(x, y, z) : found[c & crossed];
        corners[c] = found[c].leaf ? C::in_leaf(volume, found[c].leaf, format::kLeaf.entry(x, y, z))
                                   : C::constant(found[c].constant);
    }
}

template <typename V, GridType type>
V lookup(Finder<type>& finder, const VolumeDescriptor& volume, int i, int j, int k) {
    using C = Cell<type, V>;
    if constexpr (C::kHasConstantLeaves) {
        const VolumeCells& cells = volume.cells;
        if (cells.leaves) {
            const long row = static_cast<long>(cell(cells, 0, i)) * cells.count[1] + cell(cells, 1, j);
            const unsigned char* leaf = cells.leaves[row * cells.count[2] + cell(cells, 2, k)];
            return C::in_leaf(volume, leaf, format::kLeaf.entry(i, j, k));
        }
    }
    const LeafValues found = finder.find(i, j, k);
    return found.leaf ? C::in_leaf(volume, found.leaf, format::kLeaf.entry(i, j, k)) : C::constant(found.constant);
}

// Sets the value of a voxel that is in a leaf.
template <GridType type, typename V>
void write(Finder<type>& finder, const VolumeDescriptor& volume, int i, int j, int k, V value) {
    const LeafValues found = finder.find(i, j, k);
    if (!found.leaf) return;
    const Size at = format::layout_of(type).leaf_table + format::kLeaf.entry(i, j, k) * sizeof value;
    store(volume.grid + (found.leaf - volume.grid) + at, value);
}

template <GridType... types>
struct Types {
    // Calls use(finder) and returns true if the volume is of one of these types.
    template <typename Use>
    static bool visit(const VolumeDescriptor& volume, const Use& use) {
        return ((volume.type == types && (use(Finder<types>(&volume)), true)) || ...);
    }
};
// Types whose leaves have one size, and so can be numbered.
using AllTypes = Types<GridType::f32, GridType::f64, GridType::i16, GridType::i32, GridType::i64, GridType::vec3f,
                       GridType::vec3d, GridType::mask, GridType::f16, GridType::u32, GridType::boolean,
                       GridType::rgba8, GridType::fp4, GridType::fp8, GridType::fp16, GridType::vec4f, GridType::vec4d,
                       GridType::index, GridType::on_index, GridType::u8>;

}  // namespace volume
}  // namespace weft::devlib

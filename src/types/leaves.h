// The leaves of a type: the flat list of the numbers and addresses that hold a value in registers.
//
// A scalar is one leaf, a numeric aggregate one per component (row-major), a struct or tuple the leaves of its fields
// in order. An array has a data pointer, a gradient pointer, extents and strides.
#pragma once

#include <cstdint>
#include <vector>

#include "types/type.h"

namespace weft {

struct LeafType {
    Scalar scalar = Scalar::i64;  // extents and strides are i64
    bool pointer = false;
    std::int64_t offset = 0;  // in memory, from the start of the whole value
};

// The leaves of a type, in order. Tuples have no memory; their offsets are 0.
std::vector<LeafType> leaf_types(Type type);
int leaf_count(Type type);
std::int64_t size_of(const LeafType& type);  // bytes in memory
// The part of `aggregate` at a static path: its first leaf and its type.
struct LeafRange {
    int first = 0;
    Type type;
};
LeafRange find_part(Type aggregate, const std::vector<std::int64_t>& path);

// Positions among the leaves of an array.
inline constexpr int kDataLeaf = 0, kGradLeaf = 1, kShapeLeaf = 2;
inline int stride_leaf(Type array) { return kShapeLeaf + array.ndim(); }

}  // namespace weft

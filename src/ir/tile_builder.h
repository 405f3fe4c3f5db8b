// Operations on tiles from functions that write their regions.
#pragma once

#include <utility>
#include <vector>

#include "ir/builder.h"

namespace weft::ir {

using Extents = std::vector<std::int64_t>;
inline std::int64_t count_of(const Extents& extents) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    return count;
}

// A tile. `element` gets one index for each extent, i32, and returns the element there.
template <typename Element>
Value* build_tile(Builder& builder, const Extents& shape, const Element& element) {
    return build_tile(builder, shape, shape, element);
}
// The same with other extents for the indices, over as many elements, row-major.
template <typename Element>
Value* build_tile(Builder& builder, const Extents& shape, const Extents& extents, const Element& element) {
    Operation* made = builder.tile_indices(Op::tile_generate, extents);
    Builder::Inside inside(builder, made->body());
    Value* const value = element(made->body().arguments);
    builder.yield({value});
    return builder.function().add_result(made, Type::tile(value->type, shape));
}
// `element` gets the number of the element.
template <typename Element>
Value* build_flat_tile(Builder& builder, const Extents& shape, const Element& element) {
    return build_tile(builder, shape, {count_of(shape)}, [&](const std::vector<Value*>& at) { return element(at[0]); });
}

// Runs `body` for all indices below the extents, in any order.
template <typename Body>
void build_each(Builder& builder, const Extents& extents, const Body& body) {
    Operation* made = builder.tile_indices(Op::tile_each, extents);
    Builder::Inside inside(builder, made->body());
    body(made->body().arguments);
    builder.yield({});
}

// All elements of a tile, combined by an associative function of two.
template <typename Combine>
Value* build_reduce(Builder& builder, Value* tile, const Combine& combine) {
    Operation* made = builder.tile_reduce(tile);
    Builder::Inside inside(builder, made->body());
    builder.yield({combine(made->body().arguments[0], made->body().arguments[1])});
    return made->result();
}

// Whether its elements are values of lanes, or functions of them at the same place: those of lanes that have left do
// not count.
bool is_of_lanes(const Value* tile);

// The number of the element at these indices below `extents`, row-major.
Value* flat_index(Builder& builder, const Extents& extents, const std::vector<Value*>& indices);

}  // namespace weft::ir

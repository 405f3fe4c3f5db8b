// How transform/tiles stores the elements of a tile, and how elements are read and written there.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/builder.h"

namespace weft::transform {

// One part of each element: the element itself, or a field of a struct.
struct TilePart {
    std::vector<std::int64_t> path;  // from the element to the part; empty for the element itself
    Type type;                       // a scalar or numeric aggregate
    Type stored;                     // of all parts of a tile
};

std::vector<TilePart> tile_parts(Type tile);
ir::Value* read_part(ir::Builder& builder, const TilePart& part, ir::Value* stored, ir::Value* at);
// The stored parts with that of `element` at this place.
ir::Value* write_part(ir::Builder& builder, const TilePart& part, ir::Value* stored, ir::Value* element, ir::Value* at);
// An element of its parts, in the order of tile_parts().
ir::Value* join_parts(ir::Builder& builder, Type element, const std::vector<ir::Value*>& parts);
// The stored parts of a tile of these elements, few enough to be in registers.
std::vector<ir::Value*> made_of(ir::Builder& builder, Type tile, const std::vector<ir::Value*>& elements);

}  // namespace weft::transform

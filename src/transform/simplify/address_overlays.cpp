// Views of memory at the address of an array. The pass finds the array, so that the view keeps its gradient.
//
//     %p = address %a; %q = add %p, %d; %v = array_at %q, %n    →    %v = overlay %a, %d, %n
#include <unordered_set>
#include <utility>
#include <vector>

#include "transform/simplify/simplifier.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

struct ArrayOffset {
    Value* array = nullptr;
    std::vector<std::pair<Op, Value*>> distances;  // add or sub: bytes from its start
};

// Finds the array whose address, plus distances, makes this one; false if it is no such sum. `seen` holds the values
// that have been searched in vain.
bool find_place(const Value* address, ArrayOffset& place, std::unordered_set<const Value*>& seen) {
    const Operation* definition = address->definition;
    if (!definition || !seen.insert(address).second) return false;
    if (definition->op == Op::address) {
        place.array = definition->operands[0];
        return true;
    }
    if (definition->op != Op::add && definition->op != Op::sub) return false;
    for (const std::size_t side : {0, 1}) {
        if (side == 1 && definition->op == Op::sub) break;
        if (!find_place(definition->operands[side], place, seen)) continue;
        place.distances.emplace_back(definition->op, definition->operands[1 - side]);
        return true;
    }
    return false;
}

}  // namespace

void Simplifier::overlay(Operation& array_at) {
    ArrayOffset place;
    std::unordered_set<const Value*> seen;
    if (!find_place(array_at.operands[0], place, seen)) return;
    const Span span = array_at.span;
    Value* offset = nullptr;
    for (const auto& [op, distance] : place.distances) {
        if (offset || op == Op::sub) {
            if (!offset) offset = constant(distance->type, {Number::integer(0)}, span);
            offset = binary(op, offset, distance, span);
        } else {
            offset = distance;
        }
    }
    if (!offset) offset = constant(array_at.operands[0]->type, {Number::integer(0)}, span);
    std::vector<Value*> operands{place.array, offset};
    operands.insert(operands.end(), array_at.operands.begin() + 1, array_at.operands.end());
    change(array_at, Op::overlay, std::move(operands));
}

}  // namespace weft::transform

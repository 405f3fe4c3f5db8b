// Atomics of arrays that belong to one thread are a load and a store:
//
// before:  %old = atomic.add %mine[%i], %x
// after:   %old = load %mine[%i]; %new = add %old, %x; store %mine[%i], %new
#include <algorithm>
#include <utility>

#include "ir/builder.h"
#include "ir/walk.h"
#include "transform/pipeline.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

Value* atomic_leaves(ir::Builder& b, const Operation& atomic, Value* old) {
    Value* value = atomic.operands.back();
    switch (atomic.op) {
        case Op::atomic_add:
            return b.binary(Op::add, old, value);
        case Op::atomic_sub:
            return b.binary(Op::sub, old, value);
        case Op::atomic_min:
            return b.binary(Op::min, old, value);
        case Op::atomic_max:
            return b.binary(Op::max, old, value);
        case Op::atomic_and:
            return b.binary(Op::and_, old, value);
        case Op::atomic_or:
            return b.binary(Op::or_, old, value);
        case Op::atomic_xor:
            return b.binary(Op::xor_, old, value);
        case Op::atomic_cas:
            return b.select(b.compare(Op::cmp_eq, old, atomic.operands[atomic.operands.size() - 2]), value, old);
        default:
            return value;
    }
}

namespace {

bool is_local(const Operation& operation) {
    if (!ir::is_atomic(operation.op)) return false;
    const Value* root = ir::root_of(operation.operands[0]);
    return root->definition && root->definition->op == Op::local_array;
}

void split(ir::Builder& b, Region& region) {
    for (const Operation* operation : region.operations)
        for (Region* inner : operation->regions) split(b, *inner);
    if (std::none_of(region.operations.begin(), region.operations.end(), [](const auto* o) { return is_local(*o); }))
        return;
    ir::Builder::Inside inside(b, region);
    for (Operation* operation : std::exchange(region.operations, {})) {
        region.operations.push_back(operation);
        if (!is_local(*operation)) continue;
        const Operation atomic = *operation;
        operation->op = Op::load;
        operation->operands.resize(1 + static_cast<std::size_t>(atomic.operands[0]->type.ndim()));
        b.span = operation->span;
        const std::size_t first = region.operations.size();
        Value* left = atomic_leaves(b, atomic, operation->result());
        b.store(operation->operands[0], {operation->operands.begin() + 1, operation->operands.end()}, left);
        for (std::size_t i = first; i < region.operations.size(); ++i)
            region.operations[i]->inlined = operation->inlined;
    }
}

}  // namespace

void split_local_atomics(ir::Function& function) {
    ir::Builder b(function, function.body);
    split(b, function.body);
}

}  // namespace weft::transform

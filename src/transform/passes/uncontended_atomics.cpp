// Atomics of elements that one thread alone updates (analysis/uncontended.h) become a load and a store:
//
// before:  %old = atomic.add %mine[%i], %x
// after:   %old = load %mine[%i]; %new = add %old, %x; store %mine[%i], %new
#include "transform/passes/uncontended_atomics.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

#include "ir/builder.h"
#include "ir/walk.h"
#include "transform/adjoint/atomic_results.h"
#include "transform/analysis/uncontended.h"
#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

Value* atomic_leaves(ir::Builder& b, const Operation& atomic, Value* old) {
    Value* value = atomic.operands.back();
    if (const std::optional<Op> applied = ir::applied(atomic.op)) return b.binary(*applied, old, value);
    if (atomic.op == Op::atomic_exch) return value;
    Value* expected = atomic.operands[atomic.operands.size() - 2];  // of atomic_cas
    return b.select(b.compare(Op::cmp_eq, old, expected), value, old);
}

namespace {

using Chosen = std::function<bool(const Operation&)>;

// The component of the element that an atomic on components() changes, if its position is known; else empty.
std::vector<std::int64_t> component_path(const Operation& atomic) {
    const Operation* parts = atomic.operands[0]->definition;
    if (!parts || parts->op != Op::components) return {};
    const Type element = parts->operands[0]->type.element();
    std::vector<std::int64_t> path;
    for (auto axis = static_cast<std::size_t>(parts->operands[0]->type.ndim());
         axis < static_cast<std::size_t>(atomic.operands[0]->type.ndim()); ++axis) {
        const auto at = constant_integer(atomic.operands[1 + axis]);
        const std::int64_t extent = !element.is_matrix() ? element.components()
                                    : path.empty()       ? element.rows()
                                                         : element.cols();
        if (!at || *at < 0 || *at >= extent) return {};
        path.push_back(*at);
    }
    return path;
}

// Turns the atomic into a load of the old value. A component is extracted from the element, which other code has most
// likely loaded already.
void make_load(ir::Builder& b, Region& region, Operation& atomic) {
    const std::vector<std::int64_t> path = component_path(atomic);
    if (path.empty()) {
        atomic.op = Op::load;
        atomic.operands.resize(1 + static_cast<std::size_t>(atomic.operands[0]->type.ndim()));
    } else {
        Value* array = atomic.operands[0]->definition->operands[0];
        const auto first = atomic.operands.begin() + 1;
        Value* element = b.load(array, {first, first + array->type.ndim()});
        atomic.op = Op::extract;
        atomic.operands = {element};
        atomic.ints = path;
    }
    region.operations.push_back(&atomic);
}

void split(ir::Builder& b, Region& region, const Chosen& is_chosen) {
    for (const Operation* operation : region.operations)
        for (Region* inner : operation->regions) split(b, *inner, is_chosen);
    if (std::none_of(region.operations.begin(), region.operations.end(), [&](const auto* o) { return is_chosen(*o); }))
        return;
    ir::Builder::Inside inside(b, region);
    for (Operation* operation : std::exchange(region.operations, {})) {
        if (!is_chosen(*operation)) {
            region.operations.push_back(operation);
            continue;
        }
        const Operation atomic = *operation;
        const auto first = static_cast<std::ptrdiff_t>(region.operations.size());
        b.span = atomic.span;
        make_load(b, region, *operation);
        Value* left = atomic_leaves(b, atomic, operation->result());
        const auto index = atomic.operands.begin() + 1;
        b.store(atomic.operands[0], {index, index + atomic.operands[0]->type.ndim()}, left);
        std::for_each(region.operations.begin() + first, region.operations.end(),
                      [&](Operation* made) { made->inlined = atomic.inlined; });
    }
}

}  // namespace

void split_local_atomics(ir::Function& function) {
    ir::Builder b(function, function.body);
    split(b, function.body, [](const Operation& operation) {
        if (!ir::is_atomic(operation.op)) return false;
        const Value* root = ir::root_of(operation.operands[0]);
        return root->definition && root->definition->op == Op::local_array;
    });
}

bool split_uncontended_atomics(ir::Function& kernel, bool noalias, Uncontended which) {
    std::unordered_set<const Operation*> found = uncontended_atomics(kernel, noalias);
    if (which == Uncontended::read_too) {
        const std::unordered_set<const Value*> used = ir::used_values(kernel);
        std::unordered_set<const Value*> read;
        ir::for_each_operation(kernel.body, [&](const Operation& operation) {
            if (operation.op == Op::load) read.insert(ir::origin_of(operation.operands[0]));
        });
        std::erase_if(found, [&](const Operation* atomic) {
            return used.contains(atomic->result()) || is_extreme(*atomic) ||
                   !read.contains(ir::origin_of(atomic->operands[0]));
        });
    }
    if (found.empty()) return false;
    for (const Operation* atomic : found) {
        const Value* origin = ir::origin_of(atomic->operands[0]);
        if (origin->definition) continue;  // a local array
        auto& parameters = kernel.uncontended_parameters;
        if (std::find(parameters.begin(), parameters.end(), origin->index) == parameters.end())
            parameters.push_back(origin->index);
    }
    std::sort(kernel.uncontended_parameters.begin(), kernel.uncontended_parameters.end());
    ir::Builder b(kernel, kernel.body);
    split(b, kernel.body, [&](const Operation& operation) { return found.contains(&operation); });
    return true;
}

}  // namespace weft::transform

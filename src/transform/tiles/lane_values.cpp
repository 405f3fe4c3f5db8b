#include "transform/tiles/lane_values.h"

#include <algorithm>

#include "ir/walk.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;
using ir::ValueMap;

namespace {

bool holds_tile(Type type) {
    return type.is_tile() || (type.is_tuple() && std::ranges::any_of(type.elements(), holds_tile));
}

bool makes_tile(const Operation& operation) {
    if (operation.op == Op::tile_each || operation.op == Op::tile_reduce) return true;
    if (operation.op == Op::yield || operation.op == Op::return_) return false;
    const auto is_tile = [](const Value* value) { return holds_tile(value->type); };
    if (std::ranges::any_of(operation.results, is_tile)) return true;
    return operation.op != Op::extract_at && std::ranges::any_of(operation.operands, is_tile);
}

bool has_body_of_tile(const Operation& operation) {
    return operation.op == Op::tile_generate || operation.op == Op::tile_each || operation.op == Op::tile_reduce;
}

// One operation for all: the value of `lane` at the begin of the kernel.
void hoist_lane(ir::Function& kernel) {
    ValueMap replaced(kernel);
    Value* lane = nullptr;
    ir::for_each_region(kernel.body, [&](Region& region) {
        std::erase_if(region.operations, [&](Operation* operation) {
            if (operation->op != Op::lane) return false;
            if (!lane) {
                Operation* const first = kernel.new_operation(Op::lane, operation->span);
                lane = kernel.add_result(first, i32_type());
                first->parent = &kernel.body;
            }
            replaced.set(operation->result(), lane);
            return true;
        });
    });
    if (!lane) return;
    ir::replace_uses(kernel.body, replaced);
    kernel.body.operations.insert(kernel.body.operations.begin(), lane->definition);
}

// Names of views read tiles that no code uses; they would count as operations of the block.
void drop_unused(ir::Function& kernel) {
    for (bool any = true; any;) {
        any = false;
        const auto used = ir::used_values(kernel);
        ir::for_each_region(kernel.body, [&](Region& region) {
            any |= std::erase_if(region.operations, [&](const Operation* operation) {
                       return !operation->results.empty() && !ir::has_effects(*operation) &&
                              std::ranges::none_of(operation->results,
                                                   [&](const Value* result) { return used.contains(result); });
                   }) > 0;
        });
    }
}

// The size of blocks is known.
void fold_block_dim(ir::Function& function, std::int64_t lanes) {
    ir::for_each_operation(function.body, [&](Operation& operation) {
        if (operation.op != Op::block_dim) return;
        operation.op = Op::constant;
        operation.numbers = {Number::integer(lanes)};
    });
}

}  // namespace

void prepare_lanes(ir::Function& function, std::int64_t lanes) {
    fold_block_dim(function, lanes);
    if (!function.is_kernel) return;
    hoist_lane(function);
    drop_unused(function);
}

bool is_inside(const Value* value, const Region& region) {
    const Region* at = ir::region_of(value);
    while (at && at != &region) at = at->owner ? at->owner->parent : nullptr;
    return at == &region;
}

LaneValues::LaneValues(const ir::Function& kernel) {
    find_uses(kernel.body);
    find_block(kernel.body);
    do {
        changed_ = false;
        visit(kernel.body);
    } while (changed_);
}

void LaneValues::find_uses(const Region& region) {
    ir::for_each_operation(region, [&](const Operation& operation) {
        for (const Value* operand : operation.operands) users_[operand].push_back(&operation);
    });
}

const std::vector<const Operation*>& LaneValues::users(const Value* value) const {
    static const std::vector<const Operation*> none;
    const auto found = users_.find(value);
    return found == users_.end() ? none : found->second;
}

bool LaneValues::find_block(const Region& region) {
    bool any = false;
    for (const Operation* operation : region.operations) {
        bool is_of_block = makes_tile(*operation);
        for (const Region* inner : operation->regions) is_of_block |= find_block(*inner);
        if (is_of_block) of_block_.insert(operation);
        any |= is_of_block;
    }
    return any;
}

void LaneValues::mark(const Value* value) {
    if (!holds_tile(value->type)) changed_ |= varying_.insert(value).second;
}

void LaneValues::mark(const std::vector<Value*>& values) {
    for (const Value* value : values) mark(value);
}

bool LaneValues::reads(const Operation& operation) const {
    bool any = false;
    const auto look = [&](const Operation& one) {
        any |= one.op == Op::load || one.op == Op::call ||
               (one.op == Op::call_library && (one.library->reaches_memory() || one.library->native));
    };
    look(operation);
    for (const Region* region : operation.regions) ir::for_each_operation(*region, look);
    return any;
}

bool LaneValues::is_uniform(const Operation& operation) const {
    if (operation.op == Op::lane || operation.op == Op::local_array || operation.op == Op::stack) return false;
    const auto agrees = [&](const Operation& one) {
        return std::ranges::none_of(one.operands, [&](const Value* value) { return varies(value); }) &&
               (one.op != Op::call_library || one.library->is_uniform);
    };
    // A check that all lanes make alike happens once.
    if (operation.op == Op::assert_ || operation.op == Op::require) return agrees(operation);
    if (ir::has_effects(operation) || !agrees(operation)) return false;
    bool is_uniform = true;
    for (const Region* region : operation.regions)
        ir::for_each_operation(*region, [&](const Operation& one) { is_uniform &= agrees(one) && one.op != Op::lane; });
    return is_uniform;
}

bool LaneValues::trips_vary(const Operation& loop) const {
    if (loop.op == Op::while_) return varies(loop.body(0).terminator()->operands[0]);
    return varies(loop.operands[0]) || varies(loop.operands[1]) || varies(loop.operands[2]) ||
           (loop.guarded && varies(loop.body().arguments.back()));
}

void LaneValues::visit(const Region& region) {
    for (const Operation* operation : region.operations) visit(*operation);
}

void LaneValues::visit(const Operation& operation) {
    if (has_body_of_tile(operation)) return;
    if (operation.regions.empty()) {
        if (operation.op == Op::tile_of_lanes || operation.results.empty()) return;
        if (!is_uniform(operation) && !(is_of_block(operation) && operation.op != Op::call)) mark(operation.results);
        return;
    }
    for (const Region* region : operation.regions) visit(*region);
    if (!is_of_block(operation) && !is_uniform(operation)) mark(operation.results);
    if (operation.op == Op::if_) {
        for (std::size_t i = 0; i < operation.results.size(); ++i)
            if (varies(operation.operands[0]) || varies(operation.body(0).terminator()->operands[i]) ||
                varies(operation.body(1).terminator()->operands[i]))
                mark(operation.results[i]);
        return;
    }
    const std::size_t bounds = ir::carried_operands(operation), own = ir::carried_arguments(operation);
    const Region& body = *operation.regions.back();
    const bool differs = trips_vary(operation);
    if (own > 0 && (differs || varies(operation.operands[0]) || varies(operation.operands[2]))) mark(body.arguments[0]);
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
        if (!differs && !varies(operation.operands[bounds + i]) && !varies(body.terminator()->operands[i])) continue;
        mark(operation.results[i]);
        for (const Region* region : operation.regions) mark(region->arguments[own + i]);
    }
}

}  // namespace weft::transform

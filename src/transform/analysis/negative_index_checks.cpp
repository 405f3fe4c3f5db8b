#include "transform/analysis/negative_index_checks.h"

#include <algorithm>

#include "ir/indices.h"
#include "ir/lower_bounds.h"
#include "ir/walk.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

// Finds redundant choices, given the conditions around them.
class NegativeIndices {
public:
    explicit NegativeIndices(OnRedundantChoice found) : found_(std::move(found)) {}

    void assume_not_negative(const Value* value) { bounds_.assume_least(value, 0); }

    void visit(const Region& region) {
        const std::size_t before = bounds_.mark();
        for (Operation* operation : region.operations) visit(*operation);
        bounds_.rewind(before);
    }

private:
    void visit(Operation& operation) {
        if (operation.op == Op::select) return choose(operation);
        for (std::size_t i = 0; i < operation.regions.size(); ++i) {
            const std::size_t before = bounds_.mark();
            if (operation.op == Op::if_) bounds_.assume(operation.operands[0], i == 0);
            if (operation.op == Op::while_ && i == 1) bounds_.assume(operation.body(0).terminator()->operands[0], true);
            visit(operation.body(i));
            bounds_.rewind(before);
        }
    }

    void choose(Operation& operation) {
        const Value* index = ir::as_written(operation.result());
        if (!index) return;
        // The extent may be assumed to be at least 1: an array without elements has no valid index.
        const std::size_t before = bounds_.mark();
        if (const Value* extent = ir::extent_of(operation.result())) bounds_.assume_least(extent, 1);
        const bool is_never_negative = bounds_.is_never_negative(index);
        bounds_.rewind(before);
        if (is_never_negative) found_(operation);
    }

    ir::LowerBounds bounds_;
    OnRedundantChoice found_;
};

// Loops up to this size are written twice. In a larger one the test costs little beside the rest.
constexpr int kMostOperations = 64;
constexpr int kDeepest = 8;

bool is_before(const Value* value, const Operation& loop) {
    const Region* at = value->definition ? value->definition->parent : value->region;
    while (at && at->owner != &loop) at = at->owner ? at->owner->parent : nullptr;
    return !at;
}

// The signed integers from before the loop that an index of the loop starts from.
void find_starts(const Value* index, const Operation& loop, std::vector<const Value*>& starts, int depth = 0) {
    if (depth > kDeepest || !index->type.is_scalar() || !index->type.is_int()) return;
    if (is_before(index, loop)) {
        const bool is_constant = index->definition && index->definition->op == Op::constant;
        if (is_constant || ir::LowerBounds().is_never_negative(index)) return;
        if (std::find(starts.begin(), starts.end(), index) == starts.end()) starts.push_back(index);
        return;
    }
    const auto follow = [&](const Value* value) { find_starts(value, loop, starts, depth + 1); };
    if (!index->definition) {
        if (index->region->owner != &loop) return;
        const std::size_t first = ir::carried_operands(loop), carried = ir::carried_arguments(loop);
        const auto number = static_cast<std::size_t>(index->index);
        follow(number < carried ? loop.operands[0] : loop.operands[first + number - carried]);
        return;
    }
    const auto& operands = index->definition->operands;
    switch (index->definition->op) {
        case Op::add:
            follow(operands[1]);
            [[fallthrough]];
        case Op::sub:
        case Op::mul:
        case Op::div:
        case Op::shr:
        case Op::cast:
            return follow(operands[0]);
        default:
            return;
    }
}

}  // namespace

void find_redundant_choices(ir::Function& function, const OnRedundantChoice& found) {
    NegativeIndices(found).visit(function.body);
}

std::unordered_set<const Operation*> choices_of_accesses(const ir::Function& function) {
    std::unordered_set<const Operation*> found;
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        if (operation.op != Op::select || !ir::as_written(operation.result())) return;
        const Value* extent = ir::extent_of(operation.result());
        if (extent && extent->definition && extent->definition->op == Op::dim) found.insert(&operation);
    });
    if (found.empty()) return found;
    ir::for_each_operation(function.body, [&](const Operation& user) {
        const bool accesses =
            user.op == Op::load || user.op == Op::store || user.op == Op::view || ir::is_atomic(user.op);
        const std::size_t indices = accesses ? static_cast<std::size_t>(user.operands[0]->type.ndim()) : 0;
        for (std::size_t i = 0; i < user.operands.size(); ++i)
            if (i == 0 || i > indices) found.erase(user.operands[i]->definition);
    });
    return found;
}

NegativeIndexChecks negative_index_checks(const Operation& loop) {
    int count = 0;
    for (const Region* region : loop.regions) count += ir::operation_count(*region);
    if (count > kMostOperations) return {};
    bool nests = false;
    NegativeIndexChecks found;
    for (const Region* region : loop.regions) {
        ir::for_each_operation(*region, [&](const Operation& operation) {
            nests |= operation.op == Op::for_ || operation.op == Op::while_;
            if (operation.op != Op::select) return;
            if (const Value* index = ir::as_written(operation.result())) find_starts(index, loop, found.starts);
        });
    }
    if (nests || found.starts.empty()) return {};
    NegativeIndices negative_indices([&](Operation& choice) { found.choices.push_back(&choice); });
    for (const Value* start : found.starts) negative_indices.assume_not_negative(start);
    for (const Region* region : loop.regions) negative_indices.visit(*region);
    return found.choices.empty() ? NegativeIndexChecks{} : found;
}

}  // namespace weft::transform

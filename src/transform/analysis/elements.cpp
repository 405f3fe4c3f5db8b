#include "transform/analysis/elements.h"

#include <algorithm>
#include <utility>

#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

namespace {

// Larger numbers could make indices wrap.
constexpr std::int64_t kLargest = std::int64_t{1} << 20;

std::optional<Affine> checked(const Affine& sum) {
    const bool is_small = std::max({sum.factor, -sum.factor, -sum.low, sum.high}) <= kLargest;
    return is_small ? std::optional(sum) : std::nullopt;
}

std::optional<Affine> scaled(Affine a, std::int64_t by) {
    if (by > kLargest || by < -kLargest) return {};
    a.factor *= by, a.low *= by, a.high *= by;
    if (by < 0) std::swap(a.low, a.high);
    return checked(a);
}

std::optional<Affine> added(const Affine& a, const Affine& b) {
    if (a.axis >= 0 && b.axis >= 0 && a.axis != b.axis) return {};
    return checked({std::max(a.axis, b.axis), a.factor + b.factor, a.low + b.low, a.high + b.high});
}

std::optional<Affine> affine(const Value* value);

// The counter of a loop with constant bounds.
std::optional<Affine> counter(const Value* value) {
    const Operation* loop = value->region->owner;
    if (!loop || loop->op != Op::for_ || value->index != 0) return {};
    const auto start = constant_integer(loop->operands[0]), end = constant_integer(loop->operands[1]),
               step = constant_integer(loop->operands[2]);
    if (!start || !end || !step) return {};
    if (*step > 0) return checked({-1, 0, *start, std::max(*start, *end - 1)});
    return checked({-1, 0, std::min(*start, *end + 1), *start});
}

std::optional<Affine> affine(const Value* value) {
    if (!value->type.is_scalar() || !value->type.is_int() || info(value->type.scalar()).bits < 32) return {};
    if (const auto number = constant_integer(value)) return checked({-1, 0, *number, *number});
    const Operation* definition = value->definition;
    if (!definition) return counter(value);
    const auto operand = [&](std::size_t i) { return affine(definition->operands[i]); };
    switch (definition->op) {
        case Op::tid:
            return Affine{static_cast<int>(definition->ints[0]), 1, 0, 0};
        case Op::cast:
            return operand(0);
        case Op::neg: {
            const auto a = operand(0);
            return a ? scaled(*a, -1) : a;
        }
        case Op::add:
        case Op::sub: {
            const auto a = operand(0), b = operand(1);
            if (!a || !b) return {};
            const auto second = scaled(*b, definition->op == Op::add ? 1 : -1);
            return second ? added(*a, *second) : second;
        }
        case Op::mul:
            for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
                if (const auto by = constant_integer(definition->operands[i]))
                    if (const auto a = operand(1 - i)) return scaled(*a, *by);
            return {};
        case Op::shl: {
            const auto by = constant_integer(definition->operands[1]);
            const auto a = operand(0);
            return by && *by >= 0 && *by <= 20 && a ? scaled(*a, std::int64_t{1} << *by) : std::nullopt;
        }
        default:
            return {};
    }
}

// Whether the indices of an access count from the start of the whole array.
bool is_whole(const Value* array) {
    for (; array->definition && array->definition->op != Op::extract; array = array->definition->operands[0])
        if (array->definition->op == Op::slice || array->definition->op == Op::overlay) return false;
    return true;
}

}  // namespace

std::optional<Array> array_of(const ir::Function& kernel, const Value* value) {
    Array array{-1, ir::gradient_holding(value) != nullptr, {}};
    const Value* root = ir::root_of(value);
    while (root->definition && root->definition->op == Op::extract) {
        const auto& step = root->definition->ints;
        array.path.insert(array.path.begin(), step.begin(), step.end());
        root = root->definition->operands[0];
    }
    if (root->definition || root->region != &kernel.body) return {};
    array.parameter = root->index;
    return array;
}

Indices indices_of(const Operation& access) {
    if (!is_whole(access.operands[0])) return {};
    Indices result;
    for (const Value* index : indices_from_start(access)) result.push_back(affine(index));
    return result;
}

void join(Indices& all, const Indices& more) {
    all.resize(std::min(all.size(), more.size()));  // components() has more indices
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i] && more[i] && all[i]->axis == more[i]->axis && all[i]->factor == more[i]->factor) {
            all[i]->low = std::min(all[i]->low, more[i]->low);
            all[i]->high = std::max(all[i]->high, more[i]->high);
        } else {
            all[i].reset();
        }
    }
}

bool tells_threads_apart(const Indices& indices, int rank) {
    std::vector<bool> found(static_cast<std::size_t>(rank), false);
    for (const std::optional<Affine>& index : indices) {
        if (!index || index->axis < 0) continue;
        if (index->high - index->low < std::max(index->factor, -index->factor))
            found[static_cast<std::size_t>(index->axis)] = true;
    }
    return rank > 0 && std::find(found.begin(), found.end(), false) == found.end();
}

}  // namespace weft::transform

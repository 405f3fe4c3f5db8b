#include "ir/lower_bounds.h"

#include <algorithm>
#include <optional>

namespace weft::ir {

namespace {

constexpr int kDeepest = 16;
constexpr std::int64_t kLargestFactor = 1 << 16;  // of all constants in one product
constexpr std::int64_t kLargest = std::int64_t{1} << 40;

bool is_signed_integer(const Value* value) {
    return value->type.is_scalar() && value->type.is_int() && info(value->type.scalar()).is_signed();
}

std::optional<std::int64_t> constant_of(const Value* value) {
    const Operation* definition = value->definition;
    if (!definition || definition->op != Op::constant || !value->type.is_scalar()) return {};
    if (!value->type.is_int() && value->type.scalar() != Scalar::boolean) return {};
    return definition->numbers[0].i;
}

bool is_constant(const Value* value, std::int64_t number) {
    const std::optional<std::int64_t> found = constant_of(value);
    return found && *found == number;
}

const Operation* yield_of(const Region& region) {
    const Operation* last = region.terminator();
    return last && last->op == Op::yield ? last : nullptr;  // a region may be incomplete
}

// A carried value of a `while` has one canonical argument for the condition and the body.
const Value* canonical(const Value* value) {
    const Region* region = value->region;
    if (!region || !region->owner || region->owner->op != Op::while_ || region != region->owner->regions.back())
        return value;
    return region->owner->body(0).arguments[static_cast<std::size_t>(value->index)];
}

}  // namespace

LowerBounds::BaseOffset LowerBounds::base_and_offset(const Value* value) {
    std::int64_t offset = 0;
    for (int steps = 0; steps < kDeepest; ++steps) {
        value = canonical(value);
        if (const std::optional<std::int64_t> number = constant_of(value)) return {nullptr, offset + *number};
        const Operation* definition = value->definition;
        if (!definition || !is_signed_integer(value)) break;
        const auto& operands = definition->operands;
        if (definition->op == Op::cast && is_signed_integer(operands[0]) &&
            info(operands[0]->type.scalar()).bits <= info(value->type.scalar()).bits) {
            value = operands[0];
            continue;
        }
        const bool adds = definition->op == Op::add;
        if (!adds && definition->op != Op::sub) break;
        const bool is_first = adds && constant_of(operands[0]);
        const std::optional<std::int64_t> by = constant_of(operands[is_first ? 0 : 1]);
        if (!by || *by > kLargest || *by < -kLargest) break;
        offset += adds ? *by : -*by;
        value = operands[is_first ? 1 : 0];
    }
    return {value, offset};
}

std::int64_t LowerBounds::least(const Value* value) {
    budget_ = kMostVisits;
    depth_ = 0;
    return bound(value).low;
}

void LowerBounds::assume_least(const Value* value, std::int64_t least) {
    const BaseOffset split = base_and_offset(value);
    if (split.base) facts_.push_back({split.base, nullptr, least - split.offset});
}

LowerBounds::Bound LowerBounds::bound(const Value* value) {
    if (!value->type.is_scalar() || !value->type.is_int()) return {};
    const BaseOffset split = base_and_offset(value);
    if (!split.base) return {split.offset};
    Bound found = base_bound(split.base);
    for (const Fact& fact : facts_)
        if (fact.a == split.base && !fact.b) found.low = std::max(found.low, fact.least);
    if (found.low != kUnknown) found.low = std::clamp(found.low + split.offset, -kLargest, kLargest);
    return found;
}

LowerBounds::Bound LowerBounds::base_bound(const Value* base) {
    if (depth_ >= kDeepest || --budget_ < 0) return {};
    ++depth_;
    Bound found = base->definition ? of_result(base) : of_argument(base);
    --depth_;
    if (base->type.is_int() && !is_signed_integer(base)) found.low = std::max<std::int64_t>(found.low, 0);
    return found;
}

LowerBounds::Bound LowerBounds::of_result(const Value* value) {
    const Operation& operation = *value->definition;
    const auto at = static_cast<std::size_t>(value->index);
    const auto& operands = operation.operands;
    const auto both = [&](auto&& choose) {
        const Bound a = bound(operands[0]), b = bound(operands[1]);
        return Bound{choose(a.low, b.low), std::max(a.factor, b.factor)};
    };
    const auto zero_if = [](bool holds) { return holds ? Bound{0} : Bound{}; };
    switch (operation.op) {
        case Op::tid:
        case Op::dim:
        case Op::abs:
        case Op::bit_count:
            return {0};
        case Op::block_dim:
            return {1};
        case Op::add:
            for (std::size_t i : {std::size_t{0}, std::size_t{1}})
                if (const Bound found = of_downward(operands[1 - i], operands[i]); found.low != kUnknown) return found;
            return both([](std::int64_t a, std::int64_t b) { return a < 0 || b < 0 ? kUnknown : a + b; });
        case Op::sub:
            return of_difference(operands[0], operands[1]);
        case Op::mul:
            return of_product(operands[0], operands[1]);
        case Op::min:
            return both([](std::int64_t a, std::int64_t b) { return std::min(a, b); });
        case Op::max:
            return both([](std::int64_t a, std::int64_t b) { return std::max(a, b); });
        case Op::div:
            return both([](std::int64_t a, std::int64_t b) { return a < 0 || b < 0 ? kUnknown : 0; });
        case Op::or_:
        case Op::xor_:
            return both([](std::int64_t a, std::int64_t b) { return a < 0 || b < 0 ? kUnknown : 0; });
        case Op::and_:
            return both([](std::int64_t a, std::int64_t b) { return a < 0 && b < 0 ? kUnknown : 0; });
        case Op::shl: {
            const std::optional<std::int64_t> count = constant_of(operands[1]);
            if (!count || *count < 0 || *count > 16 || !assumed_.empty()) return {};
            return scaled(bound(operands[0]), std::int64_t{1} << *count);
        }
        case Op::rem:  // has the sign of the dividend
        case Op::shr: {
            const Bound a = bound(operands[0]);
            return {a.low < 0 ? kUnknown : 0, a.factor};
        }
        case Op::select: {
            const Bound a = given(operands[0], true, operands[1]), b = given(operands[0], false, operands[2]);
            return {std::min(a.low, b.low), std::max(a.factor, b.factor)};
        }
        case Op::cast: {
            const Type from = operands[0]->type, to = operation.result()->type;
            if (!from.is_scalar()) return {};
            if (from.scalar() == Scalar::boolean) return {0};
            if (!from.is_int()) return {};
            const bool fits = info(to.scalar()).bits > info(from.scalar()).bits ||
                              (info(to.scalar()).bits == info(from.scalar()).bits && is_signed_integer(operands[0]));
            return zero_if(fits && bound(operands[0]).low >= 0);
        }
        case Op::if_: {
            const Operation *yes = yield_of(operation.body(0)), *no = yield_of(operation.body(1));
            if (!yes || !no || yes->operands.size() <= at || no->operands.size() <= at) return {};
            const Bound a = given(operands[0], true, yes->operands[at]);
            const Bound b = given(operands[0], false, no->operands[at]);
            return {std::min(a.low, b.low), std::max(a.factor, b.factor)};
        }
        case Op::for_:  // the next value of the body
            return bound(operation.body().arguments[at + 1]);
        case Op::while_:
            return bound(operation.body(0).arguments[at]);
        default:
            return {};
    }
}

// The variable of a downward loop: first + -(step * k) for k below (end - first) / -step, which is above end - step.
LowerBounds::Bound LowerBounds::of_downward(const Value* first, const Value* distance) {
    const Operation* definition = distance->definition;
    if (!definition || (definition->op != Op::neg && definition->op != Op::mul)) return {};
    const std::optional<std::int64_t> factor =
        definition->op == Op::neg ? std::optional<std::int64_t>(-1) : constant_of(definition->operands[1]);
    const Value* k = definition->operands[0];
    const Operation* loop = k->region ? k->region->owner : nullptr;
    if (!factor || *factor >= 0 || !loop || loop->op != Op::for_) return {};
    if (k->index != 0 || loop->operands.size() < 3) return {};
    const Operation* count = loop->operands[1]->definition;
    if (!count || count->op != Op::div || !is_constant(count->operands[1], *factor)) return {};
    const Operation* length = count->operands[0]->definition;
    if (!length || length->op != Op::sub) return {};
    const BaseOffset start = base_and_offset(first), same = base_and_offset(length->operands[1]);
    const Bound end = bound(length->operands[0]);
    if (start.base != same.base || end.low == kUnknown) return {};
    return {end.low - *factor + start.offset - same.offset, end.factor};
}

LowerBounds::Bound LowerBounds::given(const Value* condition, bool holds, const Value* value) {
    const std::size_t before = mark();
    learn(condition, holds);
    const Bound found = bound(value);
    rewind(before);
    return found;
}

LowerBounds::Bound LowerBounds::of_argument(const Value* argument) {
    const Operation* loop = argument->region ? argument->region->owner : nullptr;
    if (!loop || loop->operands.size() < carried_operands(*loop)) return {};  // or incomplete
    const auto index = static_cast<std::size_t>(argument->index);
    if (loop->op == Op::for_) {
        if (index == 0) {
            const Bound step = bound(loop->operands[2]);
            if (step.low >= 0) return bound(loop->operands[0]);
            if (!constant_of(loop->operands[2])) return {};
            const Bound end = bound(loop->operands[1]);  // downward, to right above it
            return end.low == kUnknown ? end : Bound{end.low + 1, end.factor};
        }
        const Operation* yield = yield_of(loop->body());
        if (!yield || loop->operands.size() < index + 3 || yield->operands.size() < index) return {};
        return of_carried(argument, loop->operands[index + 2], yield->operands[index - 1]);
    }
    if (loop->op == Op::while_ && loop->regions.size() == 2) {
        const Operation* yield = yield_of(loop->body(1));
        if (!yield || loop->operands.size() <= index || yield->operands.size() <= index) return {};
        const Operation* condition = yield_of(loop->body(0));
        return of_carried(argument, loop->operands[index], yield->operands[index],
                          condition ? condition->operands[0] : nullptr);
    }
    return {};
}

// By induction: the first value has the bound, and if a value has it, and the condition holds, the next one has it.
LowerBounds::Bound LowerBounds::of_carried(const Value* argument, const Value* first, const Value* next,
                                           const Value* condition) {
    if (std::find(assumed_.begin(), assumed_.end(), argument) != assumed_.end()) return {};
    const Bound start = bound(first);
    if (start.low < 0) return {};
    Bound found;
    assumed_.push_back(argument);
    for (const std::int64_t low : {start.low, std::int64_t{0}}) {
        const std::size_t before = mark();
        facts_.push_back({argument, nullptr, low});
        if (condition) learn(condition, true);
        const bool holds = bound(next).low >= low;
        rewind(before);
        if (holds) {
            found = {low, start.factor};
            break;
        }
    }
    assumed_.pop_back();
    return found;
}

LowerBounds::Bound LowerBounds::of_product(const Value* a, const Value* b) {
    if (!assumed_.empty()) return {};  // a product that grows with each iteration will overflow
    if (constant_of(a)) std::swap(a, b);
    const Bound x = bound(a), y = bound(b);
    if (x.low < 0 || y.low < 0) return {};
    const std::optional<std::int64_t> by = constant_of(b);
    const auto is_extent = [](const Value* value) {
        const Value* base = base_and_offset(value).base;
        return base && base->definition && base->definition->op == Op::dim;
    };
    if (by) return scaled(x, *by);
    if (!is_extent(a) && !is_extent(b)) return {};
    return {0, std::max(x.factor, y.factor)};
}

LowerBounds::Bound LowerBounds::scaled(Bound bound, std::int64_t by) {
    by = std::max<std::int64_t>(by, 1);
    if (bound.low < 0 || by > kLargestFactor || bound.factor * by > kLargestFactor) return {};
    return {0, bound.factor * by};
}

LowerBounds::Bound LowerBounds::of_difference(const Value* a, const Value* b) {
    const BaseOffset x = base_and_offset(a), y = base_and_offset(b);
    if (x.base == y.base) return {x.offset - y.offset};
    std::int64_t low = kUnknown;
    for (const Fact& fact : facts_)
        if (fact.a == x.base && fact.b == y.base) low = std::max(low, fact.least + x.offset - y.offset);
    // The variable of an upward loop stays below its end.
    const Operation* loop = y.base && y.base->region ? y.base->region->owner : nullptr;
    if (loop && loop->op == Op::for_ && loop->operands.size() >= 3 && y.base->index == 0) {
        const std::optional<std::int64_t> step = constant_of(loop->operands[2]);
        const BaseOffset end = base_and_offset(loop->operands[1]);
        if (step && *step > 0 && end.base == x.base) low = std::max(low, 1 - end.offset + x.offset - y.offset);
    }
    return {low};
}

void LowerBounds::assume_difference(const Value* a, const Value* b, std::int64_t least) {
    const BaseOffset x = base_and_offset(a), y = base_and_offset(b);
    if (!x.base || x.base == y.base) return;
    if (y.base) facts_.push_back({x.base, y.base, least - x.offset + y.offset});
    const std::int64_t low = bound(b).low;
    if (low != kUnknown) facts_.push_back({x.base, nullptr, least - x.offset + low});
}

void LowerBounds::learn(const Value* condition, bool holds) {
    const Operation* definition = condition->definition;
    if (!definition) return;
    const auto& operands = definition->operands;
    switch (definition->op) {
        case Op::and_:
            if (!holds) return;
            break;
        case Op::or_:
            if (holds) return;
            break;
        case Op::invert:
            return learn(operands[0], !holds);
        case Op::select:  // `and`, `or`
            if (holds ? is_constant(operands[2], 0) : is_constant(operands[1], 1)) {
                learn(operands[0], holds);
                learn(operands[holds ? 1 : 2], holds);
            }
            return;
        case Op::if_: {
            const Operation *yes = yield_of(definition->body(0)), *no = yield_of(definition->body(1));
            const auto at = static_cast<std::size_t>(condition->index);
            if (!yes || !no || yes->operands.size() <= at || no->operands.size() <= at) return;
            if (holds ? is_constant(no->operands[at], 0) : is_constant(yes->operands[at], 1)) {
                learn(operands[0], holds);
                learn((holds ? yes : no)->operands[at], holds);
            }
            return;
        }
        default:
            break;
    }
    if (definition->op == Op::and_ || definition->op == Op::or_) {
        for (const Value* operand : operands) learn(operand, holds);
        return;
    }
    if (op_class(definition->op) != OpClass::compare || !is_signed_integer(operands[0])) return;
    const Value *a = operands[0], *b = operands[1];
    switch (definition->op) {
        case Op::cmp_lt:
            return holds ? assume_difference(b, a, 1) : assume_difference(a, b, 0);
        case Op::cmp_le:
            return holds ? assume_difference(b, a, 0) : assume_difference(a, b, 1);
        case Op::cmp_gt:
            return holds ? assume_difference(a, b, 1) : assume_difference(b, a, 0);
        case Op::cmp_ge:
            return holds ? assume_difference(a, b, 0) : assume_difference(b, a, 1);
        case Op::cmp_eq:
        case Op::cmp_ne:
            if ((definition->op == Op::cmp_eq) == holds) {
                assume_difference(a, b, 0);
                assume_difference(b, a, 0);
            } else if (const std::optional<std::int64_t> number = constant_of(b); number && bound(a).low == *number) {
                assume_difference(a, b, 1);  // at least that number, and different
            }
            return;
        default:
            return;
    }
}

}  // namespace weft::ir

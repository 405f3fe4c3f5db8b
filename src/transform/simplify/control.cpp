// Branches and loops: conditions that are known, loops that do not run, carried values that never change.
#include "transform/simplify/simplifier.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

bool is_yield_only(const Region& region) { return region.operations.size() == 1; }

// Types that a select may choose between: those that live in registers.
bool is_selectable(Type type) { return type.is_scalar() || type.is_numeric_aggregate(); }

// The trip count of lo, lo + step, ... below (or above) hi, if it is 0 or 1; -1 if it is larger.
int short_trip_count(const Number& lo, const Number& hi, const Number& step, bool is_signed) {
    const auto before = [&](std::int64_t a, std::int64_t b) {
        return is_signed ? a < b : static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b);
    };
    const bool up = !is_signed || step.i > 0;
    if (up ? !before(lo.i, hi.i) : !before(hi.i, lo.i)) return 0;
    // The distance fits 64 bits without sign; the counter of the last iteration never overflows its type.
    const std::uint64_t distance = up ? static_cast<std::uint64_t>(hi.i) - static_cast<std::uint64_t>(lo.i)
                                      : static_cast<std::uint64_t>(lo.i) - static_cast<std::uint64_t>(hi.i);
    const std::uint64_t stride = up ? static_cast<std::uint64_t>(step.i) : 0 - static_cast<std::uint64_t>(step.i);
    return distance <= stride ? 1 : -1;
}

}  // namespace

// Called once per round, as loops with many breaks have deeply nested regions.
bool Simplifier::find_writing(const Region& region) {
    bool any = false;
    for (const Operation* operation : region.operations) {
        if (ir::only_reports(operation->op)) continue;
        bool writes = operation->regions.empty() && ir::has_effects(*operation);
        for (const Region* inner : operation->regions) writes |= find_writing(*inner);
        if (writes && !operation->regions.empty()) writing_.insert(operation);
        any |= writes;
    }
    return any;
}

// if true { A } else { B } → A
bool Simplifier::splice_arm(Operation& operation) {
    const Number* condition = uniform_constant(operation.operands[0]);
    if (!condition) return false;
    const Region& arm = operation.body(condition->i ? 0 : 1);
    for (Operation* inner : arm.operations) {
        if (inner->op == Op::yield) break;
        visit(*inner);
    }
    const Operation& yield = *arm.terminator();
    for (std::size_t i = 0; i < operation.results.size(); ++i) replace(operation.results[i], map_[yield.operands[i]]);
    changed_ = true;
    return true;
}

// A result that both arms yield alike is that value; if the arms only yield, it is a select.
void Simplifier::merge_equal_yields(Operation& operation) {
    const Operation& yes = *operation.body(0).terminator();
    const Operation& no = *operation.body(1).terminator();
    const bool only_yields = is_yield_only(operation.body(0)) && is_yield_only(operation.body(1));
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
        Value* const a = yes.operands[i];
        Value* const b = no.operands[i];
        if (a == b) {
            replace(operation.results[i], a);
        } else if (only_yields && is_selectable(a->type)) {
            Operation* select = function_.new_operation(Op::select, operation.span);
            select->operands = {operation.operands[0], a, b};
            Value* const result = function_.add_result(select, a->type);
            visit(*select);
            replace(operation.results[i], map_[result]);
        }
    }
}

void Simplifier::if_(Operation& operation) {
    if (splice_arm(operation)) return;
    // if not c { A } else { B } → if c { B } else { A }
    if (const Operation* inner = operation.operands[0]->definition; inner && inner->op == Op::invert) {
        operation.operands[0] = inner->operands[0];
        std::swap(operation.regions[0], operation.regions[1]);
        changed_ = true;
    }
    const int epoch = subexpressions_.epoch();
    for (Region* arm : operation.regions) {
        subexpressions_.set_epoch(epoch);
        region(*arm);
    }
    subexpressions_.set_epoch(epoch);
    if (writes(operation)) subexpressions_.new_epoch();
    merge_equal_yields(operation);
    keep(operation);
}

// A carried value that the body yields unchanged is its initial value, in the loop and after it.
void Simplifier::drop_unchanged(Operation& loop, std::size_t first_init, std::span<Region* const> with_arguments,
                                std::size_t first_argument, const Region& body) {
    const Operation& yield = *body.terminator();
    for (std::size_t i = 0; i < loop.results.size(); ++i) {
        Value* const init = loop.operands[first_init + i];
        Value* const next = map_[yield.operands[i]];
        bool unchanged = next == init;
        for (const Region* region : with_arguments) unchanged |= next == region->arguments[first_argument + i];
        if (!unchanged) continue;
        // A guard stays carried though it never changes; replacing it once more must not keep the rounds going.
        for (const Region* region : with_arguments) {
            Value* const argument = region->arguments[first_argument + i];
            map_.set(argument, init);
            changed_ |= is_used(argument);
        }
        map_.set(loop.results[i], init);
        changed_ |= is_used(loop.results[i]);
    }
}

void Simplifier::for_(Operation& operation) {
    Region& body = operation.body();
    const Number* lo = uniform_constant(operation.operands[0]);
    const Number* hi = uniform_constant(operation.operands[1]);
    const Number* step = uniform_constant(operation.operands[2]);
    const std::size_t carried = operation.results.size();
    const auto init = [&](std::size_t i) { return operation.operands[3 + i]; };

    // for 0 to 0 { A } → nothing;  for 0 to 1 { A } → A
    const Number* go = operation.guarded ? uniform_constant(init(carried - 1)) : nullptr;
    int trips = -1;
    if (lo && hi && step && step->i != 0) {
        trips = short_trip_count(*lo, *hi, *step, info(operation.operands[0]->type.scalar()).is_signed());
        if (trips == 1 && operation.guarded && !(go && go->i)) trips = -1;
    }
    if (go && !go->i) trips = 0;
    if (trips == 0) {
        for (std::size_t i = 0; i < carried; ++i) replace(operation.results[i], init(i));
        changed_ = true;
        return;
    }
    if (trips == 1) {
        map_.set(body.arguments[0], operation.operands[0]);
        for (std::size_t i = 0; i < carried; ++i) map_.set(body.arguments[1 + i], init(i));
        for (Operation* inner : body.operations) {
            if (inner->op == Op::yield) break;
            visit(*inner);
        }
        const Operation& yield = *body.terminator();
        for (std::size_t i = 0; i < carried; ++i) replace(operation.results[i], map_[yield.operands[i]]);
        changed_ = true;
        return;
    }

    Region* const regions[] = {&body};
    drop_unchanged(operation, 3, regions, 1, body);
    // Inside a guarded loop the guard is true, or the iteration would not be running.
    if (operation.guarded && is_used(body.arguments.back()) && !map_.find(body.arguments.back())) {
        replace(body.arguments.back(), boolean(true, operation.span));
    }
    const bool writing = writes(operation);
    if (writing) subexpressions_.new_epoch();
    region(body);
    if (writing) subexpressions_.new_epoch();

    // A guard that never becomes false is dropped.
    if (operation.guarded && go && go->i) {
        const Number* next = uniform_constant(body.terminator()->operands.back());
        if (next && next->i) {
            operation.guarded = false;
            changed_ = true;
        }
    }
    keep(operation);
}

void Simplifier::while_(Operation& operation) {
    Region& condition = operation.body(0);
    Region& body = operation.body(1);
    drop_unchanged(operation, 0, operation.regions, 0, body);
    const bool writing = writes(operation);
    if (writing) subexpressions_.new_epoch();
    region(condition);
    if (writing) subexpressions_.new_epoch();

    // while false { A } → nothing, if the condition has no effects
    const Number* goes_on = uniform_constant(condition.terminator()->operands[0]);
    bool asking_has_effects = false;
    for (const Operation* inner : condition.operations) asking_has_effects |= ir::has_effects(*inner);
    if (goes_on && !goes_on->i && !asking_has_effects) {
        for (std::size_t i = 0; i < operation.results.size(); ++i) {
            if (!map_.find(operation.results[i])) replace(operation.results[i], operation.operands[i]);
        }
        changed_ = true;
        return;
    }
    region(body);
    if (writing) subexpressions_.new_epoch();
    keep(operation);
}

}  // namespace weft::transform

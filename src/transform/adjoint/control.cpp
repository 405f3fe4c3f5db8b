// Branches and loops.
//
// before:  %s = for %k = %lo to %hi step 1 carry (%c = %a) { %n = mul %c, %x; yield %n }
//
// replay:  %stack = stack %count
//          %s = for %t = 0 to %count step 1 carry (%c = %a) { store %stack[%t], %c; %n = mul %c, %x; yield %n }
// reverse: %da, %dx = for %t = %count - 1 to -1 step -1 carry (%d = %ds, %e = %dx0) {
//              %c = load %stack[%t]
//              yield (mul %d, %x), (add %e, (mul %d, %c))
//          }
//
// Some loops have no trip count beforehand: a while, or a for that a condition may end. Such a loop runs once more, to
// be counted. If it runs a few times at most, the stacks have room for all of them, and it counts while it fills them.
// A loop that runs more often than its stacks have room for keeps some states only (checkpoints.cpp).
#include <utility>

#include "ir/loop_builder.h"
#include "ir/loops.h"
#include "ir/typing.h"
#include "support/error.h"
#include "transform/adjoint/derivative.h"
#include "transform/adjoint/reverse.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

// Guarded loops of at most so many iterations have room for all of them.
constexpr std::int64_t kMostUncounted = 256;

}  // namespace

// ---- replay ----

// The number of iterations of a for: (hi - lo) / step, rounded up; 0 if that is negative.
Value* Reverser::trip_count(const Operation& operation) {
    Value *lo = copy(operation.operands[0]), *hi = copy(operation.operands[1]), *step = copy(operation.operands[2]);
    const Type type = lo->type;
    Value *zero = b_.integer(0, type), *one = b_.integer(1, type);
    const Operation* known = operation.operands[2]->definition;
    if (known && known->op == Op::constant && known->numbers[0].i == 1)
        return b_.select(b_.compare(Op::cmp_lt, lo, hi), b_.binary(Op::sub, hi, lo), zero);
    Value *up = b_.compare(Op::cmp_gt, step, zero), *down = b_.compare(Op::cmp_lt, step, zero);
    Value* runs =
        b_.select(up, b_.compare(Op::cmp_lt, lo, hi), b_.binary(Op::and_, down, b_.compare(Op::cmp_gt, lo, hi)));
    Value* rounding = b_.select(up, b_.binary(Op::sub, step, one), b_.binary(Op::add, step, one));
    Value* distance = b_.binary(Op::add, b_.binary(Op::sub, hi, lo), rounding);
    Value* divisor = b_.select(b_.compare(Op::cmp_eq, step, zero), one, step);
    return b_.select(runs, b_.binary(Op::div, distance, divisor), zero);
}

// Runs the loop only to count its iterations.
Value* Reverser::counted(const Operation& operation) {
    const Type type = operation.op == Op::for_ ? operation.operands[0]->type : i32_type();
    const auto counting = [&](const Region& region, const std::vector<Value*>& count) {
        replay(region, /*saves_loops=*/false);
        return std::vector<Value*>{b_.binary(Op::add, count[0], b_.integer(1, type))};
    };
    return append_structured(operation, {b_.integer(0, type)}, counting)[0];
}

void Reverser::replay_loop(const Operation& operation) {
    SavedLoop saved;
    const std::optional<std::int64_t> most = ir::known_trips(operation);
    if (operation.guarded && most && *most <= kMostUncounted) {
        saved.count = b_.integer(*most, operation.operands[0]->type);
        open_stacks(operation, saved);
        const auto saving = [&](const Region& region, const std::vector<Value*>& count) {
            // All lanes have the same loop counter; their counts differ.
            Value *at = b_.binary(Op::sub, copy(region.arguments[0]), copy(operation.operands[0])),
                  *step = copy(operation.operands[2]);
            save_state(operation, saved, b_.binary(Op::div, at, step));
            replay(region, /*saves_loops=*/false);
            return std::vector<Value*>{b_.binary(Op::add, count[0], b_.integer(1, count[0]->type))};
        };
        saved.count = append_structured(operation, {b_.integer(0, saved.count->type)}, saving)[0];
        saved_loops_[&operation] = std::move(saved);
        return;
    }
    const bool is_counted = operation.op != Op::for_ || operation.guarded;
    saved.count = is_counted ? counted(operation) : trip_count(operation);
    Value* const count = saved.count;
    std::vector<Value*> start;
    for (std::size_t i = ir::carried_operands(operation); i < operation.operands.size(); ++i)
        start.push_back(copy(operation.operands[i]));
    open_stacks(operation, saved);
    const Region& body = body_of(operation);
    const auto iteration = [&](Value* k, const std::vector<Value*>& now) {
        for (std::size_t i = 0; i < operation.results.size(); ++i)
            map_.set(body.arguments[ir::carried_arguments(operation) + i], now[i]);
        save_state(operation, saved, k);
        set_counter(operation, k);
        replay(body, /*saves_loops=*/false);
        return copies(body.terminator()->operands);
    };
    const std::vector<Value*> last =
        ir::build_for(b_, b_.integer(0, count->type), count, b_.integer(1, count->type), std::move(start), iteration);
    // The counting run has given the results already. So this run is dead code if the loop needs no stack.
    for (std::size_t i = 0; i < operation.results.size() && !is_counted; ++i) map_.set(operation.results[i], last[i]);
    saved_loops_[&operation] = std::move(saved);
}

// Makes `t` the iteration that is copied from here on.
void Reverser::set_counter(const Operation& operation, Value* t) {
    const Region& body = body_of(operation);
    if (operation.op == Op::for_) {
        Value* distance = b_.binary(Op::mul, t, copy(operation.operands[2]));
        map_.set(body.arguments[0], b_.binary(Op::add, copy(operation.operands[0]), distance));
    }
    if (operation.guarded) map_.set(body.arguments.back(), b_.boolean(true));
}

// ---- reverse ----

void Reverser::reverse_if(const Operation& operation) {
    std::vector<Value*> given;
    bool any = false;
    for (const Value* result : operation.results) {
        given.push_back(is_active(result) ? adjoint_of(result) : nullptr);
        any |= given.back() != nullptr;
    }
    if (!any && !writes_gradients(operation)) return;

    Operation* made = b_.if_(copy(operation.operands[0]), {});
    Frame arms[2];
    for (std::size_t arm : {std::size_t{0}, std::size_t{1}}) {
        const Region& region = operation.body(arm);
        arms[arm].outer = frame_;
        arms[arm].region = &region;
        Frame* const outer = std::exchange(frame_, &arms[arm]);
        ir::Builder::Inside inside(b_, made->body(arm));
        replay(region, /*saves_loops=*/true);
        for (std::size_t i = 0; i < given.size(); ++i) accumulate(region.terminator()->operands[i], given[i]);
        reverse(region);
        frame_ = outer;
    }
    std::vector<const Value*> changed = changed_outside(arms[0]);
    for (const Value* value : changed_outside(arms[1]))
        if (!arms[0].adjoints.contains(value)) changed.push_back(value);
    for (std::size_t arm : {std::size_t{0}, std::size_t{1}}) {
        Frame* const outer = std::exchange(frame_, &arms[arm]);
        ir::Builder::Inside inside(b_, made->body(arm));
        std::vector<Value*> yields;
        for (const Value* value : changed) yields.push_back(adjoint_or_zero(value));
        b_.yield(std::move(yields));
        frame_ = outer;
    }
    for (const Value* value : changed) set_adjoint(value, made_->add_result(made, value->type));
}

void Reverser::reverse_loop(const Operation& operation) {
    const Region& body = body_of(operation);
    const std::size_t arguments = ir::carried_arguments(operation);
    std::vector<std::size_t> smooth;  // carried values that have an adjoint
    std::vector<Value*> start;
    bool any = false;
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
        const Value* argument = body.arguments[arguments + i];
        if (!is_active(argument) && !is_active(operation.results[i])) continue;
        smooth.push_back(i);
        any |= adjoint_of(operation.results[i]) != nullptr;
        start.push_back(adjoint_or_zero(operation.results[i]));
    }
    if (!any && !writes_gradients(operation)) return;

    const SavedLoop saved = saved_loops_.at(&operation);
    const Type counting = saved.count->type;
    if (saved.has_checkpoints()) start.push_back(b_.integer(0));
    // Counts down to 0, so that all threads end together: lanes that start apart still read one row of the stack.
    // Unsigned counters cannot end below 0.
    const bool counts_down = info(counting.scalar()).is_signed();
    Value *zero = b_.integer(0, counting), *one = b_.integer(1, counting);
    Value *last = b_.binary(Op::sub, saved.count, one), *down = counts_down ? b_.integer(-1, counting) : nullptr;
    Frame frame;
    frame.outer = frame_;
    frame.region = &body;
    Frame* const outer = std::exchange(frame_, &frame);
    const auto iteration = [&](Value* k, const std::vector<Value*>& carried) {
        frame.loop = &b_.region();
        Value* t = counts_down ? k : b_.binary(Op::sub, last, k);
        for (std::size_t i = 0; i < saved.stacks.size(); ++i) {
            if (saved.stacks[i]) continue;
            fail(operation, "the loop changes which array " + name_of(*body.arguments[arguments + i]) + " is");
        }
        Value* newest = saved.has_checkpoints() ? carried.back() : nullptr;
        const std::vector<Value*> state = state_at(operation, saved, t, newest);
        for (std::size_t i = 0; i < state.size(); ++i) map_.set(body.arguments[arguments + i], state[i]);
        set_counter(operation, t);
        replay(body, /*saves_loops=*/true);
        for (std::size_t n = 0; n < smooth.size(); ++n) accumulate(body.terminator()->operands[smooth[n]], carried[n]);
        reverse(body);
        std::vector<Value*> next;
        for (const std::size_t i : smooth) next.push_back(adjoint_or_zero(body.arguments[arguments + i]));
        if (newest) next.push_back(newest);
        for (const Value* value : frame.carried) next.push_back(frame.adjoints.at(value));
        return next;
    };
    if (counts_down)
        ir::build_for(b_, last, down, down, std::move(start), iteration);
    else
        ir::build_for(b_, zero, saved.count, one, std::move(start), iteration);
    frame_ = outer;

    // The other carried adjoints were found inside the loop. Their initial values belong before it.
    Operation* made = frame.loop->owner;
    b_.region().operations.pop_back();
    for (const Value* value : frame.carried) made->operands.push_back(adjoint_or_zero(value));
    b_.region().operations.push_back(made);
    for (const Value* value : frame.carried) set_adjoint(value, made_->add_result(made, value->type));
    for (std::size_t k = 0; k < smooth.size(); ++k)
        accumulate(operation.operands[ir::carried_operands(operation) + smooth[k]], made->result(k));
}

}  // namespace weft::transform

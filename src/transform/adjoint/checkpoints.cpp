// The initial states of a loop's iterations.
//
// A stack with a slot for each iteration holds them all. If a thread runs more iterations than there are slots, the
// slots become a stack of checkpoints. Iteration 0 lies at its bottom. Any other iteration is recomputed from the last
// checkpoint before it, leaving new checkpoints for the iterations that come next. Their positions follow Griewank's
// binomial schedule: with s slots, each iteration of a loop of up to (s + r choose r) is run again at most r times,
// which is optimal. With 16 slots that is 5 times for 20,000 iterations.
#include <algorithm>

#include "ir/loop_builder.h"
#include "ir/loops.h"
#include "ir/typing.h"
#include "support/error.h"
#include "transform/adjoint/reverse.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

constexpr std::int64_t kFewestSlots = 2;
constexpr std::int64_t kUsualState = 64;  // bytes of an iteration

// The number of steps from a checkpoint to the next one, if `length` iterations from the checkpoint on are to be
// reversed, the last one first. `slots` counts the free slots, that of the checkpoint included. All numbers are i64.
//
// Let b(s, r) = (s + r choose s), and r the least number with b(slots, r) >= length. The iterations after the next
// checkpoint must be within b(slots - 1, r); those before it are at least b(slots, r - 2).
Value* next_distance(ir::Builder& b, Value* length, Value* slots) {
    Value *one = b.integer(1, i64_type()), *none = b.integer(0, i64_type());
    // r, and b(slots, .) of r, r - 1 and r - 2
    const std::vector<Value*> found = ir::build_while(
        b, {one, b.binary(Op::add, slots, one), one, none},
        [&](const std::vector<Value*>& now) { return b.compare(Op::cmp_lt, now[1], length); },
        [&](const std::vector<Value*>& now) -> std::vector<Value*> {
            Value* r = b.binary(Op::add, now[0], one);
            Value* next = b.binary(Op::div, b.binary(Op::mul, now[1], b.binary(Op::add, slots, r)), r);
            return {r, next, now[1], now[2]};
        });
    Value *r = found[0], *reach = found[1], *least = found[3];
    Value* after = b.binary(Op::div, b.binary(Op::mul, reach, slots), b.binary(Op::add, slots, r));
    return b.binary(Op::max, b.binary(Op::max, one, least), b.binary(Op::sub, length, after));
}

}  // namespace

// Opens stacks for the carried values of a loop that runs saved.count times. Arrays have none: those that change from
// iteration to iteration cannot be kept.
void Reverser::open_stacks(const Operation& operation, SavedLoop& saved) {
    const Type counting = saved.count->type;
    std::int64_t bytes = 0;  // of one iteration, with its number
    for (std::size_t i = ir::carried_operands(operation); i < operation.operands.size(); ++i)
        if (const Type type = operation.operands[i]->type; !ir::holds_array(type)) bytes += type.size_bytes();
    Value* size = saved.count;
    const std::int64_t slots = bytes > 0 ? slots_for(operation, bytes + counting.size_bytes(), counting) : 0;
    const std::optional<std::int64_t> known = ir::known_trips(operation);
    const bool may_be_more = (counting.size_bytes() >= 4 || options_.stack_slots) && known.value_or(slots + 1) > slots;
    if (bytes > 0 && may_be_more) {
        saved.slots = slots;
        Value* all = b_.integer(slots, counting);
        saved.is_complete = b_.compare(Op::cmp_le, saved.count, all);
        size = b_.binary(Op::min, saved.count, all);
        Value* numbers = b_.select(saved.is_complete, b_.integer(1, counting), all);
        saved.iterations = stack(counting, numbers, slots);
        b_.store(saved.iterations, {b_.integer(0)}, b_.integer(0, counting));
    }
    for (std::size_t i = ir::carried_operands(operation); i < operation.operands.size(); ++i) {
        const Type type = operation.operands[i]->type;
        const std::int64_t most = may_be_more ? slots : std::max<std::int64_t>(known.value_or(1), 1);
        saved.stacks.push_back(ir::holds_array(type) ? nullptr : stack(type, size, most));
    }
}

// The number of iterations that may keep their state, of `bytes` each.
std::int64_t Reverser::slots_for(const Operation& loop, std::int64_t bytes, Type counting) const {
    const std::int64_t slots = std::max(kFewestSlots, options_.stack_bytes / bytes);
    if (!options_.stack_slots) return slots;
    if (*options_.stack_slots < kFewestSlots)
        fail(loop, "the initial state of each iteration of this loop has to be kept, and there is room for " +
                       std::to_string(*options_.stack_slots) + " of them in a thread; it takes " +
                       std::to_string(kFewestSlots));
    const std::int64_t largest = (std::int64_t{1} << std::min<std::int64_t>(8 * counting.size_bytes() - 1, 62)) - 1;
    // A loop of few iterations, of a number that is known, keeps them all: running some again takes longer than memory.
    const std::int64_t known = ir::known_trips(loop).value_or(0);
    const bool has_room = known * bytes <= *options_.stack_slots * kUsualState;
    return std::min({slots, has_room ? std::max(known, *options_.stack_slots) : *options_.stack_slots, largest});
}

// Memory for `count` elements, at most `most`. It has room for `most` if the thread has no growing stack.
Value* Reverser::stack(Type element, Value* count, std::int64_t most) {
    const Type type = Type::array(element, 1);
    if (!options_.stack_slots) return b_.stack(type, count);
    Value* array = b_.local_array(type, {most});
    array->definition->unset = true;  // written before it is read
    return array;
}

// Called in the first run through the loop, at the beginning of iteration `t`. Iterations without a slot of their own
// share the last one, which is never read before a checkpoint replaces it.
void Reverser::save_state(const Operation& operation, const SavedLoop& saved, Value* t) {
    Value* slot = saved.has_checkpoints() ? b_.binary(Op::min, t, b_.integer(saved.slots - 1, t->type)) : t;
    const std::size_t first = ir::carried_arguments(operation);
    for (std::size_t i = 0; i < saved.stacks.size(); ++i)
        if (saved.stacks[i]) b_.store(saved.stacks[i], {slot}, copy(body_of(operation).arguments[first + i]));
}

std::vector<Value*> Reverser::state_at(const Operation& operation, const SavedLoop& saved, Value* t, Value*& newest) {
    const auto loads = [&](Value* slot) {
        std::vector<Value*> state;
        for (Value* stack : saved.stacks) state.push_back(b_.load(stack, {slot}));
        return state;
    };
    if (!saved.has_checkpoints()) return loads(t);
    std::vector<Type> types;
    for (const Value* stack : saved.stacks) types.push_back(stack->type.element());
    types.push_back(newest->type);
    Operation* made = b_.if_(saved.is_complete, types);
    made->likely = true;
    {
        ir::Builder::Inside inside(b_, made->body(0));
        std::vector<Value*> yields = loads(t);
        yields.push_back(newest);
        b_.yield(std::move(yields));
    }
    {
        ir::Builder::Inside inside(b_, made->body(1));
        b_.yield(recomputed(operation, saved, t, loads(newest), newest));
    }
    newest = made->results.back();
    return {made->results.begin(), made->results.end() - 1};
}

// The initial state of iteration `t`, computed from the newest checkpoint and its `state`. The last value returned is
// the newest checkpoint that is left for the iterations before `t`.
std::vector<Value*> Reverser::recomputed(const Operation& operation, const SavedLoop& saved, Value* t,
                                         std::vector<Value*> state, Value* newest) {
    const auto wide = [&](Value* number) { return b_.cast(number, Scalar::i64); };
    Value* start = b_.load(saved.iterations, {newest});
    std::vector<Value*> carried{start, newest};
    carried.insert(carried.end(), state.begin(), state.end());
    const auto is_before = [&](const std::vector<Value*>& now) { return b_.compare(Op::cmp_lt, now[0], t); };
    const auto to_next_checkpoint = [&](const std::vector<Value*>& now) {
        Value *one = b_.integer(1, t->type), *length = b_.binary(Op::add, b_.binary(Op::sub, t, now[0]), one);
        Value* slots = b_.binary(Op::sub, b_.integer(saved.slots), now[1]);
        Value* distance = b_.cast(next_distance(b_, wide(length), wide(slots)), t->type.scalar());
        std::vector<Value*> next = run_on(operation, now[0], distance, {now.begin() + 2, now.end()});
        Value* at = b_.binary(Op::add, now[0], distance);

        Operation* keep = b_.if_(b_.compare(Op::cmp_lt, at, t), {newest->type});
        {
            ir::Builder::Inside kept(b_, keep->body(0));
            Value* slot = b_.binary(Op::add, now[1], b_.integer(1));
            b_.store(saved.iterations, {slot}, at);
            for (std::size_t i = 0; i < next.size(); ++i) b_.store(saved.stacks[i], {slot}, next[i]);
            b_.yield({slot});
        }
        {
            ir::Builder::Inside passed(b_, keep->body(1));
            b_.yield({now[1]});
        }
        next.insert(next.begin(), {at, keep->result(0)});
        return next;
    };
    const std::vector<Value*> last = ir::build_while(b_, std::move(carried), is_before, to_next_checkpoint);
    std::vector<Value*> found(last.begin() + 2, last.end());
    Value* was_it = b_.compare(Op::cmp_eq, start, t);
    found.push_back(b_.select(was_it, b_.binary(Op::sub, newest, b_.integer(1)), last[1]));
    return found;
}

// The state after `steps` more iterations of the loop than `from`.
std::vector<Value*> Reverser::run_on(const Operation& operation, Value* from, Value* steps, std::vector<Value*> state) {
    const Region& body = body_of(operation);
    const auto iteration = [&](Value* k, const std::vector<Value*>& now) {
        for (std::size_t i = 0; i < now.size(); ++i)
            map_.set(body.arguments[ir::carried_arguments(operation) + i], now[i]);
        set_counter(operation, b_.binary(Op::add, from, k));
        replay(body, /*saves_loops=*/false);
        return copies(body.terminator()->operands);
    };
    return ir::build_for(b_, b_.integer(0, steps->type), steps, b_.integer(1, steps->type), std::move(state),
                         iteration);
}

}  // namespace weft::transform

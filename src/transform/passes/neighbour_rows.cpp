// Turns loops over the items of a hash grid's query into loops over rows of cells.
//
// A query gives one item after the other. Its state holds the positions `at` and `end` of a run: items that lie side by
// side, in a row of cells. A loop inside of the user's loop advances to the next run at the end of the present one:
//
//   before:  while carry (state, at, end, ..., go) { yield go } do {
//              state, at, end = while carry (state, at, end) { at >= end and MORE(state) } do { STEP }
//              found = at < end
//              ..., go = if found { BODY } else { ...; yield false }
//              yield state, at + 1, end, ..., go
//            }
//   after:   while carry (state, ..., go) { go and MORE(state) } do {
//              state, at, end = STEP
//              ..., go = for k in at .. end, while go { BODY }
//            }
//            if go { the iteration that finds no item }
//
// Then each item costs a counter only, and no test of the state. This matters for lanes above all: they advance
// together, once for each run. Before, all lanes went through the advance for an item whenever one of them had to.
//
// If points have groups, items of other groups are skipped: MORE is a branch by at < end, and one arm of it tests the
// item. That becomes a branch around BODY.
//
// The order of all effects of a thread stays the same.
#include "transform/passes/neighbour_rows.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/loop_builder.h"
#include "ir/walk.h"
#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

namespace {

// A loop over items, taken apart.
struct ItemLoop {
    Operation* loop = nullptr;       // the user's loop
    Operation* advance = nullptr;    // the loop in it that advances to the next run
    std::size_t at = 0, end = 0;     // their indices among the values that `advance` carries
    std::size_t guard = 0;           // the index of the condition among the values that `loop` carries
    std::vector<std::size_t> state;  // by value that `advance` carries: its index in `loop`
    const Value* more = nullptr;     // MORE, in the condition of `advance`
    const Region* passes = nullptr;  // with groups: the arm of MORE that decides whether an item is skipped
    const Region* step = nullptr;    // STEP
    const Value* found = nullptr;    // at < end, after `advance`

    Region& body() const { return loop->body(1); }
    bool is_state(std::size_t carried) const { return std::ranges::find(state, carried) != state.end(); }
};

bool is_defined_in(const Value* value, const Region& region) {
    for (const Region* at = ir::region_of(value); at; at = at->owner ? at->owner->parent : nullptr)
        if (at == &region) return true;
    return false;
}

// Whether the value compares the two others in this way, written from either side.
bool compares(const Value* value, Op op, Op mirrored, const Value* left, const Value* right) {
    const Operation* made = value->definition;
    if (!made) return false;
    return (made->op == op && made->operands[0] == left && made->operands[1] == right) ||
           (made->op == mirrored && made->operands[0] == right && made->operands[1] == left);
}
bool is_below(const Value* value, const Value* left, const Value* right) {
    return compares(value, Op::cmp_lt, Op::cmp_gt, left, right);
}

bool is_next(const Value* value, const Value* number) {
    const Operation* made = value->definition;
    if (!made || made->op != Op::add) return false;
    return (made->operands[0] == number && constant_integer(made->operands[1]) == 1) ||
           (made->operands[1] == number && constant_integer(made->operands[0]) == 1);
}

// Whether a bool is false whenever `found` is false.
bool needs_found(const Value* value, const Value* found) {
    if (value == found) return true;
    const Operation* made = value->definition;
    if (!made) return false;
    switch (made->op) {
        case Op::constant:
            return made->numbers[0].i == 0;
        case Op::and_:
            return std::ranges::any_of(made->operands, [&](const Value* part) { return needs_found(part, found); });
        case Op::select:
            return made->operands[0] == found && needs_found(made->operands[2], found);
        case Op::if_: {
            if (made->operands[0] != found) return false;
            return needs_found(made->body(1).terminator()->operands[static_cast<std::size_t>(value->index)], found);
        }
        default:
            return false;
    }
}

bool is_constant(const Value* value, bool truth) {
    const Operation* made = value->definition;
    return made && made->op == Op::constant && (made->numbers[0].i != 0) == truth;
}

// Whether a bool equals `found`.
bool is_just_found(const Value* value, const Value* found) {
    if (value == found) return true;
    const Operation* made = value->definition;
    if (!made || (made->op != Op::if_ && made->op != Op::select) || made->operands[0] != found) return false;
    const auto of = [&](std::size_t way) {
        return made->op == Op::select ? made->operands[1 + way]
                                      : made->body(way).terminator()->operands[static_cast<std::size_t>(value->index)];
    };
    return (is_constant(of(0), true) || is_just_found(of(0), found)) && is_constant(of(1), false);
}

class RowLoopFinder {
public:
    RowLoopFinder(Operation& loop, NeighbourRows which) : which_(which) { item_.loop = &loop; }

    // Empty if it is no such loop.
    std::optional<ItemLoop> find() {
        if (find_guard() && find_advance() && find_state() && find_condition() && find_found()) return item_;
        return {};
    }

private:
    // The condition is a value that the loop carries.
    bool find_guard() {
        const Region& condition = item_.loop->body(0);
        if (condition.operations.size() != 1) return false;
        const Value* goes_on = condition.terminator()->operands[0];
        item_.guard = static_cast<std::size_t>(goes_on->index);
        return goes_on->region == &condition;
    }

    // Only loop-invariant operations without effects may come before the loop that advances.
    bool find_advance() {
        const Region& body = item_.body();
        for (Operation* operation : body.operations) {
            if (operation->op == Op::while_) {
                item_.advance = operation;
                return true;
            }
            const bool is_load = operation->op == Op::load;
            if (!operation->regions.empty() || operation->op == Op::yield || ir::has_effects(*operation)) return false;
            if (is_load && !object_reached(operation->operands[0])) return false;
            for (const Value* operand : operation->operands)
                if (operand->region == &body) return false;
        }
        return false;
    }

    // The values that `advance` carries go round the outer loop, and have no other uses.
    bool find_state() {
        const Operation& advance = *item_.advance;
        const Region& body = item_.body();
        for (const Value* init : advance.operands) {
            const auto carried = static_cast<std::size_t>(init->index);
            if (init->region != &body || item_.is_state(carried) || carried == item_.guard) return false;
            item_.state.push_back(carried);
        }
        bool is_alone = true;
        ir::for_each_operation(body, [&](const Operation& operation) {
            if (&operation == &advance) return;
            for (const Value* operand : operation.operands)
                is_alone &= operand->region != &body || !item_.is_state(static_cast<std::size_t>(operand->index));
        });
        if (!is_alone) return false;
        // The loop that advances uses none of the user's values, and has no effects.
        for (const Region* region : advance.regions) {
            bool is_closed = true;
            ir::for_each_operation(*region, [&](const Operation& operation) {
                is_closed &= operation.regions.empty() ? !ir::has_effects(operation) : operation.op == Op::if_;
                for (const Value* operand : operation.operands) is_closed &= operand->region != &body;
            });
            if (!is_closed) return false;
        }
        return true;
    }

    // at >= end and MORE; or, with groups, a branch by at < end.
    bool find_condition() {
        const Value* goes_on = item_.advance->body(0).terminator()->operands[0];
        const Operation* made = goes_on->definition;
        if (!made || !is_defined_in(goes_on, item_.advance->body(0))) return false;
        if (made->op == Op::and_) {
            for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
                if (const Operation* test = made->operands[side]->definition;
                    test && (test->op == Op::cmp_ge || test->op == Op::cmp_le)) {
                    const bool is_mirrored = test->op == Op::cmp_le;
                    if (!find_run(test->operands[is_mirrored ? 1 : 0], test->operands[is_mirrored ? 0 : 1])) continue;
                    item_.more = made->operands[1 - side];
                    item_.step = &item_.advance->body(1);
                    return true;
                }
            return false;
        }
        const Operation* test = made->op == Op::if_ ? made->operands[0]->definition : nullptr;
        if (!test || test->op != Op::cmp_lt || !find_run(test->operands[0], test->operands[1])) return false;
        const auto which = static_cast<std::size_t>(goes_on->index);
        item_.passes = &made->body(0);
        item_.more = made->body(1).terminator()->operands[which];
        return made->results.size() == 1 && find_step_of_group();
    }

    // With groups the step is a branch too: at + 1 within a run, or the next run.
    bool find_step_of_group() {
        const Region& body = item_.advance->body(1);
        const auto& yielded = body.terminator()->operands;
        const Operation* step = yielded[item_.at]->definition;
        if (!step || step->op != Op::if_ || step->parent != &body) return false;
        if (!is_below(step->operands[0], body.arguments[item_.at], body.arguments[item_.end])) return false;
        const auto& passed = step->body(0).terminator()->operands;
        for (std::size_t i = 0; i < yielded.size(); ++i) {
            if (yielded[i] == body.arguments[i]) continue;
            if (yielded[i]->definition != step) return false;
            const Value* next = passed[static_cast<std::size_t>(yielded[i]->index)];
            if (i == item_.at ? !is_next(next, body.arguments[i]) : next != body.arguments[i]) return false;
        }
        item_.step = &body;
        return true;
    }

    bool find_run(const Value* at, const Value* end) {
        const Region& condition = item_.advance->body(0);
        if (at->region != &condition || end->region != &condition || at == end || !(at->type == i32_type()))
            return false;
        item_.at = static_cast<std::size_t>(at->index), item_.end = static_cast<std::size_t>(end->index);
        // No run has begun before the loop.
        const auto before = [&](std::size_t carried) {
            return constant_integer(item_.loop->operands[item_.state[carried]]);
        };
        return before(item_.at) && before(item_.end) && *before(item_.at) >= *before(item_.end);
    }

    bool find_found() {
        const Operation& advance = *item_.advance;
        const Value *at = advance.results[item_.at], *end = advance.results[item_.end];
        const Region& body = item_.body();
        for (const Operation* operation : body.operations)
            if (operation->results.size() == 1 && is_below(operation->result(), at, end))
                item_.found = operation->result();
        const auto& yielded = body.terminator()->operands;
        for (std::size_t i = 0; i < item_.state.size(); ++i) {
            const Value* next = yielded[item_.state[i]];
            if (i == item_.at ? !is_next(next, at) : next != advance.results[i]) return false;
        }
        const Value* goes_on = yielded[item_.guard];
        return item_.found &&
               (which_ == NeighbourRows::all ? needs_found(goes_on, item_.found) : is_just_found(goes_on, item_.found));
    }

    NeighbourRows which_;
    ItemLoop item_;
};

class Rewriter {
public:
    Rewriter(ir::Function& function, const ItemLoop& item)
        : function_(function), item_(item), b_(function, *item.loop->parent) {
        b_.span = item.loop->span;
    }

    void run() {
        Region& around = *item_.loop->parent;
        std::vector<Operation*> operations = std::exchange(around.operations, {});
        const std::vector<Value*> last = loop_over_neighbour_rows();
        Operation* const after = after_the_last(last);
        const std::vector<Operation*> made = std::exchange(around.operations, {});
        const auto at = operations.erase(std::ranges::find(operations, item_.loop));
        operations.insert(at, made.begin(), made.end());
        around.operations = std::move(operations);
        ir::ValueMap map(function_);
        for (std::size_t i = 0; i < after->results.size(); ++i) {
            after->results[i]->name = item_.loop->results[i]->name;
            map.set(item_.loop->results[i], after->results[i]);
        }
        ir::replace_uses(function_.body, map);
    }

private:
    // Returns what the loop over the rows carries at its end.
    std::vector<Value*> loop_over_neighbour_rows() {
        const auto goes_on = [&](const std::vector<Value*>& carried) {
            name(carried);
            return has_more(carried);
        };
        const auto next_row = [&](const std::vector<Value*>& carried) {
            name(carried);
            return one_row(carried);
        };
        std::vector<Value*> last = ir::build_while(b_, item_.loop->operands, goes_on, next_row);
        name(last);
        return last;
    }

    Value* has_more(const std::vector<Value*>& carried) {
        ir::ValueMap map(function_);
        before_the_advance(map);
        const Region& condition = item_.advance->body(0);
        for (std::size_t i = 0; i < item_.state.size(); ++i) map.set(condition.arguments[i], carried[item_.state[i]]);
        // With groups, the arm of the branch that is taken at the end of a run.
        const Operation* const branch = item_.passes ? item_.passes->owner : nullptr;
        for (const Operation* operation : condition.operations) {
            if (operation->op == Op::yield) break;
            if (operation == branch)
                ir::clone_operations(function_, branch->body(1), b_.region(), map);
            else
                append(*operation, map);
        }
        return b_.binary(Op::and_, carried[item_.guard], map[const_cast<Value*>(item_.more)]);
    }

    std::vector<Value*> one_row(const std::vector<Value*>& carried) {
        ir::ValueMap map(function_);
        before_the_advance(map);
        const std::vector<Value*> state = step(carried, map);

        std::vector<Value*> inits;
        for (std::size_t i = 0; i < carried.size(); ++i)
            if (is_of_items(i)) inits.push_back(carried[i]);
        inits.push_back(state[item_.at]);
        inits.push_back(b_.boolean(true));
        const auto item = [&](Value* k, const std::vector<Value*>& carried_by_items) {
            return one_iteration(k, carried_by_items, state, map);
        };
        const std::vector<Value*> items = ir::build_for(b_, state[item_.at], state[item_.end], b_.integer(1),
                                                        std::move(inits), item, /*guarded=*/true);

        std::vector<Value*> next(carried.size());
        std::size_t result = 0;
        for (std::size_t i = 0; i < carried.size(); ++i)
            if (is_of_items(i)) next[i] = items[result++];
        for (std::size_t i = 0; i < state.size(); ++i) next[item_.state[i]] = state[i];
        next[item_.state[item_.at]] = items[result++];
        next[item_.guard] = items[result];
        return next;
    }

    // Whether the loop over the items of a run carries this value of the user's loop. It also carries `at` and the
    // condition.
    bool is_of_items(std::size_t carried) const { return carried != item_.guard && !item_.is_state(carried); }

    std::vector<Value*> step(const std::vector<Value*>& carried, ir::ValueMap& map) {
        const Region& body = *item_.step;
        for (std::size_t i = 0; i < item_.state.size(); ++i) map.set(body.arguments[i], carried[item_.state[i]]);
        const Operation* const branch = item_.passes ? body.terminator()->operands[item_.at]->definition : nullptr;
        for (const Operation* operation : body.operations) {
            if (operation->op == Op::yield) break;
            if (operation == branch)
                take(branch->body(1), *branch, map);
            else
                append(*operation, map);
        }
        std::vector<Value*> state;
        for (Value* const value : body.terminator()->operands) state.push_back(map[value]);
        return state;
    }

    // An iteration of the loop over a row's items, at position k. The last two carried values are `at` and the
    // condition. Returns the values for the next iteration.
    std::vector<Value*> one_iteration(Value* k, std::vector<Value*> carried, const std::vector<Value*>& state,
                                      ir::ValueMap map) {
        carried.resize(carried.size() - 2);
        std::size_t next = 0;
        for (std::size_t i = 0; i < item_.loop->results.size(); ++i)
            if (is_of_items(i)) {
                carried[next]->name = item_.loop->results[i]->name;
                map.set(item_.body().arguments[i], carried[next++]);
            }
        map.set(item_.body().arguments[item_.guard], b_.boolean(true));
        for (std::size_t i = 0; i < state.size(); ++i) map.set(item_.advance->results[i], i == item_.at ? k : state[i]);

        if (!item_.passes) return one_item(map);
        // With groups: an item of another group changes nothing.
        const Region& condition = item_.advance->body(0);
        ir::ValueMap asked = map;
        for (std::size_t i = 0; i < state.size(); ++i)
            asked.set(condition.arguments[i], map[item_.advance->results[i]]);
        for (const Operation* operation : condition.operations) {
            if (operation == item_.passes->owner) break;
            append(*operation, asked);
        }
        ir::clone_operations(function_, *item_.passes, b_.region(), asked);
        Value* const is_passed = asked[item_.passes->terminator()->operands[0]];
        std::vector<Value*> unchanged = carried;
        unchanged.push_back(b_.binary(Op::add, k, b_.integer(1)));
        unchanged.push_back(b_.boolean(true));
        std::vector<Type> types;
        for (const Value* value : unchanged) types.push_back(value->type);
        Operation* const branch = b_.if_(is_passed, std::move(types));
        {
            ir::Builder::Inside arm(b_, branch->body(0));
            b_.yield(std::move(unchanged));
        }
        {
            ir::Builder::Inside arm(b_, branch->body(1));
            b_.yield(one_item(map));
        }
        return branch->results;
    }

    // An iteration of the user's loop that has found an item. Gives the values for the next one.
    std::vector<Value*> one_item(ir::ValueMap map) {
        behind_the_advance(/*found=*/true, map);
        const auto& yielded = item_.body().terminator()->operands;
        std::vector<Value*> next;
        for (std::size_t i = 0; i < yielded.size(); ++i)
            if (is_of_items(i)) next.push_back(map[yielded[i]]);
        next.push_back(map[yielded[item_.state[item_.at]]]);
        next.push_back(map[yielded[item_.guard]]);
        return next;
    }

    // The iteration that finds no more items, unless the loop was left before.
    Operation* after_the_last(const std::vector<Value*>& carried) {
        std::vector<Type> types;
        for (const Value* value : carried) types.push_back(value->type);
        Operation* const branch = b_.if_(carried[item_.guard], std::move(types));
        {
            ir::Builder::Inside arm(b_, branch->body(0));
            ir::ValueMap map(function_);
            for (std::size_t i = 0; i < carried.size(); ++i) map.set(item_.body().arguments[i], carried[i]);
            for (std::size_t i = 0; i < item_.state.size(); ++i)
                map.set(item_.advance->results[i], carried[item_.state[i]]);
            before_the_advance(map);
            behind_the_advance(/*found=*/false, map);
            std::vector<Value*> last;
            for (Value* const value : item_.body().terminator()->operands) last.push_back(map[value]);
            b_.yield(std::move(last));
        }
        ir::Builder::Inside arm(b_, branch->body(1));
        b_.yield(carried);
        return branch;
    }

    void before_the_advance(ir::ValueMap& map) {
        for (const Operation* operation : item_.body().operations) {
            if (operation == item_.advance) return;
            append(*operation, map);
        }
    }
    void behind_the_advance(bool found, ir::ValueMap& map) {
        map.set(item_.found, b_.boolean(found));
        const auto& operations = item_.body().operations;
        for (auto at = std::ranges::find(operations, item_.advance) + 1; at != operations.end() - 1; ++at) {
            if (*at == item_.found->definition) continue;
            const bool is_decided = (*at)->op == Op::if_ && (*at)->operands[0] == item_.found;
            if (is_decided)
                take((*at)->body(found ? 0 : 1), **at, map);
            else
                append(**at, map);
        }
    }

    // Copies one arm of a branch in place of the branch.
    void take(const Region& way, const Operation& branch, ir::ValueMap& map) {
        ir::clone_operations(function_, way, b_.region(), map);
        for (std::size_t i = 0; i < branch.results.size(); ++i)
            map.set(branch.results[i], map[way.terminator()->operands[i]]);
    }

    void append(const Operation& operation, ir::ValueMap& map) {
        Operation* const copy = ir::clone(function_, operation, map);
        copy->parent = &b_.region();
        b_.region().operations.push_back(copy);
    }

    void name(const std::vector<Value*>& values) const {
        for (std::size_t i = 0; i < values.size(); ++i) values[i]->name = item_.loop->results[i]->name;
    }

    ir::Function& function_;
    const ItemLoop& item_;
    ir::Builder b_;
};

// Inner loops first.
void find_loops(const Region& region, std::vector<Operation*>& loops) {
    for (Operation* operation : region.operations) {
        for (const Region* inner : operation->regions) find_loops(*inner, loops);
        if (operation->op == Op::while_) loops.push_back(operation);
    }
}

}  // namespace

bool loop_over_neighbour_rows(ir::Function& kernel, NeighbourRows which) {
    std::vector<Operation*> loops;
    find_loops(kernel.body, loops);
    bool any = false;
    for (Operation* const loop : loops) {
        const std::optional<ItemLoop> item = RowLoopFinder(*loop, which).find();
        if (!item) continue;
        Rewriter(kernel, *item).run();
        any = true;
    }
    return any;
}

}  // namespace weft::transform

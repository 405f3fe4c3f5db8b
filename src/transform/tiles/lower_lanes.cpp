#include "transform/tiles/lower_lanes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/loop_builder.h"
#include "ir/tile_builder.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"
#include "transform/inline/inline.h"
#include "transform/tiles/lane_values.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;
using ir::ValueMap;
using Values = std::vector<Value*>;
using Operations = std::vector<Operation*>;

class LaneLowering {
public:
    LaneLowering(ir::Function& kernel, const LaneOptions& options)
        : kernel_(kernel), options_(options), values_(kernel), b_(kernel, kernel.body), map_(kernel) {}

    void run() {
        Operations operations = std::move(kernel_.body.operations);
        kernel_.body.operations.clear();
        Operation* const end = operations.back();
        process(operations, kernel_.body, first_mask());
        append(end);
    }

private:
    // The lanes that run: a tile of bools. Null: all.
    using Mask = Value*;

    Type tile_type(Type element) const { return Type::tile(element, {options_.lanes}); }

    // The last block of a launch of threads may have fewer.
    Mask first_mask() {
        if (options_.threads % options_.lanes == 0) return nullptr;
        kernel_.tid_rank = std::max(kernel_.tid_rank, 1);
        b_.span = kernel_.span;
        Value* const first = b_.binary(Op::mul, b_.tid(0), b_.integer(options_.lanes));
        return each_lane([&](Value* k) {
            return b_.compare(Op::cmp_lt, b_.binary(Op::add, first, k), b_.integer(options_.threads));
        });
    }

    template <typename Element>
    Value* each_lane(const Element& element) {
        return ir::build_flat_tile(b_, {options_.lanes}, element);
    }
    Value* at(Value* tile, Value* k) { return b_.extract_at(tile, {k}); }
    Value* any(Value* mask) {
        return ir::build_reduce(b_, mask, [&](Value* a, Value* b) { return b_.binary(Op::or_, a, b); });
    }
    // Of lanes that run, those for which `holds` is `wanted`.
    Mask narrowed(Mask mask, Value* holds, bool wanted = true) {
        return each_lane([&](Value* k) {
            Value* one = at(holds, k);
            if (!wanted) one = b_.unary(Op::invert, one);
            return mask ? b_.binary(Op::and_, at(mask, k), one) : one;
        });
    }
    // The number of a lane that runs.
    Value* first_lane(Mask mask) {
        if (!mask) return b_.integer(0);
        Value* const last = b_.integer(options_.lanes - 1);
        Value* const numbers = each_lane([&](Value* k) { return b_.select(at(mask, k), k, last); });
        return ir::build_reduce(b_, numbers, [&](Value* a, Value* b) { return b_.binary(Op::min, a, b); });
    }

    void append(Operation* operation) {
        operation->parent = &b_.region();
        b_.region().operations.push_back(operation);
    }

    [[noreturn]] void fail(Span span, const std::string& what) const {
        throw CompileError(
            span,
            "kernel '" + kernel_.name + "' cannot run in blocks of " + std::to_string(options_.lanes) +
                " lanes on the CPU: " + what,
            {{Note::Kind::help, "launch it with block_dim=1, or wp.config.enable_cpu_blocks = False", {}}});
    }

    // ---- values of lanes ----

    static bool fits_tile(Type type) {
        return type.is_scalar() || type.is_numeric_aggregate() || (type.is_struct() && !ir::holds_array(type));
    }

    // The value that lane k has, at the builder's place.
    Value* value_at(Value* value, Value* k, ValueMap& local) {
        if (Value* known = local.find(value)) return known;
        Value* found = nullptr;
        const Operation* const made = value->definition;
        if (!values_.varies(value)) {
            found = map_[value];
        } else if (const auto tile = tiles_.find(value); tile != tiles_.end()) {
            found = at(tile->second, k);
        } else if (const auto array = private_.find(value); array != private_.end()) {
            found = b_.view(array->second, {k});
        } else if (made && made->op == Op::lane) {
            found = k;
        } else if (made && !ir::has_effects(*made) && !values_.reads(*made) && made->regions.empty()) {
            for (Value* operand : made->operands) local.set(operand, value_at(operand, k, local));
            Operation* const copy = ir::clone(kernel_, *made, local);
            append(copy);
            return local[value];
        } else {
            fail(made ? made->span : b_.span,
                 "a value of type " + value->type.python_name() + " is kept across an operation of the whole block");
        }
        local.set(value, found);
        return found;
    }

    // The values from outside that an operation uses.
    void capture(const Operation& operation, Value* k, ValueMap& local) {
        const auto take = [&](const Operation& one) {
            for (Value* operand : one.operands) {
                bool is_own = false;
                for (const Region* region : operation.regions) is_own |= is_inside(operand, *region);
                if (!is_own) value_at(operand, k, local);
            }
        };
        take(operation);
        for (const Region* region : operation.regions) ir::for_each_operation(*region, take);
    }
    void copy(const Operation& operation, Value* k, ValueMap& local) {
        b_.span = operation.span;
        capture(operation, k, local);
        append(ir::clone(kernel_, operation, local));
    }

    // The values of all lanes as a tile. Those of lanes that do not run are of no use.
    Value* lifted(Value* value) {
        if (const auto tile = tiles_.find(value); values_.varies(value) && tile != tiles_.end()) return tile->second;
        if (!fits_tile(value->type))
            fail(value->definition ? value->definition->span : b_.span,
                 "a value of type " + value->type.python_name() + " differs between lanes");
        return each_lane([&](Value* k) {
            ValueMap local(kernel_);
            return value_at(value, k, local);
        });
    }
    // Of two tiles the elements of the first for lanes in the mask.
    Value* blended(Value* mask, Value* yes, Value* no) {
        return each_lane([&](Value* k) { return b_.select(at(mask, k), at(yes, k), at(no, k)); });
    }
    // The value in the code of the block: a tile, if lanes differ.
    Value* carried(Value* value, bool differs) { return differs ? lifted(value) : map_[value]; }
    void define(const Value* value, Value* now) {
        if (values_.varies(value))
            tiles_[value] = now;
        else
            map_.set(value, now);
    }
    Type carried_type(const Value* value) const { return values_.varies(value) ? tile_type(value->type) : value->type; }
    void check_carried(const Value* value, Span span) const {
        if (values_.varies(value) && !fits_tile(value->type))
            fail(span, "a value of type " + value->type.python_name() + " differs between lanes");
    }

    // ---- regions of the block ----

    void process(const Operations& operations, const Region& region, Mask mask) {
        Operations pending;
        bool writes = false;
        for (Operation* operation : operations) {
            b_.span = operation->span;
            if (operation == operations.back()) break;
            if (operation->op == Op::lane) continue;
            if (values_.is_of_block(*operation)) {
                flush(pending, region, mask);
                writes = false;
                b_.span = operation->span;
                run_by_block(*operation, mask);
            } else if (operation->op == Op::local_array) {
                private_[operation->result()] = array_of_lanes(*operation);
            } else if (values_.is_uniform(*operation)) {
                if (writes && values_.reads(*operation)) {
                    flush(pending, region, mask);
                    writes = false;
                    b_.span = operation->span;
                }
                append(ir::clone(kernel_, *operation, map_));
            } else {
                pending.push_back(operation);
                writes |= ir::has_effects(*operation);
            }
        }
        flush(pending, region, mask);
    }

    Value* array_of_lanes(const Operation& operation) {
        const Type type = operation.result()->type;
        if (type.ndim() == 4) fail(operation.span, "an array of four dimensions that each lane has for itself");
        std::vector<std::int64_t> shape = operation.ints;
        shape.insert(shape.begin(), options_.lanes);
        Value* const made = b_.local_array(Type::array(type.element(), type.ndim() + 1), std::move(shape));
        made->definition->unset = operation.unset;
        return made;
    }

    // Runs the operations lane by lane, and keeps the values that others use.
    void flush(Operations& pending, const Region& region, Mask mask) {
        const Operations operations = std::exchange(pending, {});
        if (operations.empty()) return;
        Values kept;
        bool has_effects = false;
        for (const Operation* operation : operations) {
            has_effects |= ir::has_effects(*operation);
            for (Value* result : operation->results)
                if (is_used_outside(result, operations, region) && fits_tile(result->type)) kept.push_back(result);
        }
        if (kept.empty() && !has_effects) return;
        b_.span = operations.front()->span;
        const auto run = [&](Value* k) {
            ValueMap local(kernel_);
            for (const Operation* operation : operations) copy(*operation, k, local);
            Values found;
            for (Value* value : kept) found.push_back(local[value]);
            return found;
        };
        if (kept.size() == 1 && !has_effects && !mask) {
            tiles_[kept[0]] = each_lane([&](Value* k) { return run(k)[0]; });
            return;
        }
        Values start;
        for (const Value* value : kept) start.push_back(b_.zero(tile_type(value->type)));
        const Values made = over_lanes(start, [&](Value* k, Values tiles) {
            Values found;
            if (mask) {
                std::vector<Type> types;
                for (const Value* value : kept) types.push_back(value->type);
                found = if_else(
                    at(mask, k), types, [&] { return run(k); },
                    [&] {
                        Values zeros;
                        for (const Type type : types) zeros.push_back(b_.zero(type));
                        return zeros;
                    });
            } else {
                found = run(k);
            }
            for (std::size_t i = 0; i < kept.size(); ++i) tiles[i] = b_.insert_at(tiles[i], found[i], {k});
            return tiles;
        });
        for (std::size_t i = 0; i < kept.size(); ++i) tiles_[kept[i]] = made[i];
    }

    bool is_used_outside(const Value* value, const Operations& operations, const Region& region) const {
        return std::ranges::any_of(values_.users(value), [&](const Operation* user) {
            while (user->parent != &region && user->parent->owner) user = user->parent->owner;
            return std::ranges::find(operations, user) == operations.end();
        });
    }

    template <typename Body>
    Values over_lanes(Values start, const Body& body) {
        return ir::build_for(b_, b_.integer(0), b_.integer(options_.lanes), b_.integer(1), std::move(start), body);
    }
    template <typename Then, typename Else>
    Values if_else(Value* condition, const std::vector<Type>& types, const Then& then, const Else& otherwise) {
        Operation* const branch = b_.if_(condition, types);
        {
            ir::Builder::Inside inside(b_, branch->body(0));
            b_.yield(then());
        }
        ir::Builder::Inside inside(b_, branch->body(1));
        b_.yield(otherwise());
        return branch->results;
    }

    // ---- operations of the block ----

    void run_by_block(const Operation& operation, Mask mask) {
        switch (operation.op) {
            case Op::tile_of_lanes:
                return map_.set(operation.result(), gathered(operation.operands[0], mask));
            case Op::tile_reduce:
                if (!mask || !ir::is_of_lanes(operation.operands[0])) break;
                return map_.set(operation.result(), reduced(operation, mask));
            case Op::insert_at:
                if (!values_.varies(operation.operands[1]) && !values_.varies(operation.operands[2])) break;
                return map_.set(operation.result(), written(operation, mask));
            case Op::if_:
                return values_.varies(operation.operands[0]) ? branch_of_lanes(operation, mask)
                                                             : branch_of_block(operation, mask);
            case Op::for_:
                return values_.trips_vary(operation) ? for_of_lanes(operation, mask) : loop_of_block(operation, mask);
            case Op::while_:
                return values_.trips_vary(operation) ? while_of_lanes(operation, mask) : loop_of_block(operation, mask);
            default:
                break;
        }
        // A lane's value is that of the first lane: all lanes must agree.
        ValueMap local = map_;
        const bool differs = uses_lanes(operation);
        copy(operation, differs ? first_lane(mask) : nullptr, local);
        for (const Value* result : operation.results) {
            if (values_.varies(result))
                fail(operation.span, "a function with a derivative of its own gives a tile and has effects");
            map_.set(result, local[const_cast<Value*>(result)]);
        }
    }

    bool uses_lanes(const Operation& operation) const {
        bool any = false;
        const auto look = [&](const Operation& one) {
            any |= std::ranges::any_of(one.operands, [&](const Value* value) { return values_.varies(value); });
        };
        look(operation);
        for (const Region* region : operation.regions) ir::for_each_operation(*region, look);
        return any;
    }

    // 0 for lanes that do not run.
    Value* gathered(Value* value, Mask mask) {
        if (!mask) return lifted(value);
        Value* const all = lifted(value);
        return each_lane([&](Value* k) { return b_.select(at(mask, k), at(all, k), b_.zero(value->type)); });
    }

    Value* reduced(const Operation& operation, Mask mask) {
        Value* const tile = map_[operation.operands[0]];
        const Type type = operation.result()->type;
        return over_lanes({b_.zero(type), b_.boolean(false)}, [&](Value* k, const Values& so_far) {
            const auto combined = [&] {
                ValueMap local = map_;
                local.set(operation.body().arguments[0], so_far[0]);
                local.set(operation.body().arguments[1], at(tile, k));
                for (const Operation* one : operation.body().operations)
                    if (one != operation.body().terminator()) copy(*one, k, local);
                return Values{local[operation.body().terminator()->operands[0]]};
            };
            Value* const next = if_else(
                at(mask, k), {type},
                [&] { return if_else(so_far[1], {type}, combined, [&] { return Values{at(tile, k)}; }); },
                [&] { return Values{so_far[0]}; })[0];
            return Values{next, b_.binary(Op::or_, so_far[1], at(mask, k))};
        })[0];
    }

    // Each lane writes its element, in the order of the lanes.
    Value* written(const Operation& operation, Mask mask) {
        Value* const value = operation.operands[1];
        Value* const number = operation.operands[2];
        return over_lanes({map_[operation.operands[0]]}, [&](Value* k, const Values& tile) {
            const auto write = [&] {
                ValueMap local(kernel_);
                Value* const element = value_at(value, k, local);
                return Values{b_.insert_at(tile[0], element, {value_at(number, k, local)})};
            };
            return mask ? if_else(at(mask, k), {tile[0]->type}, write, [&] { return tile; }) : write();
        })[0];
    }

    // ---- branches ----

    void branch_of_block(const Operation& operation, Mask mask) {
        std::vector<Type> types;
        for (const Value* result : operation.results) {
            check_carried(result, operation.span);
            types.push_back(carried_type(result));
        }
        const auto arm = [&](const Region& region) {
            process(region.operations, region, mask);
            return yields_of(region, operation.results);
        };
        const Values made = if_else(
            map_[operation.operands[0]], types, [&] { return arm(operation.body(0)); },
            [&] { return arm(operation.body(1)); });
        for (std::size_t i = 0; i < made.size(); ++i) define(operation.results[i], made[i]);
    }

    Values yields_of(const Region& region, const Values& to) {
        Values yields;
        for (std::size_t i = 0; i < to.size(); ++i)
            yields.push_back(carried(region.terminator()->operands[i], values_.varies(to[i])));
        return yields;
    }

    // Each arm runs for the lanes that take it, if there are any.
    void branch_of_lanes(const Operation& operation, Mask mask) {
        const Values& results = operation.results;
        for (const Value* result : results) check_carried(result, operation.span);
        Value* const condition = lifted(operation.operands[0]);
        const Mask taken[2] = {narrowed(mask, condition), narrowed(mask, condition, false)};
        Value* const runs[2] = {any(taken[0]), any(taken[1])};
        const bool is_shared = is_of_block(operation.body(0)) && is_of_block(operation.body(1));
        if (options_.debug && (is_shared || !ends_kernel(operation)))
            require_agreement(b_.binary(Op::and_, runs[0], runs[1]));
        // The lanes of the second arm see the changes that those of the first have made to tiles.
        const auto yielded = [&](std::size_t arm, std::size_t i) {
            return operation.body(arm).terminator()->operands[i];
        };
        const auto is_changed = [&](std::size_t arm, std::size_t i) {
            return is_inside(yielded(arm, i), operation.body(arm));
        };
        std::vector<const Value*> bases(results.size());
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (values_.varies(results[i]) || !is_changed(0, i)) continue;
            bases[i] = base_of(yielded(0, i), operation.body(0));
            if (is_changed(1, i) && (!bases[i] || bases[i] != base_of(yielded(1, i), operation.body(1))))
                fail(operation.span,
                     "both arms of a branch whose condition differs between lanes bind a name to another tile");
        }
        Values found[2];
        for (std::size_t arm = 0; arm < 2; ++arm) {
            const Region& region = operation.body(arm);
            std::vector<Type> types;
            for (const Value* result : results) types.push_back(carried_type(result));
            // The values if no lane takes this arm.
            const auto others = [&] {
                Values values;
                for (std::size_t i = 0; i < results.size(); ++i) {
                    if (results[i]->type.is_tile() && !is_changed(1 - arm, i))
                        values.push_back(map_[yielded(1 - arm, i)]);
                    else
                        values.push_back(bases[i] ? map_[const_cast<Value*>(bases[i])] : b_.zero(types[i]));
                }
                return values;
            };
            const auto run = [&] {
                process(region.operations, region, taken[arm]);
                return yields_of(region, results);
            };
            std::vector<std::pair<const Value*, Value*>> before;
            for (const Value* base : bases)
                if (base) before.emplace_back(base, map_[const_cast<Value*>(base)]);
            if (arm == 1)
                for (std::size_t i = 0; i < results.size(); ++i)
                    if (bases[i]) map_.set(bases[i], found[0][i]);
            found[arm] = if_else(runs[arm], types, run, others);
            for (const auto& [base, value] : before) map_.set(base, value);
        }
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (values_.varies(results[i]))
                tiles_[results[i]] = blended(condition, found[0][i], found[1][i]);
            else
                map_.set(results[i], found[is_changed(1, i) ? 1 : 0][i]);
        }
    }

    // The tile outside of the region that this one is a later version of; null if it is none.
    static const Value* base_of(const Value* value, const Region& region) {
        while (is_inside(value, region)) {
            const Operation* made = value->definition ? value->definition : ir::region_of(value)->owner;
            const std::size_t own = value->definition ? 0 : ir::carried_arguments(*made);
            const auto number = static_cast<std::size_t>(value->index);
            if (made->op == Op::insert_at)
                value = made->operands[0];
            else if (made->op == Op::if_)
                value = made->body(0).terminator()->operands[number];
            else if ((made->op == Op::for_ || made->op == Op::while_) && number >= own)
                value = made->operands[ir::carried_operands(*made) + number - own];
            else
                return nullptr;
        }
        return value;
    }

    bool is_of_block(const Region& region) const {
        return std::ranges::any_of(region.operations, [&](const Operation* one) { return values_.is_of_block(*one); });
    }
    // Whether nothing follows the branch: lanes that do not take it have left by `return`.
    bool ends_kernel(const Operation& operation) const {
        const Region* region = operation.parent;
        if (region == &kernel_.body) return &operation == last_;
        if (region->operations.size() < 2 || region->operations[region->operations.size() - 2] != &operation)
            return false;
        return region->owner->op == Op::if_ && ends_kernel(*region->owner);
    }

    void require_agreement(Value* differs) {
        b_.assert_(b_.unary(Op::invert, differs),
                   "the lanes of a block disagree about a condition around an operation of the whole block");
    }

    // ---- loops ----

    // All lanes make the same number of iterations.
    void loop_of_block(const Operation& operation, Mask mask) {
        const std::size_t bounds = ir::carried_operands(operation), own = ir::carried_arguments(operation);
        Values starts;
        for (std::size_t i = 0; i < operation.results.size(); ++i) {
            check_carried(operation.results[i], operation.span);
            starts.push_back(carried(operation.operands[bounds + i], values_.varies(operation.results[i])));
        }
        Operation* const loop = operation.op == Op::for_
                                    ? b_.for_(map_[operation.operands[0]], map_[operation.operands[1]],
                                              map_[operation.operands[2]], std::move(starts), operation.guarded)
                                    : b_.while_(std::move(starts));
        for (std::size_t r = 0; r < operation.regions.size(); ++r) {
            const Region& from = operation.body(r);
            ir::Builder::Inside inside(b_, loop->body(r));
            for (std::size_t i = 0; i < from.arguments.size(); ++i) {
                if (i < own)
                    map_.set(from.arguments[i], loop->body(r).arguments[i]);
                else
                    define(from.arguments[i], loop->body(r).arguments[i]);
            }
            process(from.operations, from, mask);
            const bool is_condition = operation.op == Op::while_ && r == 0;
            b_.yield(is_condition ? Values{map_[from.terminator()->operands[0]]} : yields_of(from, operation.results));
        }
        for (std::size_t i = 0; i < operation.results.size(); ++i) define(operation.results[i], loop->result(i));
    }

    void check_trips(Mask mask, Value* active) {
        if (!options_.debug) return;
        Value* const left = narrowed(mask, active, false);
        require_agreement(b_.binary(Op::and_, any(active), any(left)));
    }

    // Lanes that are done wait for the others. `carried` begins with the mask.
    void for_of_lanes(const Operation& operation, Mask mask) {
        const Region& body = operation.body();
        const Type counter = body.arguments[0]->type;
        Value *const last = lifted(operation.operands[1]), *const step = lifted(operation.operands[2]);
        const auto in_range = [&](Value* counters, Value* guards) {
            return each_lane([&](Value* k) {
                Value *const at_k = at(counters, k), *const end = at(last, k);
                Value* const is_up = b_.compare(Op::cmp_gt, at(step, k), b_.integer(0, counter));
                Value* goes_on = b_.select(is_up, b_.compare(Op::cmp_lt, at_k, end), b_.compare(Op::cmp_gt, at_k, end));
                if (guards) goes_on = b_.binary(Op::and_, goes_on, at(guards, k));
                return goes_on;
            });
        };
        Values starts{nullptr, lifted(operation.operands[0])};
        append_starts(operation, 3, starts);
        starts[0] = narrowed(mask, in_range(starts[1], operation.guarded ? starts.back() : nullptr));
        if (!operation.guarded) check_trips(mask, starts[0]);
        const Values made = ir::build_while(
            b_, starts, [&](const Values& now) { return any(now[0]); },
            [&](const Values& now) {
                tiles_[body.arguments[0]] = now[1];
                for (std::size_t i = 0; i < operation.results.size(); ++i) define(body.arguments[1 + i], now[2 + i]);
                process(body.operations, body, now[0]);
                Values next{nullptr,
                            each_lane([&](Value* k) { return b_.binary(Op::add, at(now[1], k), at(step, k)); })};
                append_next(operation, body, now, 2, next);
                next[0] = narrowed(now[0], in_range(next[1], operation.guarded ? next.back() : nullptr));
                if (!operation.guarded) check_trips(mask, next[0]);
                return next;
            });
        for (std::size_t i = 0; i < operation.results.size(); ++i) define(operation.results[i], made[2 + i]);
    }

    void while_of_lanes(const Operation& operation, Mask mask) {
        const Region &condition = operation.body(0), &body = operation.body(1);
        const auto asked = [&](const Values& now, Mask among) {
            for (std::size_t i = 0; i < operation.results.size(); ++i) define(condition.arguments[i], now[1 + i]);
            process(condition.operations, condition, among);
            return narrowed(among, lifted(condition.terminator()->operands[0]));
        };
        Values starts{nullptr};
        append_starts(operation, 0, starts);
        starts[0] = asked(starts, mask);
        check_trips(mask, starts[0]);
        const Values made = ir::build_while(
            b_, starts, [&](const Values& now) { return any(now[0]); },
            [&](const Values& now) {
                for (std::size_t i = 0; i < operation.results.size(); ++i) define(body.arguments[i], now[1 + i]);
                process(body.operations, body, now[0]);
                Values next{nullptr};
                append_next(operation, body, now, 1, next);
                next[0] = asked(next, now[0]);
                check_trips(mask, next[0]);
                return next;
            });
        for (std::size_t i = 0; i < operation.results.size(); ++i) define(operation.results[i], made[1 + i]);
    }

    void append_starts(const Operation& operation, std::size_t bounds, Values& starts) {
        for (std::size_t i = 0; i < operation.results.size(); ++i) {
            check_carried(operation.results[i], operation.span);
            starts.push_back(carried(operation.operands[bounds + i], values_.varies(operation.results[i])));
        }
    }
    // The values that the body yields; of lanes that did not run it, those from before.
    void append_next(const Operation& operation, const Region& body, const Values& now, std::size_t own, Values& next) {
        const Values yields = yields_of(body, operation.results);
        for (std::size_t i = 0; i < yields.size(); ++i)
            next.push_back(values_.varies(operation.results[i]) ? blended(now[0], yields[i], now[own + i]) : yields[i]);
    }

    ir::Function& kernel_;
    const LaneOptions& options_;
    const LaneValues values_;
    ir::Builder b_;
    ValueMap map_;                                      // values that are the same in all lanes, and tiles
    std::unordered_map<const Value*, Value*> tiles_;    // of lanes' values
    std::unordered_map<const Value*, Value*> private_;  // arrays of arrays that each lane has for itself
    const Operation* const last_ =
        kernel_.body.operations.size() < 2 ? nullptr : kernel_.body.operations[kernel_.body.operations.size() - 2];
};

}  // namespace

bool asks_for_blocks(const ir::Module& module) {
    bool any = false;
    for (const auto& function : module.functions)
        ir::for_each_operation(function->body, [&](const Operation& operation) {
            any |= operation.op == Op::block_dim || operation.op == Op::tile_each || operation.op == Op::tile_of_lanes;
            for (const Value* result : operation.results) any |= result->type.is_tile();
        });
    return any;
}

void lower_lanes(ir::Module& module, const LaneOptions& options) {
    inline_calls(module, Calls::custom_derivatives);
    // The calls stay known by their places, not by their arguments: these are values of lanes.
    for (ir::CallLocation& call : module.calls) call.arguments.clear();
    for (const auto& function : module.functions) {
        prepare_lanes(*function, options.lanes);
        if (function->is_kernel) {
            LaneLowering(*function, options).run();
            continue;
        }
        ir::for_each_operation(function->body, [&](const Operation& operation) {
            if (operation.op != Op::lane && operation.op != Op::tile_of_lanes) return;
            throw CompileError(operation.span,
                               "functions with a derivative of their own cannot use the lanes of a block");
        });
    }
}

}  // namespace weft::transform

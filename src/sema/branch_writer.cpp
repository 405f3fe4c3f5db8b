#include "sema/branch_writer.h"

#include <algorithm>

#include "sema/expected_types.h"
#include "sema/messages.h"

namespace weft::sema {

namespace {

bool is_hidden(const std::string& name) { return name[0] == '$'; }

bool leaves_loop(Flow flow) { return (flow & (kBreaks | kContinues)) != 0; }

bool is_cheap_and_safe(const ir::Operation& operation) {
    switch (operation.op) {
        case ir::Op::neg:
        case ir::Op::abs:
        case ir::Op::invert:
        case ir::Op::floor:
        case ir::Op::ceil:
        case ir::Op::trunc:
        case ir::Op::add:
        case ir::Op::sub:
        case ir::Op::mul:
        case ir::Op::min:
        case ir::Op::max:
        case ir::Op::copysign:
        case ir::Op::and_:
        case ir::Op::or_:
        case ir::Op::xor_:
        case ir::Op::shl:
        case ir::Op::shr:
        case ir::Op::fma:
        case ir::Op::cmp_lt:
        case ir::Op::cmp_le:
        case ir::Op::cmp_gt:
        case ir::Op::cmp_ge:
        case ir::Op::cmp_eq:
        case ir::Op::cmp_ne:
        case ir::Op::isnan:
        case ir::Op::isinf:
        case ir::Op::isfinite:
        case ir::Op::select:
        case ir::Op::cast:
        case ir::Op::bitcast:
        case ir::Op::constant:
        case ir::Op::make:
        case ir::Op::splat:
        case ir::Op::extract:
        case ir::Op::insert:
        case ir::Op::dim:
        case ir::Op::is_null:
        case ir::Op::tid:
            return true;
        default:
            return false;
    }
}

// Components of all operations together above which a branch is cheaper.
constexpr int kCheapComponents = 16;

// Whether the region can always run. Constants cost nothing.
bool is_cheap_and_safe(const ir::Region& region) {
    int cost = 0;
    for (const ir::Operation* operation : region.operations) {
        if (operation->op == ir::Op::yield) continue;
        if (!is_cheap_and_safe(*operation)) return false;
        const Type type = operation->results.empty() ? Type::none() : operation->results[0]->type;
        if (operation->op != ir::Op::constant) cost += type.is_numeric_aggregate() ? type.components() : 1;
    }
    return cost <= kCheapComponents;
}

}  // namespace

Flow BranchWriter::write(ir::Value* condition, Span span, const std::function<Flow(Value&)>& then_arm,
                         const std::function<Flow(Value&)>& else_arm, Value* result) {
    ir::Operation* operation = function_.new_operation(ir::Op::if_, span);
    operation->operands = {condition};
    const Scope before = locals_.scope;
    const auto run_arm = [&](const std::function<Flow(Value&)>& body) {
        Arm arm;
        arm.span = span;
        arm.region = function_.new_region(operation);
        locals_.scope = before;
        ir::Builder::Inside inside(builder_, *arm.region);
        arm.flow = body(arm.result);
        arm.scope = std::move(locals_.scope);
        return arm;
    };
    Arm taken = run_arm(then_arm);
    Arm other = run_arm(else_arm);
    builder_.span = span;

    std::vector<ir::Value*> then_yields, else_yields;
    locals_.scope = merge(taken, other, then_yields, else_yields, operation, result);
    const Flow flow = taken.flow | other.flow;
    // A branch without operations and results is dropped: decisions at compile time may have emptied it.
    if (operation->results.empty() && taken.region->operations.empty() && other.region->operations.empty()) return flow;
    {
        ir::Builder::Inside inside(builder_, *taken.region);
        builder_.yield(then_yields);
    }
    {
        ir::Builder::Inside inside(builder_, *other.region);
        builder_.yield(else_yields);
    }
    operation->parent = &builder_.region();
    builder_.region().operations.push_back(operation);
    return flow;
}

Scope BranchWriter::merge(Arm& a, Arm& b, std::vector<ir::Value*>& a_yields, std::vector<ir::Value*>& b_yields,
                          ir::Operation* operation, Value* result) {
    const auto in = [&](Arm& arm, const auto& make) {
        ir::Builder::Inside inside(builder_, *arm.region);
        return make();
    };
    // Yields one value from both arms; a null side yields zeros.
    const auto join = [&](const Value* x, const Value* y, const std::string& name) {
        const Value from_a = x ? *x : in(a, [&] { return values_.zero_like(*y); });
        const Value from_b = y ? *y : in(b, [&] { return values_.zero_like(*x); });
        std::vector<ir::Value*> a_leaves, b_leaves, results;
        in(a, [&] {
            values_.flatten(from_a, a.span, a_leaves);
            return 0;
        });
        in(b, [&] {
            values_.flatten(from_b, b.span, b_leaves);
            return 0;
        });
        for (ir::Value* leaf : a_leaves)
            results.push_back(function_.add_result(operation, leaf->type, shown_name(name)));
        a_yields.insert(a_yields.end(), a_leaves.begin(), a_leaves.end());
        b_yields.insert(b_yields.end(), b_leaves.begin(), b_leaves.end());
        std::size_t next = 0;
        return rebuild(from_a, results, next);
    };

    if (result) *result = merge_results(a, b, join);

    std::set<std::string> names;
    for (const auto& [name, _] : a.scope) names.insert(name);
    for (const auto& [name, _] : b.scope) names.insert(name);
    Scope merged;
    for (const std::string& name : names) {
        const auto find = [&](const Scope& scope) -> const Local* {
            const auto found = scope.find(name);
            return found == scope.end() ? nullptr : &found->second;
        };
        const Local* in_a = find(a.scope);
        const Local* in_b = find(b.scope);
        if (in_a && in_b && in_a->state == in_b->state && identical(in_a->value, in_b->value)) {
            merged.emplace(name, *in_a);
            continue;
        }
        if (is_hidden(name)) {
            if (name == kSkip && !locals_.skip_needed) continue;
            const Value no = Value::boolean(false);
            const bool is_flag = name != kResult;
            // The flag of an inner loop with `else` ends with that loop.
            const auto is_set = [](const Local* local) { return local && local->state == Local::State::assigned; };
            if (!is_set(in_a) && !is_set(in_b)) continue;
            const Value* x = is_set(in_a) ? &in_a->value : is_flag ? &no : nullptr;
            const Value* y = is_set(in_b) ? &in_b->value : is_flag ? &no : nullptr;
            if (!is_flag && ((x && !can_be_carried(*x)) || (y && !can_be_carried(*y)))) {
                fail(locals_.result.place,
                     "a function can return " + describe(x ? *x : *y) + " only if every path ends in the same return",
                     {help("return plain data, or move the branch to the caller")});
            }
            Local local;
            local.assigned = (in_a ? in_a : in_b)->assigned;
            local.value = join(x, y, name);
            merged.emplace(name, std::move(local));
            continue;
        }
        merged.emplace(name, merge_local(name, in_a, in_b, a, b, join));
    }
    return merged;
}

// Merges one name that differs between the arms.
Local BranchWriter::merge_local(const std::string& name, const Local* in_a, const Local* in_b, const Arm& a,
                                const Arm& b, const Join& join) {
    const auto has_value = [](const Local* local) { return local && local->state == Local::State::assigned; };
    const auto maybe = [](const Local& from) {
        Local local = from;
        local.state = Local::State::maybe;
        return local;
    };
    const auto unusable = [](const Local& from, std::string reason) {
        Local local;
        local.state = Local::State::unusable;
        local.assigned = from.assigned;
        local.reason = std::move(reason);
        return local;
    };
    const auto joined = [&](const Local* x, const Local* y) {
        const Local& shown = y ? *y : *x;
        if (!locals_.is_needed(name)) return maybe(shown);
        if (!(x && y) && !can_be_carried(shown.value)) return maybe(shown);
        if ((x && !can_be_carried(x->value)) || (y && !can_be_carried(y->value))) {
            return unusable(shown, "stands for " + describe(shown.value) +
                                       " on one path here and for something else on another, which kernels can only "
                                       "express for numbers, vectors, matrices, arrays and structs of them");
        }
        if (x && y && !show_alike(x->value, y->value)) {
            return unusable(shown,
                            "is a view of another tile on another path here: copy one of them first, as in "
                            "u = wp.tile_astype(view, view.dtype)");
        }
        Local local;
        local.assigned = shown.assigned;
        local.value = join(x ? &x->value : nullptr, y ? &y->value : nullptr, name);
        return local;
    };
    // The value of an arm that exits matters only if a loop carries it out.
    const auto matters = [&](const Arm& arm) {
        return (arm.flow & kFalls) || (leaves_loop(arm.flow) && locals_.is_carried(name));
    };
    const bool a_matters = matters(a), b_matters = matters(b);

    if (has_value(in_a) && has_value(in_b)) {
        if (type_of(in_a->value) == type_of(in_b->value)) return joined(in_a, in_b);
        // A literal takes the type that the name has on the other path; of two literals a float decides.
        Local x = *in_a, y = *in_b;
        if (agree(x.value, y.value, x.assigned, y.assigned)) return joined(&x, &y);
        if (a_matters && b_matters) {
            const Local *first = in_a, *second = in_b;
            if (second->assigned.line < first->assigned.line) std::swap(first, second);
            Local local = *second;
            local.state = Local::State::conflict;
            local.reason = "'" + name + "' is " + describe(second->value) + " here and " + describe(first->value) +
                           " on another path";
            local.notes = {note("the other path: " + describe(first->value), first->assigned),
                           help("a variable must have the same type on all paths; convert one value or use two names")};
            return local;
        }
        return a_matters ? joined(in_a, nullptr) : joined(nullptr, in_b);
    }
    if (!has_value(in_a) && !has_value(in_b)) return in_a ? *in_a : *in_b;
    const bool value_in_a = has_value(in_a);
    const Local* without = value_in_a ? in_b : in_a;
    const bool other_matters = value_in_a ? b_matters : a_matters;
    if (without && without->state != Local::State::maybe && other_matters) return *without;
    return value_in_a ? joined(in_a, nullptr) : joined(nullptr, in_b);
}

// Gives literals the type of the value on the other path. Returns whether both have one type then.
bool BranchWriter::agree(Value& a, Value& b, Span a_span, Span b_span) {
    const auto is_literal = [](const Value& v) { return v.is_constant() && v.is_literal; };
    if (is_literal(a) && is_literal(b)) {
        const bool is_float = a.numbers[0].is_float || b.numbers[0].is_float;
        const Type type = is_float ? f32_type() : i32_type();
        a = adapt(a, type, a_span).value_or(a);
        b = adapt(b, type, b_span).value_or(b);
    }
    a = adapt(a, type_of(b), a_span).value_or(a);
    b = adapt(b, type_of(a), b_span).value_or(b);
    return type_of(a) == type_of(b) && !type_of(a).is_none();
}

// The value of an expression with branches; literals in one arm take the type of the other.
Value BranchWriter::merge_results(Arm& a, Arm& b, const Join& join) {
    Value x = a.result, y = b.result;
    if (identical(x, y)) return x;
    agree(x, y, a.span, b.span);
    x = settle(x, a.span);
    y = settle(y, b.span);
    if (!(type_of(x) == type_of(y)) || !can_be_carried(x) || !can_be_carried(y)) {
        std::vector<Note> notes;
        if (type_of(x).is_scalar() && type_of(y).is_scalar())
            notes.push_back(help("convert one of them, as in wp." + type_of(x).python_name() + "(...)"));
        else
            notes.push_back(help("choose between numbers, vectors, matrices, arrays or structs of one type"));
        fail(a.span, "this chooses between " + describe(a.result) + " and " + describe(b.result), std::move(notes));
    }
    return join(&x, &y, {});
}

// Replaces an `if_` whose sides can both run always: its operations move before it, `select` gives the result.
//   %r = if %c { %x = add %a, 1; yield %x } else { yield %a }   →   %x = add %a, 1;  %r = select %c, %x, %a
// Returns the value that replaces the result, or null if the branch has to stay.
ir::Value* flatten_branch(ir::Builder& builder, ir::Region& region) {
    if (region.operations.empty()) return nullptr;
    ir::Operation* branch = region.operations.back();
    if (branch->op != ir::Op::if_ || branch->results.size() != 1) return nullptr;
    if (!is_cheap_and_safe(branch->body(0)) || !is_cheap_and_safe(branch->body(1))) return nullptr;
    region.operations.pop_back();
    ir::Value* yielded[2];
    for (int arm = 0; arm < 2; ++arm) {
        for (ir::Operation* operation : branch->body(arm).operations) {
            if (operation->op == ir::Op::yield) {
                yielded[arm] = operation->operands[0];
                continue;
            }
            operation->parent = &region;
            region.operations.push_back(operation);
        }
    }
    ir::Value* condition = branch->operands[0];
    const auto is_constant = [](const ir::Value* v, bool truth) {
        return v->type.is_bool() && v->definition && v->definition->op == ir::Op::constant &&
               (v->definition->numbers[0].i != 0) == truth;
    };
    const auto drop_constant = [&](ir::Value* constant) { std::erase(region.operations, constant->definition); };
    if (is_constant(yielded[1], false)) {
        drop_constant(yielded[1]);
        return builder.binary(ir::Op::and_, condition, yielded[0]);
    }
    if (is_constant(yielded[0], true)) {
        drop_constant(yielded[0]);
        return builder.binary(ir::Op::or_, condition, yielded[1]);
    }
    return builder.select(condition, yielded[0], yielded[1]);
}

}  // namespace weft::sema

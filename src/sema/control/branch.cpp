// Branches: running a list of statements, and merging the scopes of the two arms.
//
// The arms of a branch run on copies of the scope. Afterwards each name is looked up in both copies:
//
//   * the same value in both: nothing to do;
//   * different values of one type: both arms yield theirs, the result of the `if_` is the name's value from here on
//         if c: x = 1.0                 %x2 = if %c { yield 1.0 } else { yield %x1 }
//   * different types: an error that shows both places, if the name is read from here on;
//   * a value in one arm only: zero in the other arm, if the name is read from here on.
//
// The last two rules ignore an arm that always exits (return, break, continue). The statements after the `if` then run
// only if the other arm was taken. They move into that arm, and no flag is tested:
//
//   if i >= n: return                   if %out { yield } else { store %a[%i], 1.0; yield }
//   a[i] = 1.0
//
// If an arm only *may* exit (an inner if that breaks), it yields a flag, and the statements that follow run under it:
//
//   if a:                               %skip, %x1 = if %a { if %b { yield true, %x0 } else { yield false, 2.0 } }
//       if b: break                                  else { yield false, %x0 }
//       x = 2.0                         if %skip { yield } else { use %x1 }
//   use(x)
//
// Arms that have left a loop still yield the locals of that point, because the loop carries them out.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

bool is_hidden(const std::string& name) { return name[0] == '$'; }

bool leaves_loop(Flow flow) { return (flow & (kBreaks | kContinues)) != 0; }

}  // namespace

// assert c, f"{x}": if c: (the statements that follow) else: raise AssertionError(f"{x}")
Flow FunctionAnalyzer::run_assert(const syntax::Assert& statement, Span span, WorkList& work) {
    ir::Value* condition = within_statement(
        work, [&] { return values_.truth(expression(*statement.condition), statement.condition->span); });
    return branch(
        condition, span, [&](Value&) { return run(work); },
        [&](Value&) {
            Printout text(builder_, "AssertionError: ");
            add_printed(text, *statement.message, " ");
            builder_.span = span;
            builder_.raise(std::move(text.format), std::move(text.scalars));
            return kStops;
        });
}

Flow FunctionAnalyzer::run(WorkList work) {
    const auto is_done = [](const WorkList& list) {
        return std::all_of(list.begin(), list.end(),
                           [](const Work& w) { return !w.target && w.next >= w.block->size(); });
    };
    while (!work.empty()) {
        Work& top = work.back();
        if (top.target) {
            const Work assignment = top;
            work.pop_back();
            assign_to(*assignment.target, assignment.value, assignment.target->span);
            continue;
        }
        if (top.next >= top.block->size()) {
            work.pop_back();
            continue;
        }
        if (source_.environment) source_.environment->go_on();
        const syntax::Statement& next = *(*top.block)[top.next++];
        builder_.span = next.span;
        Flow flow = kFalls;
        if (const auto* branch_statement = std::get_if<syntax::If>(&next.node)) {
            bool took_rest = false;
            flow = run_if(*branch_statement, next.span, work, took_rest);
            if (took_rest) return flow;
        } else if (const auto* checked = std::get_if<syntax::Assert>(&next.node);
                   checked && module_.options.debug && shows_values(*checked)) {
            return run_assert(*checked, next.span, work);
        } else if (const auto* loop = std::get_if<syntax::For>(&next.node)) {
            flow = for_statement(*loop, next.span, work);
        } else if (const auto* loop = std::get_if<syntax::While>(&next.node)) {
            locals_.afterwards.push_back(&work);
            flow = while_loop(*loop, next.span);
            locals_.afterwards.pop_back();
        } else {
            within_statement(work, [&] {
                statement(next, flow);
                return 0;
            });
        }
        if (flow == kFalls) continue;
        if (!(flow & kFalls) || is_done(work)) return flow;
        // Some paths have left already: the rest runs on the others.
        const Flow left = flow & ~kFalls;
        ir::Value* skip = values_.materialize(locals_.scope.at(kSkip).value, next.span);
        return branch(
            skip, next.span,
            [&](Value&) {
                locals_.scope[kSkip].value = Value::boolean(true);
                return left;
            },
            [&](Value&) {
                locals_.scope.erase(kSkip);
                return run(work);
            });
    }
    return kFalls;
}

Flow FunctionAnalyzer::run_if(const syntax::If& statement, Span span, WorkList& work, bool& took_rest) {
    const Value condition = within_statement(work, [&] { return expression(*statement.condition); });
    // Known at compile time: only the taken block exists.
    if (const std::optional<bool> known = constant_truth(condition)) {
        work.push_back(Work{*known ? &statement.then_block : &statement.else_block});
        return kFalls;
    }
    ir::Value* truth_value = values_.truth(condition, statement.condition->span);
    builder_.span = span;
    WorkList then_work = {Work{&statement.then_block}};
    WorkList else_work = {Work{&statement.else_block}};
    const auto append = [&](WorkList& arm) { arm.insert(arm.begin(), work.begin(), work.end()); };
    if (always_exits(statement.then_block)) {
        took_rest = true;
        append(else_work);
    } else if (always_exits(statement.else_block)) {
        took_rest = true;
        append(then_work);
    }
    const bool saved_skip_needed = locals_.skip_needed;
    if (!took_rest) {
        const bool has_rest =
            std::any_of(work.begin(), work.end(), [](const Work& w) { return w.target || w.next < w.block->size(); });
        locals_.skip_needed |=
            has_rest && (possible_exits(statement.then_block) | possible_exits(statement.else_block));
        locals_.afterwards.push_back(&work);
    }
    const Flow flow = branch(
        truth_value, span, [&](Value&) { return run(std::move(then_work)); },
        [&](Value&) { return run(std::move(else_work)); });
    if (!took_rest) locals_.afterwards.pop_back();
    locals_.skip_needed = saved_skip_needed;
    return flow;
}

Flow FunctionAnalyzer::branch(ir::Value* condition, Span span, const std::function<Flow(Value&)>& then_arm,
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

Scope FunctionAnalyzer::merge(Arm& a, Arm& b, std::vector<ir::Value*>& a_yields, std::vector<ir::Value*>& b_yields,
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
Local FunctionAnalyzer::merge_local(const std::string& name, const Local* in_a, const Local* in_b, const Arm& a,
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
bool FunctionAnalyzer::agree(Value& a, Value& b, Span a_span, Span b_span) {
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
Value FunctionAnalyzer::merge_results(Arm& a, Arm& b, const Join& join) {
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

}  // namespace weft::sema

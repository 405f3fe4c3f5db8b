// Loops. A local that the body changes is carried: it enters each iteration as an argument of the body's region, leaves
// it through `yield`, and is a result of the loop.
//
//   s = 0.0                          %s = for %k in 0 .. %n step 1 carry (%s0 = 0.0) {
//   for k in range(n):                 %v = load %x[%k];  %s1 = add %s0, %v
//       s += x[k]                      yield %s1
//                                    }
//
// The text (walk.h) gives these locals before the body is analysed. Others are known only after the body (the
// value that it returns, names that it is certain to assign) and are added then. So the operation is put together after
// its body, with the starting values before it. Short loops with known bounds are unrolled (Options::max_unroll).
//
// A local that every iteration assigns before it reads it is not carried. One without a value before the loop starts as
// zero if an iteration may read it from an earlier one. Its type is found by analysing the body once in a dropped
// region:
//
//   for k in range(n):               %last = for %k in 0 .. %n carry (%last0 = 0) {
//       if x[k] > 0.0:                 %last1 = if %positive { yield %k } else { yield %last0 }
//           last = k                   yield %last1
//                                    }
#include "ir/typing.h"
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

constexpr const char* kCannotCarry =
    "changes in the course of a loop, which kernels can only express for numbers, vectors, matrices, arrays and "
    "structs "
    "of them";

// Whether assigning to this target gives the local another value. a[i] = x and s.array[i] = x write through an array
// and leave the local unchanged: carrying it would hide from codegen which array it is.
struct PartOfLocal {
    bool is_part = false;
    Type type;
};

PartOfLocal part_of_local(const syntax::Expression& target, const std::string& name, Type type) {
    if (const auto* plain = std::get_if<syntax::Name>(&target.node)) return {plain->id == name, type};
    const auto* attribute = std::get_if<syntax::Attribute>(&target.node);
    const auto* subscript = std::get_if<syntax::Subscript>(&target.node);
    if (!attribute && !subscript) return {};
    PartOfLocal whole = part_of_local(attribute ? *attribute->object : *subscript->object, name, type);
    if (!whole.is_part || whole.type.is_array()) return {};
    if (attribute && whole.type.is_struct()) {
        const std::optional<int> field = whole.type.field_index(attribute->name);
        return {field.has_value(), field ? whole.type.fields()[static_cast<std::size_t>(*field)].type : Type::none()};
    }
    return whole;
}

bool gives_new_value(const syntax::Block& block, const std::string& name, Type type) {
    bool found = false;
    const std::function<void(const syntax::Expression&)> check = [&](const syntax::Expression& target) {
        if (const auto* tuple = std::get_if<syntax::Tuple>(&target.node)) {
            for (const auto& element : tuple->elements) check(*element);
        } else if (const auto* starred = std::get_if<syntax::Starred>(&target.node)) {
            check(*starred->value);
        } else {
            found |= part_of_local(target, name, type).is_part;
        }
    };
    walk(
        block,
        [&](const syntax::Statement& statement) {
            if (const auto* s = std::get_if<syntax::Assign>(&statement.node)) {
                for (const auto& target : s->targets) check(*target);
            } else if (const auto* s = std::get_if<syntax::AnnotatedAssign>(&statement.node)) {
                check(*s->target);
            } else if (const auto* s = std::get_if<syntax::AugmentedAssign>(&statement.node)) {
                check(*s->target);
            } else if (const auto* s = std::get_if<syntax::For>(&statement.node)) {
                check(*s->target);
            }
        },
        [](const syntax::Expression&) {});
    return found;
}

}  // namespace

Flow FunctionAnalyzer::for_statement(const syntax::For& loop, Span span, WorkList& work) {
    const Iterable over = within_statement(work, [&] { return iterable(*loop.iterable); });
    if (over.kind == Iterable::Kind::query) {
        locals_.afterwards.push_back(&work);
        const Flow flow = query_loop(loop, over.values[0], span);
        locals_.afterwards.pop_back();
        return flow;
    }
    if (const auto values = unrolled_values(loop, over)) {
        if ((possible_exits(loop.body) & (kBreaks | kContinues)) != 0) return unrolled_loop(loop, *values, span, work);
        for (auto value = values->rbegin(); value != values->rend(); ++value) {
            work.push_back(Work{&loop.body});
            work.push_back(Work{nullptr, 0, loop.target.get(), *value});
        }
        return kFalls;
    }
    locals_.afterwards.push_back(&work);
    const Flow flow = for_loop(loop, over, span);
    locals_.afterwards.pop_back();
    return flow;
}

FunctionAnalyzer::LoopBuild FunctionAnalyzer::begin_loop(ir::Op op, const syntax::Block& body, LoopNames names,
                                                         Span span) {
    LoopBuild loop;
    loop.operation = function_.new_operation(op, span);
    loop.names = std::move(names);
    loop.span = span;
    loop.is_guarded = (possible_exits(body) & (kBreaks | kReturns)) != 0;
    loop.saved_skip_needed = locals_.skip_needed;
    locals_.skip_needed = false;
    for (const std::string& name : loop.names.fresh) locals_.scope.erase(name);
    for (const std::string& name : loop.names.assigned) {
        const Local* local = locals_.find(name);
        if (!local || local->state != Local::State::assigned || !can_be_carried(local->value)) continue;
        const Type type = type_of(local->value);
        const bool gets_value = loop.names.rebound.contains(name) || loop.names.by_calls.contains(name);
        if (ir::holds_array(type) && !gets_value && !gives_new_value(body, name, type)) continue;
        const std::size_t first = loop.inits.size();
        values_.flatten(local->value, span, loop.inits);
        loop.carried.push_back({name, *local, loop.inits.size() - first});
    }
    loop.before = locals_.scope;
    Locals::Loop entered;
    for (const auto& carried : loop.carried) entered.carried.insert(carried.name);
    locals_.loops.push_back(std::move(entered));
    return loop;
}

// Enters a region of the loop: carried locals are its arguments there.
void FunctionAnalyzer::enter_region(LoopBuild& loop, ir::Region* region) {
    locals_.scope = loop.before;
    loop.argument_regions.push_back(region);
    std::vector<ir::Value*> arguments;
    std::size_t leaf = 0;
    for (const auto& carried : loop.carried) {
        for (std::size_t i = 0; i < carried.leaves; ++i) {
            arguments.push_back(function_.add_argument(region, loop.inits[leaf++]->type, shown_name(carried.name)));
        }
    }
    std::size_t next = 0;
    for (const auto& carried : loop.carried) {
        Local local = carried.before;
        local.value = rebuild(carried.before.value, arguments, next);
        locals_.scope.insert_or_assign(carried.name, std::move(local));
    }
    // A value that cannot be carried can be used, unless the body rebinds its name in each iteration.
    for (const std::string& name : loop.names.rebound) {
        const auto found = locals_.scope.find(name);
        if (found == locals_.scope.end() || found->second.state != Local::State::assigned ||
            can_be_carried(found->second.value))
            continue;
        found->second.state = Local::State::unusable;
        found->second.reason = kCannotCarry;
    }
    for (const char* flag : {kSkip, kReturned, kResult}) locals_.scope.erase(flag);
    if (loop.is_guarded) {
        Local go;
        go.value = Value::boolean(true);
        locals_.scope.insert_or_assign(kGo, std::move(go));
    }
}

void FunctionAnalyzer::yield_from_body(LoopBuild& loop, const Value& value, Span span) {
    ir::Builder::Inside inside(builder_, *loop.body);
    values_.flatten(value, span, loop.yields);
}

// Yields the carried locals at the end of the body, in the types that they had before the loop.
void FunctionAnalyzer::yield_carried(LoopBuild& loop) {
    for (const auto& carried : loop.carried) {
        Local after = loop.after_body.at(carried.name);
        if (after.state == Local::State::assigned)
            after.value = adapt(after.value, type_of(carried.before.value), after.assigned).value_or(after.value);
        const std::string name = "'" + carried.name + "'";
        if (after.state == Local::State::conflict) fail(after.assigned, after.reason, after.notes);
        if (after.state != Local::State::assigned)
            fail(after.assigned, name + " " + (after.reason.empty() ? "has no value on some paths" : after.reason));
        if (!(type_of(after.value) == type_of(carried.before.value))) {
            fail(after.assigned,
                 name + " becomes " + describe(after.value) + " in this loop and is " + describe(carried.before.value) +
                     " before it",
                 {note("before the loop: " + describe(carried.before.value), carried.before.assigned),
                  help("a variable that a loop changes must keep its type; start with a value of the right type, as in "
                       "wp." +
                       type_of(after.value).python_name() + "(...)")});
        }
        yield_from_body(loop, after.value, after.assigned);
    }
    for (const std::string& name : loop.names.assigned) {
        const auto was = loop.before.find(name);
        const auto is = loop.after_body.find(name);
        if (was == loop.before.end() || is == loop.after_body.end() || was->second.state != Local::State::assigned)
            continue;
        if (can_be_carried(was->second.value) || loop.names.rebound.contains(name)) continue;
        if (!identical(was->second.value, is->second.value))
            fail(is->second.assigned, "'" + name + "' " + kCannotCarry);
    }
}

// Yields the values that the body has added. Each starts as zero, its value if the body never runs.
void FunctionAnalyzer::yield_added(LoopBuild& loop, bool returns) {
    const auto add = [&](const std::string& name, const Local& local) {
        const std::size_t first = loop.yields.size();
        yield_from_body(loop, local.value, local.assigned);
        for (std::size_t i = first; i < loop.yields.size(); ++i) {
            const Type type = loop.yields[i]->type;
            for (ir::Region* region : loop.argument_regions) function_.add_argument(region, type, shown_name(name));
            loop.inits.push_back(builder_.zero(type));
        }
        loop.added.push_back({name, local, first});
    };
    for (const auto& [name, local] : loop.after_body) {
        if (name == kReturned || name == kResult) {
            if (!returns) continue;
            if (!can_be_carried(local.value))
                fail(local.assigned, describe(local.value) + " cannot be returned from inside a loop",
                     {help("keep an index in the loop and return after it")});
            add(name, local);
            continue;
        }
        if (name[0] == '$' || local.state != Local::State::assigned) continue;
        const auto was = loop.before.find(name);
        if (was != loop.before.end() && was->second.state == Local::State::assigned) continue;
        if (can_be_carried(local.value) && locals_.is_needed(name)) add(name, local);
    }
}

// Appends the operation, after all carried values are known. Returns its results.
std::vector<ir::Value*> FunctionAnalyzer::append_loop(LoopBuild& loop, std::vector<ir::Value*> bounds) {
    {
        ir::Builder::Inside inside(builder_, *loop.body);
        builder_.yield(loop.yields);
    }
    ir::Operation* operation = loop.operation;
    const bool is_for = operation->op == ir::Op::for_;
    operation->operands = std::move(bounds);
    operation->operands.insert(operation->operands.end(), loop.inits.begin(), loop.inits.end());
    operation->guarded = is_for && loop.is_guarded;
    std::vector<ir::Value*> results;
    for (std::size_t i = 0; i < loop.inits.size(); ++i) {
        const ir::Value* argument = loop.body->arguments[i + (is_for ? 1 : 0)];
        results.push_back(function_.add_result(operation, argument->type, argument->name));
    }
    operation->parent = &builder_.region();
    builder_.region().operations.push_back(operation);
    return results;
}

// Sets the locals after the loop, some of which are among its results.
void FunctionAnalyzer::leave_loop(const LoopBuild& loop, const std::vector<ir::Value*>& results) {
    std::size_t next = 0;
    for (const auto& carried : loop.carried) {
        Local local = loop.after_body.at(carried.name);
        local.value = rebuild(carried.before.value, results, next);
        locals_.scope.insert_or_assign(carried.name, std::move(local));
    }
    for (const std::string& name : loop.names.assigned) {
        const auto was = loop.before.find(name);
        const bool existed = was != loop.before.end() && was->second.state == Local::State::assigned;
        Local& local = locals_.scope[name];
        if (existed && (can_be_carried(was->second.value) || !loop.names.rebound.contains(name))) continue;
        const auto is = loop.after_body.find(name);
        if (!existed && is != loop.after_body.end()) local = is->second;
        if (local.state == Local::State::conflict) continue;
        local.state = existed ? Local::State::unusable : Local::State::maybe;
        local.reason = existed ? kCannotCarry : "";
        local.assigned = is == loop.after_body.end() ? loop.span : is->second.assigned;
    }
    ir::Value* returned = nullptr;
    for (const LoopBuild::Added& added : loop.added) {
        std::size_t at = added.first;
        Local local = added.local;
        local.value = rebuild(added.local.value, results, at);
        if (added.name == kReturned)
            returned = local.value.ir;
        else
            locals_.scope.insert_or_assign(added.name, std::move(local));
    }
    if (!returned) return;
    Local skip;
    skip.value = Value::runtime(returned);
    locals_.scope.insert_or_assign(kSkip, skip);
    if (locals_.loops.empty()) return;
    locals_.scope.insert_or_assign(kReturned, skip);
    Local go;
    go.value = Value::runtime(builder_.unary(ir::Op::invert, returned));
    locals_.scope.insert_or_assign(kGo, std::move(go));
}

// Puts the operation together after the body: scope_ is that of the body's end, and becomes that after the loop.
Flow FunctionAnalyzer::finish_loop(LoopBuild& loop, ir::Region* body, std::vector<ir::Value*> bounds, Flow flow) {
    loop.body = body;
    loop.after_body = std::move(locals_.scope);
    locals_.loops.pop_back();
    locals_.skip_needed = loop.saved_skip_needed;
    locals_.scope = loop.before;
    builder_.span = loop.span;

    const auto carry_go = [&] {
        if (!loop.is_guarded) return;
        yield_from_body(loop, loop.after_body.at(kGo).value, loop.span);
        loop.inits.push_back(builder_.boolean(true));
    };
    yield_carried(loop);
    // The flag of a while loop comes right after the carried locals: its condition reads it. That of a for loop is
    // last.
    const bool is_for = loop.operation->op == ir::Op::for_;
    if (!is_for) carry_go();
    yield_added(loop, (flow & kReturns) != 0);
    if (is_for) {
        if (loop.is_guarded) function_.add_argument(body, bool_type(), "go");
        carry_go();
    }
    leave_loop(loop, append_loop(loop, std::move(bounds)));
    return kFalls | (flow & kReturns);
}

// Finds the names that the loop assigns, and those that an iteration may read from an earlier one.
FunctionAnalyzer::LoopNames FunctionAnalyzer::loop_names(const syntax::Block& body, const syntax::Expression* target,
                                                         const syntax::Expression* condition) {
    LoopNames names;
    const InoutNames find_inout = names_.inout_finder();
    names.assigned = assigned_names(body, find_inout);
    names.rebound = rebound_names(body);
    walk(body, [](const syntax::Statement&) {}, [&](const syntax::Expression& e) { find_inout(e, names.by_calls); });
    std::set<std::string> targets;
    if (target) {
        target_names(*target, names.assigned);
        target_names(*target, names.rebound);
        target_names(*target, targets);
    }
    if (condition) {
        names.assigned.merge(assigned_names(*condition, find_inout));
        names.rebound.merge(assigned_names(*condition, [](const syntax::Expression&, std::set<std::string>&) {}));
    }
    if (names.rebound.empty()) return names;
    const Iteration iterations = iteration(body, condition, targets, names.rebound);
    for (const std::string& name : names.rebound) {
        const Local* local = locals_.find(name);
        const bool is_new = !local || local->state == Local::State::maybe;
        const bool reads_first = iterations.reads_first.contains(name) || locals_.reads().is_captured(name);
        if (is_new && (reads_first || (iterations.leaves_out.contains(name) && locals_.is_needed(name))))
            names.taken_over.insert(name);
        if (local && !reads_first && !locals_.is_needed(name)) names.fresh.insert(name);
    }
    if (module_.options.debug) add_assigned_flags(names);
    return names;
}

// The flag of an assigned local is carried with the local.
void FunctionAnalyzer::add_assigned_flags(LoopNames& names) {
    for (const std::string& name : std::set<std::string>(names.rebound)) {
        const std::string flag = assigned_flag(name);
        for (std::set<std::string>* const set : {&names.assigned, &names.rebound, &names.fresh, &names.taken_over})
            if (set->contains(name)) set->insert(flag);
    }
}

// Starts the names that iterations read from earlier ones at zero. One iteration, analysed in a dropped region, gives
// their types.
void FunctionAnalyzer::start_from_zero(const LoopNames& names, const std::function<void()>& iteration) {
    if (names.taken_over.empty()) return;
    Scope before = locals_.scope;
    const std::int64_t bodies = unrolled_bodies_;
    const bool skip_needed = std::exchange(locals_.skip_needed, false);
    locals_.loops.push_back({names.taken_over});
    {
        ir::Builder::Inside inside(builder_, *function_.new_region(nullptr));
        for (const char* flag : {kSkip, kGo, kReturned, kResult}) locals_.scope.erase(flag);
        iteration();
    }
    locals_.loops.pop_back();
    locals_.skip_needed = skip_needed;
    unrolled_bodies_ = bodies;
    const Scope after = std::exchange(locals_.scope, std::move(before));
    for (const std::string& name : names.taken_over) {
        const auto found = after.find(name);
        if (found == after.end() || found->second.state != Local::State::assigned) continue;
        if (!can_be_carried(found->second.value)) continue;
        Local local = found->second;
        local.value = values_.zero_like(local.value);
        locals_.scope.insert_or_assign(name, std::move(local));
    }
}

Flow FunctionAnalyzer::for_loop(const syntax::For& loop, const Iterable& over, Span span) {
    LoopNames names = loop_names(loop.body, loop.target.get(), nullptr);
    const bool is_range = over.kind == Iterable::Kind::range;
    const Type type = is_range ? over.range->type : counter_of(over);
    Counted counted{};
    if (is_range)
        counted = count(*over.range);
    else
        counted = {
            builder_.integer(0, type), counted_length(over, type), builder_.integer(1, type), nullptr, nullptr, false};
    builder_.span = span;
    const auto iteration = [&](ir::Value* k) {
        const Value value = is_range ? Value::runtime(loop_variable(counted, k)) : element_at(over, k);
        assign_to(*loop.target, value, loop.target->span);
        return run({Work{&loop.body}});
    };
    start_from_zero(names, [&] { iteration(function_.add_argument(&builder_.region(), type, "")); });
    LoopBuild build = begin_loop(ir::Op::for_, loop.body, std::move(names), span);
    build.operation->operands = {counted.lo, counted.hi, counted.step};  // carried values follow
    ir::Region* body = function_.new_region(build.operation);
    const auto* name = std::get_if<syntax::Name>(&loop.target->node);
    const bool is_variable = name && is_range && !counted.first;
    ir::Value* k = function_.add_argument(body, type, is_variable ? syntax::spelled(name->id) : "");
    enter_region(build, body);
    Flow flow = kFalls;
    {
        ir::Builder::Inside inside(builder_, *body);
        flow = iteration(k);
    }
    return finish_loop(build, body, {counted.lo, counted.hi, counted.step}, flow);
}

// Whether a condition is known at compile time. It is analysed in a dropped region, as the place of its IR depends on
// the answer.
FunctionAnalyzer::KnownCondition FunctionAnalyzer::known_condition(const syntax::Expression& condition) {
    KnownCondition known;
    const Scope saved = locals_.scope;
    ir::Region* aside = function_.new_region(nullptr);
    ir::Builder::Inside inside(builder_, *aside);
    known.truth = constant_truth(expression(condition));
    for (const ir::Operation* operation : aside->operations) known.asking_has_effects |= ir::has_effects(*operation);
    locals_.scope = saved;
    return known;
}

// `go and condition`; without a flag, the condition.
ir::Value* FunctionAnalyzer::asked_after(ir::Value* go, const std::function<Flow(Value&)>& condition, Span span) {
    Value result;
    if (!go) {
        condition(result);
        return result.ir;
    }
    const auto stopped = [](Value& r) {
        r = Value::boolean(false);
        return kFalls;
    };
    branch(go, span, condition, stopped, &result);
    ir::Value* flat = flatten_branch(builder_, builder_.region());
    return flat ? flat : result.ir;
}

// While loops come in three forms:
//   while c:      →  while (carried…) { yield c } { body }
//   with a flag   →  while (carried…, %go = true) { yield %go and c } { body }
//   if c itself changes a local (a query that advances an index), the condition moves into the body, since only
//   the body can yield values
//                 →  while (carried…, %go = true) { yield %go } { if c { body } else { yield …, false } }
Flow FunctionAnalyzer::while_loop(const syntax::While& loop, Span span) {
    LoopNames names = loop_names(loop.body, nullptr, loop.condition.get());
    const std::set<std::string> by_condition = assigned_names(*loop.condition, names_.inout_finder());
    start_from_zero(names, [&] {
        expression(*loop.condition);
        run({Work{&loop.body}});
    });

    LoopBuild build = begin_loop(ir::Op::while_, loop.body, std::move(names), span);
    build.is_guarded |= !by_condition.empty();
    ir::Region* head = function_.new_region(build.operation);
    ir::Region* body = function_.new_region(build.operation);
    enter_region(build, head);
    ir::Value* head_go = build.is_guarded ? function_.add_argument(head, bool_type(), "go") : nullptr;

    const KnownCondition known = known_condition(*loop.condition);
    if (known.truth == false) {
        locals_.loops.pop_back();
        locals_.skip_needed = build.saved_skip_needed;
        locals_.scope = build.before;
        if (known.asking_has_effects || !by_condition.empty()) expression(*loop.condition);  // evaluated once
        return kFalls;
    }
    const auto condition = [&](Value& result) {
        const Value value = expression(*loop.condition);
        result = Value::runtime(values_.truth(value, loop.condition->span));
        return kFalls;
    };
    {
        ir::Builder::Inside inside(builder_, *head);
        const bool asks = by_condition.empty() && !(known.truth && head_go && !known.asking_has_effects);
        builder_.yield({asks ? asked_after(head_go, condition, loop.condition->span) : head_go});
    }
    enter_region(build, body);
    if (build.is_guarded) function_.add_argument(body, bool_type(), "go");
    Flow flow = kFalls;
    {
        ir::Builder::Inside inside(builder_, *body);
        if (by_condition.empty()) {
            flow = run({Work{&loop.body}});
        } else {
            Value checked;
            condition(checked);
            flow = branch(
                checked.ir, loop.condition->span, [&](Value&) { return run({Work{&loop.body}}); },
                [&](Value&) {
                    locals_.leave(true, false);
                    return kBreaks;
                });
        }
    }
    const bool is_endless = known.truth.value_or(false);
    const Flow result = finish_loop(build, body, {}, flow);
    // Without a break, `while True` is only left by return.
    return is_endless && !(flow & kBreaks) && (flow & kReturns) ? kReturns : result;
}

}  // namespace weft::sema

// for and while loops. loop_writer.h writes those that are loops in the IR; short ones with known bounds are unrolled
// (Options::max_unroll).
#include "ir/typing.h"
#include "sema/analyzer.h"

namespace weft::sema {

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

// Finds the names that the loop assigns, and those that an iteration may read from an earlier one.
LoopNames FunctionAnalyzer::loop_names(const syntax::Block& body, const syntax::Expression* target,
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
    add_tiles(body, condition, names.assigned);
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

LoopWriter FunctionAnalyzer::begin_loop(ir::Op op, std::vector<ir::Value*> bounds, const syntax::Block& body,
                                        LoopNames names, Span span) {
    return LoopWriter(op, std::move(bounds), body, std::move(names), span, function_, builder_, locals_);
}

Flow FunctionAnalyzer::for_loop(const syntax::For& loop, const Iterable& over, Span span) {
    LoopNames names = loop_names(loop.body, loop.target.get(), nullptr);
    const bool is_range = over.kind == Iterable::Kind::range;
    const Type type = is_range ? over.range->type : counter_of(over);
    Counted counted{};
    if (is_range)
        counted = sequences_.count(*over.range);
    else
        counted = {builder_.integer(0, type),
                   sequences_.counted_length(over, type),
                   builder_.integer(1, type),
                   nullptr,
                   nullptr,
                   false};
    builder_.span = span;
    const auto iteration = [&](ir::Value* k) {
        const Value value =
            is_range ? Value::runtime(sequences_.loop_variable(counted, k)) : sequences_.element_at(over, k);
        assign_to(*loop.target, value, loop.target->span);
        return run({Work{&loop.body}});
    };
    start_from_zero(names, [&] { iteration(function_.add_argument(&builder_.region(), type, "")); });
    LoopWriter build =
        begin_loop(ir::Op::for_, {counted.lo, counted.hi, counted.step}, loop.body, std::move(names), span);
    ir::Region* body = build.new_region();
    const auto* name = std::get_if<syntax::Name>(&loop.target->node);
    const bool is_variable = name && is_range && !counted.first;
    ir::Value* k = function_.add_argument(body, type, is_variable ? syntax::spelled(name->id) : "");
    build.enter(body);
    Flow flow = kFalls;
    {
        ir::Builder::Inside inside(builder_, *body);
        flow = iteration(k);
    }
    return build.finish(body, flow);
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
    branches_.write(go, span, condition, stopped, &result);
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

    LoopWriter build = begin_loop(ir::Op::while_, {}, loop.body, std::move(names), span);
    build.is_guarded |= !by_condition.empty();
    ir::Region* head = build.new_region();
    ir::Region* body = build.new_region();
    build.enter(head);
    ir::Value* head_go = build.is_guarded ? function_.add_argument(head, bool_type(), "go") : nullptr;

    const KnownCondition known = known_condition(*loop.condition);
    if (known.truth == false) {
        build.abandon();
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
    build.enter(body);
    if (build.is_guarded) function_.add_argument(body, bool_type(), "go");
    Flow flow = kFalls;
    {
        ir::Builder::Inside inside(builder_, *body);
        if (by_condition.empty()) {
            flow = run({Work{&loop.body}});
        } else {
            Value checked;
            condition(checked);
            flow = branches_.write(
                checked.ir, loop.condition->span, [&](Value&) { return run({Work{&loop.body}}); },
                [&](Value&) {
                    locals_.leave(true, false);
                    return kBreaks;
                });
        }
    }
    const bool is_endless = known.truth.value_or(false);
    const Flow result = build.finish(body, flow);
    // Without a break, `while True` is only left by return.
    return is_endless && !(flow & kBreaks) && (flow & kReturns) ? kReturns : result;
}

}  // namespace weft::sema

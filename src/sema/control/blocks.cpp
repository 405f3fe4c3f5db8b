// Runs lists of statements. Behind a branch that may exit, the rest moves into the arm that goes on, or runs under a
// flag (branch_writer.h).
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

// assert c, f"{x}": if c: (the statements that follow) else: raise AssertionError(f"{x}")
Flow FunctionAnalyzer::run_assert(const syntax::Assert& statement, Span span, WorkList& work) {
    ir::Value* condition = within_statement(
        work, [&] { return values_.truth(expression(*statement.condition), statement.condition->span); });
    return branches_.write(
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
        return branches_.write(
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
    const Flow flow = branches_.write(
        truth_value, span, [&](Value&) { return run(std::move(then_work)); },
        [&](Value&) { return run(std::move(else_work)); });
    if (!took_rest) locals_.afterwards.pop_back();
    locals_.skip_needed = saved_skip_needed;
    return flow;
}

}  // namespace weft::sema

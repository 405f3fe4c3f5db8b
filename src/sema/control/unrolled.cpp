// Loops over tuples and other static sequences whose bodies break or continue. The bodies are written one after the
// other. Behind one that may break, the rest runs under the flag that a loop in the IR would carry (return.cpp):
//
//   for f in (g, h):                  s1 = g(s0);  %go = not (s1 > 9)
//       s = f(s)                      %s = if %go { yield h(s1) } else { yield s1 }
//       if s > 9.0: break
#include "sema/analyzer.h"

namespace weft::sema {

Flow FunctionAnalyzer::unrolled_loop(const syntax::For& loop, const std::vector<Value>& values, Span span,
                                     WorkList& work) {
    // The flag of the enclosing loop is set aside; it continues on this path.
    std::optional<Local> outer_go;
    if (const Local* go = locals_.find(kGo)) outer_go = *go;
    for (const char* flag : {kSkip, kReturned}) locals_.scope.erase(flag);

    Locals::Loop entered;  // every name that a body assigns keeps its value on the paths that leave
    entered.carried = assigned_names(loop.body, names_.inout_finder());
    target_names(*loop.target, entered.carried);
    add_tiles(loop.body, nullptr, entered.carried);
    locals_.loops.push_back(std::move(entered));
    locals_.afterwards.push_back(&work);
    const bool saved_skip_needed = locals_.skip_needed;
    locals_.skip_needed = false;
    const Flow flow = unrolled_bodies(loop, values, 0, span);
    locals_.skip_needed = saved_skip_needed;
    locals_.afterwards.pop_back();
    locals_.loops.pop_back();

    locals_.scope.erase(kSkip);
    if (outer_go)
        locals_.scope.insert_or_assign(kGo, *outer_go);
    else
        locals_.scope.erase(kGo);
    if (flow & kReturns) {
        Local returned = locals_.scope.at(kReturned);
        locals_.scope.insert_or_assign(kSkip, returned);
        if (locals_.loops.empty()) {
            locals_.scope.erase(kReturned);
        } else {
            Local go;
            go.value = values_.logical_not(returned.value, span);
            locals_.scope.insert_or_assign(kGo, std::move(go));
        }
    }
    return flow;
}

// Writes the bodies from `from` on. The flow has kFalls if a path reaches the code after the loop, and kReturns if one
// returns.
Flow FunctionAnalyzer::unrolled_bodies(const syntax::For& loop, const std::vector<Value>& values, std::size_t from,
                                       Span span) {
    if (from == values.size()) return kFalls;
    Local go;
    go.value = Value::boolean(true);
    locals_.scope.insert_or_assign(kGo, std::move(go));
    locals_.scope.erase(kSkip);
    assign_to(*loop.target, values[from], loop.target->span);
    const Flow flow = run({Work{&loop.body}});
    locals_.scope.erase(kSkip);

    const Flow after = ((flow & ~kReturns) ? kFalls : 0) | (flow & kReturns);
    if (!(flow & (kBreaks | kReturns))) return unrolled_bodies(loop, values, from + 1, span);
    const bool goes_on = (flow & (kFalls | kContinues)) && from + 1 < values.size();
    if (!goes_on) return after;
    ir::Value* condition = values_.materialize(locals_.scope.at(kGo).value, span);
    return branches_.write(
        condition, span, [&](Value&) { return unrolled_bodies(loop, values, from + 1, span); },
        [&](Value&) { return ((flow & kBreaks) ? kFalls : 0) | (flow & kReturns); });
}

}  // namespace weft::sema

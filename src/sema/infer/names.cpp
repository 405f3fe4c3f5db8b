// A name as an expression.
#include "sema/analyzer.h"

namespace weft::sema {

Value FunctionAnalyzer::name(const syntax::Name& name, Span span) {
    if (is_adjoint_name(name.id) && !locals_.find(name.id)) {
        const std::string parameter = name.id.substr(name.id.find('[') + 1);
        if (!gradient_) {
            fail(span, "wp.adjoint has no meaning here: '" + tree_.name + "' is a gradient, called as a function",
                 {help("call the function that it is the gradient of; wp.grad(f) gives its gradient")});
        }
        fail(span, "'" + parameter.substr(0, parameter.size() - 1) + "' has no adjoint",
             {help("wp.adjoint takes the names of parameters that are, or hold, floating-point numbers, except the "
                   "adjoints of the function's results")});
    }
    const std::string spelled = syntax::spelled(name.id);
    if (const Local* local = locals_.find(name.id)) {
        switch (local->state) {
            case Local::State::assigned: {
                const Value value = local->value;
                check_assigned(name.id, span);
                return value.type.is_tile() ? tile_of_local(name.id, value) : value;
            }
            case Local::State::maybe:
                fail(span,
                     "'" + spelled + "' may have no value here: on some paths only it is assigned, to " +
                         describe(local->value),
                     {note("assigned here", local->assigned),
                      help("assign '" + spelled +
                           "' before the branch or loop, or on every path; only numbers, vectors, "
                           "arrays and structs are zero without an assignment")},
                     ErrorCategory::name);
            case Local::State::unusable:
                fail(span, "'" + spelled + "' " + local->reason, {note("assigned here", local->assigned)});
            case Local::State::conflict:
                fail(local->assigned, local->reason, local->notes);
        }
    }
    if (locals_.is_local(name.id)) {
        fail(span, "'" + spelled + "' is used before it is assigned",
             {note("a name that the function assigns anywhere is a local variable of it")}, ErrorCategory::name);
    }
    Binding binding = names_.look_up(name.id, span);
    if (binding.kind == Binding::Kind::unknown) {
        std::vector<std::string> candidates = source_.environment->names();
        for (const auto& [local, _] : locals_.scope) {
            if (local[0] != '$' && !is_assigned_flag(local) && !is_adjoint_name(local))
                candidates.push_back(syntax::spelled(local));
        }
        fail(span, "name '" + name.id + "' is not defined", did_you_mean(name.id, candidates), ErrorCategory::name);
    }
    return from_binding(std::move(binding), name.id, span);
}

// Debug builds: raises, as Python does, if no assignment has been reached.
void FunctionAnalyzer::check_assigned(const std::string& name, Span span) {
    const Local* const flag = module_.options.debug ? locals_.find(assigned_flag(name)) : nullptr;
    if (!flag || flag->state != Local::State::assigned || constant_truth(flag->value) == true) return;
    const Span place = std::exchange(builder_.span, span);
    branches_.write(
        values_.materialize(flag->value, span), span, [](Value&) { return kFalls; },
        [&](Value&) {
            builder_.raise("NameError: '" + escape_percent(syntax::spelled(name)) +
                               "' is read before it is assigned: no assignment was reached on the way here",
                           {});
            return kStops;
        });
    builder_.span = place;
}

}  // namespace weft::sema

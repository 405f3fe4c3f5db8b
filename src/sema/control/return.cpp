// break, continue and return, as values.
//
// Four hidden locals record that a path has left. They are merged like all locals. They cost nothing if every path
// agrees, and are dropped if no code reads them:
//
//   $skip      the rest of this block is not run          asked by the code after a branch that may leave
//   $go        the loop goes on                           the guard of `for_`, the condition of `while_`
//   $returned  a loop was left by return                  carried out of the loop, becomes $skip there
//   $result    the value that the function returns
//
//   for k in range(n):                   %s, %go = for %k in 0 .. %n carry (%s0 = 1.0, true) guarded {
//       if s > limit: break                %big = cmp.gt %s0, %limit
//       s *= x[k]                          %s2, %g2 = if %big { yield %s0, false }
//                                                     else { %xk = load %x[%k]; %s1 = mul %s0, %xk; yield %s1, true }
//                                          yield %s2, %g2
//                                        }
//
//   for k in range(n):                   %r, %v, %go = for %k … guarded { … yield %hit, %k, %not_hit }
//       if x[k] > 0.0: return k          %result = if %r { yield %v } else { yield -1 }
//   return -1                            return %result
#include "sema/analyzer.h"

namespace weft::sema {

void FunctionAnalyzer::return_statement(const syntax::Return& statement, Span span, Flow& flow) {
    flow = kReturns;
    Value value;
    Span place = span;
    if (statement.value) {
        place = statement.value->span;
        value = expression(*statement.value);
        if (value.is_binding(Binding::Kind::none)) value = Value{};
    }
    const syntax::Lambda* inner = locals_.inlined.empty() ? nullptr : locals_.inlined.back();
    if (function_.is_kernel && !inner) {
        if (!value.is_nothing()) {
            fail(place, "kernels cannot return a value",
                 {help("write it to an array that is an argument of the kernel")});
        }
        locals_.leave(true, true);
        return;
    }
    const std::string name = "'" + (inner ? inner->function->name : tree_.name) + "'";
    if (gradient_ && !inner && !value.is_nothing()) {
        fail(place, name + " is a gradient, which returns nothing",
             {help("add to the adjoints of the parameters: wp.adjoint[x] += ...")});
    }
    if (locals_.result.type && !value.is_nothing() && !locals_.result.type->is_none()) {
        if (std::optional<Value> adapted = adapt(value, *locals_.result.type, place)) value = *adapted;
    }
    value = settle(value, place);
    if (value.is_runtime()) value = Value::runtime(values_.array_of(value));
    const Type type = type_of(value);
    const auto shown = [](Type t) { return t.is_none() ? std::string("nothing") : t.python_name(); };
    if (!locals_.result.type) {
        locals_.result.type = type;
        locals_.result.place = place;
    } else if (!(*locals_.result.type == type)) {
        if (inner ? inner->result != nullptr : source_.result.has_value()) {
            fail(place,
                 name + " returns " + shown(type) + " here, and is annotated with " +
                     (locals_.result.type->is_none() ? "None" : shown(*locals_.result.type)),
                 {note("the annotation", inner ? locals_.result.place : tree_.result_span),
                  help("convert the value, or correct the annotation")});
        }
        fail(place, name + " returns " + shown(type) + " here and " + shown(*locals_.result.type) + " elsewhere",
             {note("it returns " + shown(*locals_.result.type) + " here", locals_.result.place),
              help("every return of a function must give the same type")});
    }
    if (!value.is_nothing()) {
        if (value.is_binding()) fail(place, "functions of kernels cannot return " + describe(value));
        Local local;
        local.value = std::move(value);
        local.assigned = place;
        locals_.scope.insert_or_assign(kResult, std::move(local));
    }
    locals_.leave(true, true);
}

void FunctionAnalyzer::finish_function() {
    builder_.span = tree_.span;
    if (gradient_) return gradient_->finish();
    // The new values of parameters that are passed by reference are returned after the result.
    std::vector<Value> values;
    std::size_t number = 0;
    for (std::size_t i = 0; i < tree_.parameters.size(); ++i) {
        const std::string& name = tree_.parameters[i].name;
        if (!locals_.is_reference(name)) continue;
        const Value& value = locals_.scope.at(name).value;
        const std::size_t at = number++;
        if (value.is_runtime() && value.ir == reference_starts_.at(name)) continue;
        module_.changed_references[&function_].push_back(at);
        values.push_back(value);
    }
    for (std::size_t i = 0; i < tree_.parameters.size(); ++i) {
        const Local* const tile = locals_.find(tile_storage(tree_.parameters[i].name));
        if (!tile || tile->value.ir == reference_starts_.at(tile_storage(tree_.parameters[i].name))) continue;
        module_.changed_tiles[&function_].push_back(i);
        values.push_back(tile->value);
    }
    const bool returns = !function_.is_kernel && locals_.result.type && !locals_.result.type->is_none();
    if (!returns && values.empty()) {
        builder_.return_({});
        return;
    }
    const Local* result = locals_.find(kResult);
    if (returns && !result) {
        fail(tree_.span, "'" + tree_.name + "' does not return a value",
             {note("it is annotated with " + locals_.result.type->python_name(), locals_.result.place),
              help("add a return at the end of the function")});
    }
    // A path that runs off the end has zero as its result, after merging.
    if (returns) values.insert(values.begin(), result->value);
    const Value all = values.size() == 1 ? values[0] : Value::tuple(std::move(values));
    function_.result = type_of(all);
    builder_.return_({values_.materialize(all, returns ? locals_.result.place : tree_.span)});
}

}  // namespace weft::sema

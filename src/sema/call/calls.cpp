// Calls: what the callee is decides. Also the names of the builtin table that are part of the language (their entries
// have no `expand`): tid, static, type, len, print, vector, matrix, range.
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// "sin" of math.sin and of a plain sin.
std::string_view last_name(const syntax::Expression& expression) {
    if (const auto* name = std::get_if<syntax::Name>(&expression.node)) return name->id;
    if (const auto* attribute = std::get_if<syntax::Attribute>(&expression.node)) return attribute->name;
    return {};
}

}  // namespace

std::vector<Actual> FunctionAnalyzer::actuals(const syntax::Call& call) {
    std::vector<Actual> arguments;
    for (const auto& argument : call.arguments) {
        if (const auto* starred = std::get_if<syntax::Starred>(&argument->node)) {
            for (const Value& value : starred_values(*starred)) {
                arguments.push_back(Actual{value, argument->span, {}, nullptr});
            }
        } else {
            arguments.push_back(Actual{expression(*argument), argument->span, {}, argument.get()});
        }
    }
    for (const syntax::Keyword& keyword : call.keywords) {
        if (keyword.name.empty()) {
            fail(keyword.value->span, "'**' arguments are not supported in kernels", {}, ErrorCategory::syntax);
        }
        arguments.push_back(Actual{expression(*keyword.value), keyword.value->span, keyword.name, keyword.value.get()});
    }
    return arguments;
}

Value FunctionAnalyzer::call(const syntax::Call& call, Span span) {
    const Value callee = expression(*call.function);
    if (!callee.is_binding()) {
        fail(call.function->span, describe(callee) + " cannot be called",
             {help("functions of kernels are decorated with @wp.func")});
    }
    const Binding& binding = *callee.binding;
    switch (binding.kind) {
        case Binding::Kind::builtin: {
            if (binding.is_gradient) return call_builtin_gradient(binding.text, actuals(call), span);
            bool handled = false;
            Value value = call_language_builtin(binding.text, call, span, handled);
            if (handled) return value;
            std::vector<Actual> arguments = actuals(call);
            if (binding.text.starts_with("atomic_")) pass_indexed_element(arguments);
            return call_builtin(binding.text, arguments, span);
        }
        case Binding::Kind::type:
            return construct(binding.type, actuals(call), span);
        case Binding::Kind::function:
            if (binding.is_gradient) return call_gradient(binding.function, actuals(call), span);
            return call_function(binding.function, actuals(call), span);
        default:
            if (std::vector<Note> ours = weft_counterpart(last_name(*call.function)); !ours.empty())
                fail(call.function->span, describe(callee) + " cannot be called in kernels", std::move(ours));
            fail(call.function->span, describe(callee) + " cannot be called in kernels",
                 {help(
                     "decorate a Python function with @wp.func to call it from kernels; wp.static(...) runs any Python "
                     "expression when the kernel is built")});
    }
}

Value FunctionAnalyzer::call_language_builtin(const std::string& name, const syntax::Call& call, Span span,
                                              bool& handled) {
    handled = true;
    if (name == "static") return call_static(call, span);
    if (name == "tid") {
        if (!call.arguments.empty() || !call.keywords.empty()) fail(span, "wp.tid() takes no arguments");
        return tid(1);
    }
    if (name == "block_dim") return Value::runtime(builder_.block_dim());
    if (name == "type") return type_of_argument(actuals(call), span);
    if (name == "adjoint") fail(span, "wp.adjoint is no function", {help("write wp.adjoint[x], in a @wp.func_grad")});
    if (name == "grad") return gradient_of_argument(actuals(call), span);
    if (name == "len") return length_of(actuals(call), span);
    if (name == "print") return call_print(call, span);
    if (name == "printf") return call_printf(actuals(call), span);
    if (name == "vector") return anonymous_vector(actuals(call), span);
    if (name == "matrix") return anonymous_matrix(actuals(call), span);
    if (name == "quaternion") return anonymous_rotation(Kind::quaternion, actuals(call), span);
    if (name == "transformation") return anonymous_rotation(Kind::transform, actuals(call), span);
    if (name == "zeros") return local_array(actuals(call), span);
    if (name == "array") return array_at(actuals(call), span);
    if (name == "min" || name == "max" || name == "sum" || name == "any" || name == "all") {
        std::vector<Actual> arguments = actuals(call);
        if (std::optional<Value> value = fold_sequence(name, arguments, span)) return *value;
        return call_builtin(name, arguments, span);
    }
    if (name == "range" || name == "reversed" || name == "enumerate" || name == "zip") {
        fail(span, name + "() can only be what a for loop runs over in kernels",
             {help("write for i in " + name + "(...)")});
    }
    handled = false;
    return {};
}

Value FunctionAnalyzer::length_of(const std::vector<Actual>& arguments, Span span) {
    if (arguments.size() != 1 || !arguments[0].keyword.empty()) {
        fail(span, "len() takes one argument, got " + std::to_string(arguments.size()));
    }
    const Value& value = arguments[0].value;
    if (value.is_tuple()) return Value::integer(static_cast<std::int64_t>(value.elements.size()));
    const Type type = type_of(value);
    if (type.is_array()) {
        return Value::runtime(builder_.dim(value.ir, static_cast<int>(value.pending.size())));
    }
    if (type.is_numeric_aggregate()) return Value::integer(type.rows());
    if (is_indexed(type)) return attribute_of(value, "shape", span).elements[0];
    fail(arguments[0].span, describe(value) + " has no length",
         {help("arrays, vectors, matrices and tuples have one")});
}

// type(x): the type, to be called as a constructor: type(x)(0).
Value FunctionAnalyzer::type_of_argument(const std::vector<Actual>& arguments, Span span) {
    if (arguments.size() != 1 || !arguments[0].keyword.empty()) {
        fail(span, "type() takes one argument in kernels, got " + std::to_string(arguments.size()));
    }
    const Value& value = arguments[0].value;
    const Type type = type_of(value);
    if (!type.is_scalar() && !type.is_numeric_aggregate() && !type.is_struct()) {
        fail(arguments[0].span, describe(value) + " has no type that a kernel can make values of",
             {help(type.is_array() ? "a.dtype is the type of an array's elements"
                                   : "numbers, vectors, matrices and structs have one")});
    }
    Binding binding;
    binding.kind = Binding::Kind::type;
    binding.type = type;
    return Value::of_binding(std::move(binding));
}

// The leading coordinates of the thread.
Value FunctionAnalyzer::tid(int rank) {
    module_.tid_rank = std::max(module_.tid_rank, rank);
    function_.tid_rank = std::max(function_.tid_rank, rank);
    if (rank == 1) return Value::runtime(builder_.tid(0));
    std::vector<Value> coordinates;
    for (int axis = 0; axis < rank; ++axis) coordinates.push_back(Value::runtime(builder_.tid(axis)));
    return Value::tuple(std::move(coordinates));
}

Value FunctionAnalyzer::call_static(const syntax::Call& call, Span span) {
    if (call.arguments.size() != 1 || !call.keywords.empty()) {
        fail(span,
             "wp.static() takes one expression, got " + std::to_string(call.arguments.size() + call.keywords.size()));
    }
    return evaluated(*call.arguments[0], "wp.static()");
}

Value FunctionAnalyzer::evaluated(const syntax::Expression& expression, const std::string& spelled) {
    Binding value = evaluate(expression);
    if (value.kind == Binding::Kind::unsupported || value.kind == Binding::Kind::unknown) {
        fail(expression.span,
             spelled + " gave " + (value.text.empty() ? "nothing that" : value.text + ", which") + " kernels can" +
                 (value.text.empty() ? " use" : "not use"),
             {help("it may give a number, a bool, a string, a vector or matrix, a type, a @wp.func or a tuple of "
                   "these")});
    }
    return from_binding(std::move(value), spelled, expression.span);
}

}  // namespace weft::sema

// Calls, told apart by their callee. Also the builtin names that are part of the language (their entries have no
// `expand`): tid, static, type, len, print, vector, matrix, range.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// The last name of a dotted one: "sin" for math.sin and for sin.
std::string_view last_name(const syntax::Expression& expression) {
    if (const auto* name = std::get_if<syntax::Name>(&expression.node)) return name->id;
    if (const auto* attribute = std::get_if<syntax::Attribute>(&expression.node)) return attribute->name;
    return {};
}

}  // namespace

// The type of an object before a point or bracket, or of an argument passed by reference. Empty unless it is a local or
// a part of one. Writes no IR.
std::optional<Type> FunctionAnalyzer::type_of_place(const syntax::Expression& e) const {
    if (const auto* name = std::get_if<syntax::Name>(&e.node)) {
        const Local* local = locals_.find(name->id);
        const Type type = local ? type_of(local->value) : Type::none();
        return type.is_none() || type.is_tuple() ? std::nullopt : std::optional(type);
    }
    if (const auto* attribute = std::get_if<syntax::Attribute>(&e.node)) {
        const std::optional<Type> whole = type_of_place(*attribute->object);
        const std::optional<PartStep> step = whole ? part_attribute(*whole, attribute->name) : std::nullopt;
        return step ? std::optional(step->type) : std::nullopt;
    }
    const auto* subscript = std::get_if<syntax::Subscript>(&e.node);
    if (const std::optional<Value> element = element_of_local(e))
        return element->is_binding() || element->is_tuple() ? std::nullopt : std::optional(type_of(*element));
    const std::optional<Type> whole = subscript ? type_of_place(*subscript->object) : std::nullopt;
    if (!whole || has_slice(subscript->indices)) return std::nullopt;
    const int count = static_cast<int>(subscript->indices.size());
    if (whole->is_array()) {
        const int left = whole->ndim() - count;
        return left > 0 ? Type::array(whole->element(), left) : whole->element();
    }
    if (!whole->is_numeric_aggregate()) return std::nullopt;
    return whole->is_matrix() && count == 1 ? Type::vector(whole->scalar(), whole->cols()) : whole->scalar_type();
}

// Evaluates an argument. The target of one that is passed by reference is found once, before the call.
Actual FunctionAnalyzer::argument(const syntax::Expression& e, bool by_reference) {
    Actual actual{{}, e.span, {}, &e, nullptr};
    if (by_reference && type_of_place(e)) {
        auto found = std::make_shared<const AssignmentTarget>(assignment_target(e));
        actual.value = read(*found);
        actual.place = std::move(found);
    } else {
        actual.value = with_view(e);
        if (actual.value.view)
            actual.place = std::make_shared<const AssignmentTarget>(target_of_view(actual.value, e.span));
        actual.value.view = nullptr;
    }
    return actual;
}

// `callee`: the called function, if it has parameters that are passed by reference. `given`: the number of arguments
// before these.
std::vector<Actual> FunctionAnalyzer::actuals(const syntax::Call& call, const FunctionSource* callee,
                                              std::size_t given) {
    const auto by_reference = [&](const FunctionSource& source, std::size_t position, const std::string& keyword) {
        const auto& parameters = source.tree->parameters;
        const std::string& name =
            !keyword.empty() || position >= parameters.size() ? keyword : parameters[position].name;
        return source.references.contains(name);
    };
    const auto any_by_reference = [&](std::size_t position, const std::string& keyword) {
        if (!callee) return false;
        if (by_reference(*callee, position, keyword)) return true;
        return std::any_of(callee->overloads.begin(), callee->overloads.end(),
                           [&](const auto& overload) { return by_reference(*overload, position, keyword); });
    };
    std::vector<Actual> arguments;
    for (const auto& argument : call.arguments) {
        if (const auto* starred = std::get_if<syntax::Starred>(&argument->node)) {
            for (const Value& value : starred_values(*starred)) {
                arguments.push_back(Actual{value, argument->span, {}, nullptr});
            }
        } else {
            arguments.push_back(this->argument(*argument, any_by_reference(given + arguments.size(), {})));
        }
    }
    for (const syntax::Keyword& keyword : call.keywords) {
        if (keyword.name.empty()) {
            fail(keyword.value->span, "'**' arguments are not supported in kernels", {}, ErrorCategory::syntax);
        }
        arguments.push_back(this->argument(*keyword.value, any_by_reference(0, keyword.name)));
        arguments.back().keyword = keyword.name;
    }
    return arguments;
}

std::optional<Value> FunctionAnalyzer::call_method(const syntax::Call& call, Span span, std::optional<Value>& callee) {
    const auto* attribute = std::get_if<syntax::Attribute>(&call.function->node);
    if (!attribute) return std::nullopt;
    const syntax::Expression* root = attribute->object.get();
    while (const auto* outer = std::get_if<syntax::Attribute>(&root->node)) root = outer->object.get();
    // The name of a module or class is no object.
    if (const auto* name = std::get_if<syntax::Name>(&root->node); name && !locals_.find(name->id)) return std::nullopt;
    Actual self = argument(*attribute->object, true);
    const Type type = type_of(self.value);
    const Binding method = type.is_struct() && !type.field_index(attribute->name)
                               ? names_.look_up_method(type, attribute->name, call.function->span)
                               : Binding{};
    if (method.kind != Binding::Kind::function || method.is_property) {
        callee = attribute_of(self.value, attribute->name, call.function->span);
        return std::nullopt;
    }
    std::vector<Actual> arguments =
        actuals(call, method.function.get(), method.takes_self || method.takes_class ? 1 : 0);
    if (method.takes_class) return call_class_method(method, std::move(arguments), span);
    if (!self.place)
        self.place = std::make_shared<const AssignmentTarget>();  // a temporary: changes by the method are lost
    if (method.takes_self) arguments.insert(arguments.begin(), std::move(self));
    return call_function(method.function, arguments, span);
}

// Passes the class itself as the first argument.
Value FunctionAnalyzer::call_class_method(const Binding& method, std::vector<Actual> arguments, Span span) {
    Binding owner;
    owner.kind = Binding::Kind::type;
    owner.type = method.type;
    arguments.insert(arguments.begin(), Actual{Value::of_binding(std::move(owner)), span, {}, nullptr, nullptr});
    return call_function(method.function, arguments, span);
}

Value FunctionAnalyzer::call(const syntax::Call& call, Span span) {
    if (append_to_list(call, span)) return {};
    std::optional<Value> found;
    if (std::optional<Value> value = call_method(call, span, found)) return *value;
    const Value callee = found ? *found : expression(*call.function);
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
            if (binding.takes_class) return call_class_method(binding, actuals(call, binding.function.get(), 1), span);
            return call_function(binding.function, actuals(call, binding.function.get()), span);
        case Binding::Kind::closure:
            return call_closure(callee, actuals(call), span);
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
    if (name.starts_with("tile") || name == "untile" || name.ends_with("_tiled"))
        return call_tile_function(name, call, span);
    if (name == "slice") return slice_object(call, span);
    if (name == "block_dim") return Value::runtime(builder_.block_dim());
    if (name == "type") return type_of_argument(actuals(call), span);
    if (name == "adjoint") fail(span, "wp.adjoint is no function", {help("write wp.adjoint[x], in a @wp.func_grad")});
    if (name == "grad") return gradient_of_argument(actuals(call), span);
    if (name == "address_of") return address_of(call, span);
    if (name == "index") return index_function(call, span);
    if (name == "len") return length_of(actuals(call), span);
    if (name == "print") return call_print(call, span);
    if (name == "printf") return call_printf(actuals(call), span);
    if (name == "vector") return constructors_.anonymous_vector(actuals(call), span);
    if (name == "matrix") return constructors_.anonymous_matrix(actuals(call), span);
    if (name == "quaternion") return constructors_.anonymous_rotation(Kind::quaternion, actuals(call), span);
    if (name == "transformation") return constructors_.anonymous_rotation(Kind::transform, actuals(call), span);
    if (name == "zeros") return local_array(actuals(call), span);
    if (name == "array") return array_at(actuals(call), span);
    if (name == "min" || name == "max" || name == "sum" || name == "any" || name == "all") {
        if (std::optional<Value> value = fold_generator(name, call, span)) return *value;
        std::vector<Actual> arguments = actuals(call);
        if (std::optional<Value> value = fold_sequence(name, arguments, span)) return *value;
        return call_builtin(name, arguments, span);
    }
    if (name == "range" || name == "reversed" || name == "enumerate" || name == "zip") {
        fail(span, name + "() can only be the iterable of a for loop in kernels",
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
    if (type.is_tile()) return Value::integer(type.shape()[0]);
    if (is_indexed(type)) return attribute_of(value, "shape", span).elements[0];
    fail(arguments[0].span, describe(value) + " has no length",
         {help("arrays, vectors, matrices and tuples have one")});
}

// type(x): the type, which can be called as a constructor: type(x)(0).
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
    if (lanes() > 1) return tid_of_lane(rank);
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
    Binding value = names_.evaluate(expression);
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

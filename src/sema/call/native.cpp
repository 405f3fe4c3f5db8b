// Calls of functions in C++ (@wp.func_native). Sema does not read the C++: it converts arguments and result to types
// that both languages have.
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// Whether C++ has such values too; tuples, functions, types and text exist at compile time only.
bool has_memory(Type type) { return type.is_scalar() || type.is_numeric_aggregate() || type.is_struct(); }

Type type_of_parts(const std::vector<Type>& parts) {
    std::vector<Type::Field> fields;
    for (std::size_t i = 0; i < parts.size(); ++i) fields.push_back({"part" + std::to_string(i), parts[i]});
    return Type::structure("weft_parts", "of a C++ function", std::move(fields));
}

}  // namespace

Value FunctionAnalyzer::call_native(const BoundCall& call, Span span, const Note& signature) {
    const FunctionSource& callee = *call.callee;
    const syntax::Function& tree = *callee.tree;
    const std::string subject = "the C++ function '" + tree.name + "'";
    if (!callee.result && tree.result_span) {
        fail(tree.result_span, "the result of " + subject + " has no single type",
             {help("annotate one type: -> float, -> wp.vec3; several values are a struct")});
    }
    const Type result = callee.result.value_or(Type::none());
    if (!result.is_none() && !has_memory(result)) {
        fail(tree.result_span, subject + " cannot return " + result.python_name(),
             {help(result.is_tuple() ? "return a struct with these fields"
                                     : "return a number, a vector, a matrix or a struct")});
    }

    auto snippet = std::make_shared<ir::NativeSnippet>();
    snippet->source = callee.native;
    std::vector<ir::Value*> operands;
    std::vector<Type> changed;  // the types of the references
    for (std::size_t i = 0; i < call.values.size(); ++i) {
        const Value& value = call.values[i];
        const std::string& parameter = tree.parameters[i].name;
        const bool is_usable =
            !value.is_binding() && !value.is_tuple() && (has_memory(type_of(value)) || type_of(value).is_array());
        if (!is_usable) {
            fail(call.places[i], "argument '" + parameter + "' of " + subject + " is " + describe(value),
                 {signature, help("C++ takes numbers, vectors, matrices, structs and arrays")});
        }
        const bool by_reference = callee.references.contains(parameter);
        if (by_reference && !has_memory(type_of(value))) {
            fail(call.places[i], "argument '" + parameter + "' of " + subject + " cannot be passed by reference",
                 {signature, help("the C++ writes to the elements of an array without that")});
        }
        snippet->parameters.push_back((by_reference ? "&" : "") + parameter);
        if (by_reference) changed.push_back(type_of(value));
        operands.push_back(values_.materialize(value, call.places[i]));
    }
    auto function = std::make_shared<ir::LibraryFunction>();
    function->symbol = tree.name;
    function->pure = false;  // its effects are unknown
    function->native = std::move(snippet);
    builder_.span = span;
    if (changed.empty()) {
        ir::Value* made = builder_.call_library(std::move(function), result, operands);
        return made ? values_.from_ir(made) : Value{};
    }
    // One struct: the result, if there is one, then the new values of the references.
    if (!result.is_none()) changed.insert(changed.begin(), result);
    ir::Value* made = builder_.call_library(std::move(function), type_of_parts(changed), operands);
    const auto part = [&](std::size_t i) {
        return Value::runtime(builder_.extract(made, {static_cast<std::int64_t>(i)}));
    };
    for (std::size_t i = 0, next = result.is_none() ? 0 : 1; i < call.references.size(); ++i, ++next)
        assign_reference(*call.references[i], part(next), span);
    return result.is_none() ? Value{} : part(0);
}

}  // namespace weft::sema

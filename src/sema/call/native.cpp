// Calls of functions in C++ (@wp.func_native). What the C++ means is its compiler's business: here the arguments and
// the result become types that both languages have.
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// Whether C++ has such values too; tuples, functions, types and texts exist at compile time only.
bool has_memory(Type type) { return type.is_scalar() || type.is_numeric_aggregate() || type.is_struct(); }

}  // namespace

Value FunctionAnalyzer::call_native(const BoundCall& call, Span span, const Note& signature) {
    const FunctionSource& callee = *call.callee;
    const syntax::Function& tree = *callee.tree;
    const std::string subject = "the C++ function '" + tree.name + "'";
    if (!callee.references.empty()) {
        fail(tree.span, subject + " cannot have parameters that are passed by reference",
             {help("return a struct, or take an array and write its elements")});
    }
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
    for (std::size_t i = 0; i < call.values.size(); ++i) {
        const Value& value = call.values[i];
        const std::string& parameter = tree.parameters[i].name;
        const bool is_usable =
            !value.is_binding() && !value.is_tuple() && (has_memory(type_of(value)) || type_of(value).is_array());
        if (!is_usable) {
            fail(call.places[i], "argument '" + parameter + "' of " + subject + " is " + describe(value),
                 {signature, help("C++ takes numbers, vectors, matrices, structs and arrays")});
        }
        snippet->parameters.push_back(parameter);
        operands.push_back(materialize(value, call.places[i]));
    }
    auto function = std::make_shared<ir::LibraryFunction>();
    function->symbol = tree.name;
    function->pure = false;  // who knows what it does
    function->native = std::move(snippet);
    builder_.span = span;
    ir::Value* made = builder_.call_library(std::move(function), result, operands);
    return made ? from_ir(made) : Value{};
}

}  // namespace weft::sema

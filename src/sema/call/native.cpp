// Calls of functions in C++ (@wp.func_native). Sema does not read the C++: it converts arguments and result to types
// that both languages have.
//
// One with a derivative (adj_snippet) becomes an IR function with a gradient and a replay, as @wp.func_grad makes them:
//
//   func @f(%x: f32) -> f32 gradient @f_adjoint replay @f_replay {
//       %0 = call_library "f"(%x) native("x", "return x * x;")
//       return %0
//   }
//   func @f_adjoint(%x: f32, %adj_ret: f32) -> f32 {
//       %0 = constant 0
//       %1 = call_library "f"(%x, %0, %adj_ret) native("x", "&adj_x", "adj_ret", "adj_x += 2 * x * adj_ret;")
//       %2 = extract %1, 0
//       return %2
//   }
#include <algorithm>
#include <bit>
#include <cstdint>

#include "ir/typing.h"
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

std::shared_ptr<ir::LibraryFunction> native_function(const std::string& name, const SourcePtr& source,
                                                     std::vector<std::string> parameters) {
    auto function = std::make_shared<ir::LibraryFunction>();
    function->symbol = name;
    function->pure = false;  // its effects are unknown
    function->native = std::make_shared<ir::NativeSnippet>(ir::NativeSnippet{std::move(parameters), source});
    return function;
}

std::vector<std::string> names_of(const ir::Function& function) {
    std::vector<std::string> names;
    for (const ir::Value* parameter : function.parameters()) names.push_back(parameter->name);
    return names;
}

// Makes a call of the C++ the body of a function with these parameters.
void call_with_parameters(ir::Function& function, const std::string& name, const SourcePtr& source, Span span) {
    ir::Builder b(function, function.body);
    b.span = span;
    ir::Value* made = b.call_library(native_function(name, source, names_of(function)), function.result,
                                     {function.parameters().begin(), function.parameters().end()});
    b.return_(made ? std::vector<ir::Value*>{made} : std::vector<ir::Value*>{});
}

// The C++ of the gradient gets the parameters, adj_x for each that has a gradient, and adj_ret. Those of values start
// at zero and are passed by reference; those of arrays are the gradient arrays.
void call_adjoint(ir::Function& gradient, const ir::Function& function, const SourcePtr& source, Span span) {
    ir::Builder b(gradient, gradient.body);
    b.span = span;
    std::vector<std::string> names = names_of(function);
    std::vector<ir::Value*> operands(gradient.parameters().begin(), gradient.parameters().end());
    ir::Value* const adjoint_of_result = function.result.is_none() ? nullptr : operands.back();
    if (adjoint_of_result) operands.pop_back();
    std::vector<Type> changed;
    for (std::size_t i = 0; i < names.size() && i < function.parameters().size(); ++i) {
        ir::Value* const parameter = gradient.parameters()[i];
        const bool is_array = parameter->type.is_array() && ir::is_smooth(parameter->type.element());
        if (!is_array && !ir::is_smooth(parameter->type)) continue;
        names.push_back((is_array ? "?adj_" : "&adj_") + parameter->name);
        operands.push_back(is_array ? b.grad_of(parameter) : b.zero(parameter->type));
        if (!is_array) changed.push_back(parameter->type);
    }
    if (adjoint_of_result) {
        names.push_back("adj_ret");
        operands.push_back(adjoint_of_result);
    }
    const Type result = changed.empty() ? Type::none() : type_of_parts(changed);
    ir::Value* made = b.call_library(native_function(gradient.name, source, std::move(names)), result, operands);
    std::vector<ir::Value*> adjoints;
    for (std::size_t i = 0; i < changed.size(); ++i)
        adjoints.push_back(b.extract(made, {static_cast<std::int64_t>(i)}));
    b.return_(std::move(adjoints));
}

}  // namespace

// The IR function around C++ with a derivative, for operands of these types.
ir::Function* FunctionAnalyzer::native_instance(const FunctionSource& callee, const std::vector<ir::Value*>& operands,
                                                Type result, Span span) {
    const syntax::Function& tree = *callee.tree;
    std::string key = callee.key + "|";
    for (const ir::Value* operand : operands)
        key += std::to_string(std::bit_cast<std::uintptr_t>(operand->type.node())) + ",";
    if (const auto known = module_.instances.find(key); known != module_.instances.end()) return known->second;
    const auto make = [&](const std::string& suffix) {
        ir::Function* const made = module_.module.add(module_.unique_name(tree.name + suffix));
        made->span = tree.span;
        for (std::size_t i = 0; i < operands.size(); ++i)
            made->add_argument(&made->body, operands[i]->type, tree.parameters[i].name);
        return made;
    };
    ir::Function* const instance = make("");
    instance->result = result;
    call_with_parameters(*instance, tree.name, callee.native, span);
    if (callee.native_adjoint) {
        ir::Function* const gradient = instance->gradient = make("_adjoint");
        if (!result.is_none()) gradient->add_argument(&gradient->body, result, "adj_ret");
        gradient->result = ir::gradient_type(*instance);
        gradient->sees_after = true;
        call_adjoint(*gradient, *instance, callee.native_adjoint, span);
    }
    // Without a replay of its own the C++ runs again for its result.
    ir::Function* const replay = instance->replay = make("_replay");
    replay->result = result;
    replay->sees_after = true;
    const SourcePtr& again = callee.native_replay ? callee.native_replay : callee.native;
    if (callee.native_replay || !result.is_none())
        call_with_parameters(*replay, tree.name, again, span);
    else
        ir::Builder(*replay, replay->body).return_({});
    module_.instances.emplace(std::move(key), instance);
    return instance;
}

Value FunctionAnalyzer::call_native(const BoundCall& call, Span span, const Note& signature) {
    const std::vector<std::string>& lines = call.callee->native->lines;
    const auto asks_for_lanes = [](const std::string& line) { return line.find("WP_TILE_") != std::string::npos; };
    if (lanes() > 1 && std::any_of(lines.begin(), lines.end(), asks_for_lanes)) {
        fail(span,
             "C++ that asks for the lanes of a block (WP_TILE_...) does not run in blocks of several lanes on the CPU",
             {signature, help("launch the kernel with wp.config.enable_cpu_blocks = False")});
    }
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

    const bool has_derivative = callee.native_adjoint || callee.native_replay;
    if (has_derivative && !callee.references.empty()) {
        fail(tree.span, subject + " has parameters that are passed by reference, and a derivative of its own",
             {help("return the values instead; several are a struct")});
    }
    std::vector<std::string> names;
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
        names.push_back((by_reference ? "&" : "") + parameter);
        if (by_reference) changed.push_back(type_of(value));
        operands.push_back(values_.materialize(value, call.places[i]));
    }
    builder_.span = span;
    if (has_derivative) {
        ir::Value* made = builder_.call(native_instance(callee, operands, result, span), operands);
        return made ? values_.from_ir(made) : Value{};
    }
    auto function = native_function(tree.name, callee.native, std::move(names));
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

// Calls of @wp.func functions. A function is analysed once for each combination of argument types, at the first such
// call. It becomes a function of the module, which later calls share. Its names are looked up then, so a function may
// be defined after the kernel that uses it.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

// Types are interned, so their nodes' addresses tell them apart.
void append_key(std::string& key, const Value& value) {
    if (value.is_tuple()) {
        key += '(';
        for (const Value& element : value.elements) append_key(key, element);
        key += ')';
    } else if (value.is_binding()) {
        key += describe(value);
        // Two structs may have one name.
        if (value.binding->kind == Binding::Kind::type || value.binding->takes_class)
            key += std::to_string(reinterpret_cast<std::uintptr_t>(value.binding->type.node()));
        if (value.binding->kind == Binding::Kind::function)
            key += value.binding->function->key + (value.binding->is_gradient ? "'" : "");
    } else {
        key += std::to_string(reinterpret_cast<std::uintptr_t>(value.type.node()));
    }
    key += ',';
}

// The parameter's value inside the function: an argument in IR. Types, functions and text are part of the instance.
Value parameter_value(const Value& shape, ir::Function& function, const std::string& name) {
    if (shape.is_binding()) return shape;
    if (shape.is_tuple()) {
        Value result = shape;
        for (Value& element : result.elements) element = parameter_value(element, function, name);
        return result;
    }
    return Value::runtime(function.add_argument(&function.body, shape.type, name));
}

}  // namespace

Value FunctionAnalyzer::call_function(const std::shared_ptr<const FunctionSource>& function,
                                      const std::vector<Actual>& arguments, Span span) {
    module_.keep_source(function->tree->source);
    std::vector<Actual> present = arguments;
    for (Actual& actual : present) {
        if (actual.value.is_tuple() && actual.value.binding) {
            fail(actual.span, "a stack or a query of a block cannot be passed to a function",
                 {help("use it in the function that made it")});
        }
        // A later argument may have changed the tile.
        if (actual.value.type.is_tile() && actual.place) actual.value = detached(read(*actual.place));
    }
    const BoundCall call = choose_overload(module_, function, present, span);
    const Note signature = note("the function is " + parameter_list(*call.callee), call.callee->tree->span);
    if (call.callee->native) return call_native(call, span, signature);
    ir::Function* const instance = instance_of(call, span, signature);
    std::vector<ir::Value*> operands = operands_of(call);
    builder_.span = span;
    ir::Value* result = builder_.call(instance, std::move(operands));
    const Value value = result ? values_.from_ir(result) : Value{};
    const std::vector<std::size_t>& changed = module_.changed_references[instance];
    const std::vector<std::size_t>& tiles = module_.changed_tiles[instance];
    if (changed.empty() && tiles.empty()) return value;
    // The function's result, if it has one, then the new values of its references and tiles: see finish_function().
    const std::vector<Value> parts = value.is_tuple() ? value.elements : std::vector<Value>{value};
    const std::size_t first = parts.size() - changed.size() - tiles.size();
    for (std::size_t i = 0; i < changed.size(); ++i)
        assign_reference(*call.references[changed[i]], parts[first + i], span);
    for (const std::size_t changed_tile : tiles) check_apart(call, changed_tile);
    for (std::size_t i = 0; i < tiles.size(); ++i)
        if (const auto& to = call.tiles[tiles[i]]) write_tile(*to, parts[first + changed.size() + i], span);
    if (first > 1) return Value::tuple({parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(first)});
    return first ? parts[0] : Value{};
}

// Assigns the new value of an argument that was passed by reference.
void FunctionAnalyzer::assign_reference(const AssignmentTarget& place, const Value& value, Span span) {
    if (!place.elements.empty() && place.steps.empty())
        write_element(place, value, span, true);
    else if (place.array || !place.steps.empty() || !place.elements.empty() || place.element)
        write(place, value, span);
    else if (!place.name.empty())
        locals_.assign(place.name, value, span);
}

std::vector<ir::Value*> FunctionAnalyzer::operands_of(const BoundCall& call) {
    std::vector<ir::Value*> operands;
    for (std::size_t i = 0; i < call.values.size(); ++i)
        if (!call.values[i].is_binding()) values_.flatten(call.values[i], call.places[i], operands);
    return operands;
}

// The instance for these types.
ir::Function* FunctionAnalyzer::instance_of(const BoundCall& call, Span span, const Note& signature) {
    const FunctionSource& callee = *call.callee;
    const std::string& name = callee.tree->name;
    if (module_.active.size() >= kMostNestedCalls) {
        fail(span, "functions call each other more than " + std::to_string(kMostNestedCalls) + " deep here",
             {signature, help("call fewer functions from functions")});
    }
    std::string key = callee.key + "|";
    for (const Value& value : call.values) append_key(key, value);
    if (const auto known = module_.instances.find(key); known != module_.instances.end()) return known->second;
    for (std::size_t i = 0; i < module_.active.size(); ++i) {
        if (module_.active[i].function_key != callee.key) continue;
        std::string cycle;
        for (std::size_t k = i; k < module_.active.size(); ++k) cycle += "'" + module_.active[k].name + "' calls ";
        fail(span, "functions cannot call themselves, directly or through others: " + cycle + "'" + name + "'",
             {signature, help("use a loop")});
    }
    ir::Function* const instance = new_instance(callee, call.values, span);
    module_.instances.emplace(std::move(key), instance);
    add_custom_derivatives(call, *instance);
    return instance;
}

// Analyses a function for values of these types. `own`: of a gradient, the number of its function's parameters.
ir::Function* FunctionAnalyzer::new_instance(const FunctionSource& callee, const std::vector<Value>& values, Span span,
                                             std::optional<std::size_t> own) {
    const syntax::Function& tree = *callee.tree;
    ir::Function* const instance = module_.module.add(module_.unique_name(tree.name));
    instance->span = tree.span;
    std::vector<Value> formal;
    for (std::size_t i = 0; i < values.size(); ++i)
        formal.push_back(parameter_value(values[i], *instance, tree.parameters[i].name));
    module_.active.push_back({callee.key, tree.name});
    try {
        FunctionAnalyzer analyzer(module_, callee, *instance);
        if (own)
            analyzer.analyze_gradient(formal, *own);
        else
            analyzer.analyze(formal);
    } catch (const CompileError& error) {
        std::vector<Note> notes = error.notes;
        notes.push_back(note("in '" + tree.name + "', called from here", span));
        fail(error.span, error.message, std::move(notes), error.category);
    }
    module_.active.pop_back();
    return instance;
}

}  // namespace weft::sema

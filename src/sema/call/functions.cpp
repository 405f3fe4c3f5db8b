// Calls of @wp.func functions. A function is analysed once for each combination of argument types, when the first
// such call is met, and becomes a function of the module; later calls share it. Names in it are looked up then, so a
// function may be defined after the kernel that uses it.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

std::string parameter_list(const FunctionSource& source) {
    std::string text;
    for (std::size_t i = 0; i < source.tree->parameters.size(); ++i) {
        const syntax::Parameter& p = source.tree->parameters[i];
        text += (text.empty() ? "" : ", ") + p.name;
        if (i < source.annotations.size() && !source.annotations[i].is_none())
            text += ": " + source.annotations[i].python_name();
        if (p.has_default) text += " = ...";
    }
    return source.tree->name + "(" + text + ")";
}

// Types are interned, so their nodes' addresses tell them apart.
void append_key(std::string& key, const Value& value) {
    if (value.is_tuple()) {
        key += '(';
        for (const Value& element : value.elements) append_key(key, element);
        key += ')';
    } else if (value.is_binding()) {
        key += describe(value);
        if (value.binding->kind == Binding::Kind::function) key += value.binding->function->key;
    } else {
        key += std::to_string(reinterpret_cast<std::uintptr_t>(value.type.node()));
    }
    key += ',';
}

// What stands for the parameter inside: arguments of the function; types, functions and text go by the instance.
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

void FunctionAnalyzer::reject_unusual_parameters(const syntax::Function& tree) {
    if (tree.unsupported.empty()) return;
    fail(tree.span, "'" + tree.name + "' has " + tree.unsupported + ", which kernels and their functions cannot have",
         {help("use plain parameters")}, ErrorCategory::syntax);
}

Value FunctionAnalyzer::call_function(const std::shared_ptr<const FunctionSource>& callee,
                                      const std::vector<Actual>& arguments, Span span) {
    const syntax::Function& tree = *callee->tree;
    const std::string& name = tree.name;
    const auto& parameters = tree.parameters;
    module_.keep_source(tree.source);
    const Note signature = note("the function is " + parameter_list(*callee), tree.span);
    const auto quoted = [&](std::size_t i) { return "'" + parameters[i].name + "'"; };

    reject_unusual_parameters(tree);
    if (module_.active.size() >= kMostNestedCalls) {
        fail(span, "functions call each other more than " + std::to_string(kMostNestedCalls) + " deep here",
             {signature, help("call fewer functions from functions")});
    }

    // Which argument goes to which parameter.
    std::vector<const Actual*> slots(parameters.size(), nullptr);
    std::size_t next = 0;
    for (const Actual& a : arguments) {
        std::size_t at = next;
        if (a.keyword.empty()) {
            if (next++ >= parameters.size()) {
                fail(a.span,
                     "'" + name + "' takes " + std::to_string(parameters.size()) +
                         (parameters.size() == 1 ? " argument, got " : " arguments, got ") +
                         std::to_string(arguments.size()),
                     {signature});
            }
        } else {
            std::vector<std::string> names;
            for (const syntax::Parameter& p : parameters) names.push_back(p.name);
            const auto found = std::find(names.begin(), names.end(), a.keyword);
            if (found == names.end()) {
                std::vector<Note> notes = {signature};
                for (Note& n : did_you_mean(a.keyword, names)) notes.push_back(std::move(n));
                fail(a.span, "'" + name + "' has no parameter '" + a.keyword + "'", std::move(notes));
            }
            at = static_cast<std::size_t>(found - names.begin());
        }
        if (slots[at]) fail(a.span, "argument " + quoted(at) + " of '" + name + "' is given twice", {signature});
        slots[at] = &a;
    }

    // Values of the parameters' types.
    std::vector<Value> values;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        Value value;
        Span place = span;
        if (slots[i]) {
            value = slots[i]->value;
            place = slots[i]->span;
        } else if (i < callee->defaults.size() && callee->defaults[i].kind != Binding::Kind::unknown) {
            value = from_binding(callee->defaults[i], parameters[i].name, parameters[i].span);
        } else {
            fail(span, "argument " + quoted(i) + " of '" + name + "' is missing", {signature});
        }
        const Type annotation = i < callee->annotations.size() ? callee->annotations[i] : Type::none();
        if (!annotation.is_none()) {
            try {
                value = expect(value, annotation, place, "argument " + quoted(i) + " of '" + name + "'");
            } catch (const CompileError& error) {
                std::vector<Note> notes = error.notes;
                notes.push_back(signature);
                fail(error.span, error.message, std::move(notes), error.category);
            }
        }
        if (value.is_nothing()) fail(place, "this call returns nothing, so it cannot be an argument");
        values.push_back(settle(value, place));
    }

    // The instance for these types.
    std::string key = callee->key + "|";
    for (const Value& value : values) append_key(key, value);
    ir::Function*& instance = module_.instances[key];
    if (!instance) {
        for (std::size_t i = 0; i < module_.active.size(); ++i) {
            if (module_.active[i].function_key != callee->key) continue;
            std::string cycle;
            for (std::size_t k = i; k < module_.active.size(); ++k) cycle += "'" + module_.active[k].name + "' calls ";
            fail(span, "functions cannot call themselves, directly or through others: " + cycle + "'" + name + "'",
                 {signature, help("use a loop")});
        }
        ir::Function* function = module_.module.add(module_.unique_name(name));
        function->span = tree.span;
        std::vector<Value> formal;
        for (std::size_t i = 0; i < values.size(); ++i) {
            formal.push_back(parameter_value(values[i], *function, parameters[i].name));
        }
        module_.active.push_back({callee->key, name});
        try {
            FunctionAnalyzer(module_, *callee, *function).analyze(formal);
        } catch (const CompileError& error) {
            std::vector<Note> notes = error.notes;
            notes.push_back(note("in '" + name + "', called from here", span));
            fail(error.span, error.message, std::move(notes), error.category);
        }
        module_.active.pop_back();
        instance = function;
    }

    std::vector<ir::Value*> operands;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i].is_binding()) continue;
        flatten(values[i], slots[i] ? slots[i]->span : span, operands);
    }
    builder_.span = span;
    ir::Value* result = builder_.call(instance, operands);
    return result ? from_ir(result) : Value{};
}

}  // namespace weft::sema

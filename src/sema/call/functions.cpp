// Calls of @wp.func functions. A function is analysed once for each combination of argument types, at the first such
// call. It becomes a function of the module, which later calls share. Its names are looked up then, so a function may
// be defined after the kernel that uses it.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

std::string parameter_list(const FunctionSource& source) {
    std::string text;
    for (std::size_t i = 0; i < source.tree->parameters.size(); ++i) {
        const syntax::Parameter& p = source.tree->parameters[i];
        const bool begins_keywords = p.keyword_only && (i == 0 || !source.tree->parameters[i - 1].keyword_only);
        text += (text.empty() ? "" : ", ") + std::string(begins_keywords ? "*, " : "") + p.name;
        if (p.has_annotation) text += ": " + python_name(source.annotations[i]);
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

std::string expected_text(const TypePattern& pattern) {
    std::string text = python_name(pattern);
    if (pattern.choices.empty()) return text;
    std::vector<std::string> choices;
    for (const TypePattern& choice : pattern.choices) choices.push_back(python_name(choice));
    return text + ", which is " + join_or(choices);
}

// The cost of passing the argument to this parameter; overloads are compared by the sum.
int distance(const Value& given, const Value& taken, const TypePattern& annotation) {
    const bool is_open = annotation.shape == TypePattern::Shape::any && annotation.choices.empty();
    if (!annotation.is_exact()) return is_open ? 2 : 1;
    const bool is_literal = given.is_constant() && given.is_literal;
    return is_literal && !(taken.type == given.type) ? 10 : 0;
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

void FunctionAnalyzer::reject_unusual_parameters(const syntax::Function& tree) {
    if (tree.unsupported.empty()) return;
    fail(tree.span, "'" + tree.name + "' has " + tree.unsupported + ", which kernels and their functions cannot have",
         {help("use plain parameters")}, ErrorCategory::syntax);
}

// The argument for each parameter; null for one that is left out.
std::vector<const Actual*> FunctionAnalyzer::match_parameters(const syntax::Function& callee,
                                                              const std::vector<Actual>& arguments,
                                                              const Note& signature) {
    const std::string& name = callee.name;
    const auto& parameters = callee.parameters;
    std::vector<const Actual*> slots(parameters.size(), nullptr);
    const auto is_positional = [](const syntax::Parameter& p) { return !p.keyword_only; };
    const auto positional =
        static_cast<std::size_t>(std::count_if(parameters.begin(), parameters.end(), is_positional));
    std::size_t next = 0;
    for (const Actual& a : arguments) {
        std::size_t at = next;
        if (a.keyword.empty()) {
            if (next++ >= positional) {
                std::vector<Note> notes = {signature};
                if (positional < parameters.size())
                    notes.push_back(help("give '" + syntax::spelled(parameters[positional].name) +
                                         "' by its name: " + syntax::spelled(parameters[positional].name) + "=..."));
                fail(a.span,
                     "'" + name + "' takes " + std::to_string(positional) +
                         (positional == 1 ? " argument" : " arguments") +
                         (positional < parameters.size() ? " by position, got " : ", got ") +
                         std::to_string(arguments.size()),
                     std::move(notes));
            }
        } else {
            std::vector<std::string> names;
            for (const syntax::Parameter& p : parameters) names.push_back(syntax::spelled(p.name));
            const auto found = std::find(names.begin(), names.end(), a.keyword);
            if (found == names.end()) {
                std::vector<Note> notes = {signature};
                for (Note& n : did_you_mean(a.keyword, names)) notes.push_back(std::move(n));
                fail(a.span, "'" + name + "' has no parameter '" + a.keyword + "'", std::move(notes));
            }
            at = static_cast<std::size_t>(found - names.begin());
        }
        if (slots[at])
            fail(a.span, "argument '" + syntax::spelled(parameters[at].name) + "' of '" + name + "' is given twice",
                 {signature});
        slots[at] = &a;
    }
    return slots;
}

// The value, converted for a parameter of this annotation.
Value FunctionAnalyzer::accept(const Value& value, const TypePattern& annotation, TypeVariables& variables, Span span,
                               const std::string& what) {
    using Shape = TypePattern::Shape;
    if (value.is_nothing()) fail(span, "this call returns nothing, so it cannot be an argument");
    if (holds_closure(value)) {
        fail(span, what + " is " + describe(value) + ", which can only be called in the function that it stands in",
             {help("make it a function of its own with @wp.func, and pass the captured values as arguments")});
    }
    if (annotation.is_exact()) return expect(value, annotation.type, span, what);
    const bool takes_anything =
        annotation.shape == Shape::any && !annotation.variable_identity && annotation.choices.empty();
    if (takes_anything) return settle(value, span);
    if (annotation.shape == Shape::tuple) {
        if (!value.is_tuple() || (annotation.rows != -1 && value.elements.size() != annotation.parts.size()))
            fail(span, what + " is " + describe(value) + ", expected " + expected_text(annotation));
        Value taken = value;
        for (std::size_t i = 0; i < taken.elements.size(); ++i) {
            const std::string element = "element " + std::to_string(i) + " of " + what;
            taken.elements[i] = accept(value.elements[i], annotation.part(i), variables, span, element);
        }
        return taken;
    }
    if (annotation.shape == Shape::callable) {
        for (const Binding::Kind kind : {Binding::Kind::function, Binding::Kind::builtin, Binding::Kind::type})
            if (value.is_binding(kind)) return value;
        fail(span, what + " is " + describe(value) + ", expected a function",
             {help("pass a function made with @wp.func, a built-in function such as wp.sin, or a type")});
    }
    const auto bound = variables.find(annotation.variable_identity);
    if (annotation.variable_identity && bound != variables.end()) {
        if (std::optional<Value> adapted = adapt(value, bound->second, span)) return *adapted;
        if (!(type_of(value) == bound->second)) {
            fail(span, what + " is " + describe(value) + ", expected " + bound->second.python_name() + ", which " +
                           annotation.variable + " is for the other arguments");
        }
    }
    const Value settled = settle(value, span);
    if (settled.is_binding() || !fits(annotation, type_of(settled), variables))
        fail(span, what + " is " + describe(value) + ", expected " + expected_text(annotation));
    return settled;
}

// Matches the call's arguments to the parameters of one function. Typed values come first, so that literals can take
// the types that these give to type variables. Throws CompileError if they do not fit.
FunctionAnalyzer::BoundCall FunctionAnalyzer::bind_arguments(const std::shared_ptr<const FunctionSource>& callee,
                                                             const std::vector<Actual>& arguments, Span span) {
    const syntax::Function& tree = *callee->tree;
    const auto& parameters = tree.parameters;
    const Note signature = note("the function is " + parameter_list(*callee), tree.span);
    reject_unusual_parameters(tree);
    const std::vector<const Actual*> slots = match_parameters(tree, arguments, signature);

    BoundCall call{callee, std::vector<Value>(slots.size()), std::vector<Span>(slots.size(), span), {}, 0};
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (slots[i]) {
            call.values[i] = slots[i]->value;
            call.places[i] = slots[i]->span;
        } else if (i < callee->defaults.size() && callee->defaults[i].kind != Binding::Kind::unknown) {
            call.values[i] = from_binding(callee->defaults[i], parameters[i].name, parameters[i].span);
        } else {
            fail(span, "argument '" + parameters[i].name + "' of '" + tree.name + "' is missing", {signature});
        }
    }
    TypeVariables variables;
    const std::vector<Value> given = call.values;
    for (const bool literals : {false, true}) {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            const bool is_literal = given[i].is_constant() && given[i].is_literal;
            if (is_literal != literals) continue;
            const std::string what = "argument '" + parameters[i].name + "' of '" + tree.name + "'";
            try {
                call.values[i] = accept(given[i], callee->annotations[i], variables, call.places[i], what);
            } catch (const CompileError& error) {
                std::vector<Note> notes = error.notes;
                notes.push_back(signature);
                fail(error.span, error.message, std::move(notes), error.category);
            }
            call.distance += distance(given[i], call.values[i], callee->annotations[i]);
        }
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!callee->references.contains(parameters[i].name)) continue;
        if (!slots[i] || !slots[i]->place) {
            fail(call.places[i],
                 "argument '" + parameters[i].name + "' of '" + tree.name + "' is passed by reference, and " +
                     describe(given[i]) + " here is nothing that can be assigned",
                 {signature, help("pass a local variable, an array's element, or a part of these")});
        }
        call.references.push_back(slots[i]->place);
    }
    return call;
}

// Chooses the definition whose parameter types fit the arguments best.
FunctionAnalyzer::BoundCall FunctionAnalyzer::choose_overload(const std::shared_ptr<const FunctionSource>& callee,
                                                              const std::vector<Actual>& arguments, Span span) {
    if (callee->overloads.empty()) return bind_arguments(callee, arguments, span);
    std::optional<BoundCall> best;
    std::vector<Note> refusals;
    const auto offer = [&](const std::shared_ptr<const FunctionSource>& overload) {
        try {
            BoundCall call = bind_arguments(overload, arguments, span);
            if (!best || call.distance < best->distance) best = std::move(call);
        } catch (const CompileError& error) {
            refusals.push_back(note(parameter_list(*overload) + ": " + error.message, overload->tree->span));
        }
    };
    offer(callee);
    for (const auto& overload : callee->overloads) {
        module_.keep_source(overload->tree->source);
        offer(overload);
    }
    if (best) return std::move(*best);
    std::string given;
    for (const Actual& a : arguments)
        given += (given.empty() ? "" : ", ") + (a.keyword.empty() ? "" : a.keyword + "=") + describe(a.value);
    fail(span, "no definition of '" + callee->tree->name + "' takes (" + given + ")", std::move(refusals));
}

Value FunctionAnalyzer::call_function(const std::shared_ptr<const FunctionSource>& function,
                                      const std::vector<Actual>& arguments, Span span) {
    module_.keep_source(function->tree->source);
    const BoundCall call = choose_overload(function, arguments, span);
    const Note signature = note("the function is " + parameter_list(*call.callee), call.callee->tree->span);
    if (call.callee->native) return call_native(call, span, signature);
    ir::Function* const instance = instance_of(call, span, signature);
    std::vector<ir::Value*> operands = operands_of(call);
    builder_.span = span;
    ir::Value* result = builder_.call(instance, std::move(operands));
    const Value value = result ? values_.from_ir(result) : Value{};
    const std::vector<std::size_t>& changed = module_.changed_references[instance];
    if (changed.empty()) return value;
    // The function's result, if it has one, then the new values of its references: see finish_function().
    const std::vector<Value> parts = value.is_tuple() ? value.elements : std::vector<Value>{value};
    const std::size_t first = parts.size() - changed.size();
    for (std::size_t i = 0; i < changed.size(); ++i)
        assign_reference(*call.references[changed[i]], parts[first + i], span);
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

#include "sema/bound_call.h"

#include <algorithm>

#include "sema/expected_types.h"
#include "sema/messages.h"

namespace weft::sema {

namespace {

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

}  // namespace

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

bool holds_closure(const Value& value) {
    return value.is_binding(Binding::Kind::closure) ||
           std::any_of(value.elements.begin(), value.elements.end(), holds_closure);
}

void reject_unusual_parameters(const syntax::Function& tree) {
    if (tree.unsupported.empty()) return;
    fail(tree.span, "'" + tree.name + "' has " + tree.unsupported + ", which kernels and their functions cannot have",
         {help("use plain parameters")}, ErrorCategory::syntax);
}

std::vector<const Actual*> match_parameters(const syntax::Function& callee, const std::vector<Actual>& arguments,
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

Value accept(const Value& value, const TypePattern& annotation, TypeVariables& variables, Span span,
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

BoundCall bind_arguments(const std::shared_ptr<const FunctionSource>& callee, const std::vector<Actual>& arguments,
                         Span span) {
    const syntax::Function& tree = *callee->tree;
    const auto& parameters = tree.parameters;
    const Note signature = note("the function is " + parameter_list(*callee), tree.span);
    reject_unusual_parameters(tree);
    const std::vector<const Actual*> slots = match_parameters(tree, arguments, signature);

    BoundCall call{callee, std::vector<Value>(slots.size()), std::vector<Span>(slots.size(), span), {}, {}, 0};
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
    for (const Actual* slot : slots) call.tiles.push_back(slot && slot->value.type.is_tile() ? slot->place : nullptr);
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

BoundCall choose_overload(ModuleState& module, const std::shared_ptr<const FunctionSource>& callee,
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
        module.keep_source(overload->tree->source);
        offer(overload);
    }
    if (best) return std::move(*best);
    std::string given;
    for (const Actual& a : arguments)
        given += (given.empty() ? "" : ", ") + (a.keyword.empty() ? "" : a.keyword + "=") + describe(a.value);
    fail(span, "no definition of '" + callee->tree->name + "' takes (" + given + ")", std::move(refusals));
}

}  // namespace weft::sema

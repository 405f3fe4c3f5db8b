// Calls of the builtin table: each overload is tried in the table's order, the first that fits wins. When none does,
// the message lists what there is and why each does not fit.
#include <algorithm>

#include "sema/analyzer.h"

namespace weft::sema {

namespace {

constexpr std::size_t kMostOverloadsShown = 5;

// The arguments in the order of an overload's parameters; null where one is left out. Says why where they do not go
// together.
struct Arranged {
    std::vector<const Actual*> slots;
    std::string why_not;
};

Arranged arrange(const builtins::Signature& signature, const std::vector<Actual>& arguments) {
    Arranged result;
    const auto& parameters = signature.parameters;
    const bool is_variadic = !parameters.empty() && parameters.back().is_variadic;
    for (const Actual& a : arguments) {
        if (a.keyword.empty()) result.slots.push_back(&a);
    }
    if (result.slots.size() > parameters.size() && !is_variadic) {
        result.why_not = "takes " + std::to_string(parameters.size()) +
                         (parameters.size() == 1 ? " argument, " : " arguments, ") + std::to_string(arguments.size()) +
                         " given";
        return result;
    }
    result.slots.resize(std::max(result.slots.size(), parameters.size()), nullptr);
    for (const Actual& a : arguments) {
        if (a.keyword.empty()) continue;
        const auto found = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const builtins::Parameter& p) { return p.name == a.keyword; });
        if (found == parameters.end()) {
            result.why_not = "has no parameter '" + a.keyword + "'";
            return result;
        }
        const Actual*& slot = result.slots[static_cast<std::size_t>(found - parameters.begin())];
        if (slot) {
            result.why_not = "argument '" + a.keyword + "' is given twice";
            return result;
        }
        slot = &a;
    }
    return result;
}

builtins::Argument offer(const Actual* actual) {
    builtins::Argument argument;
    if (!actual) return argument;
    const Value& value = actual->value;
    if (value.is_binding(Binding::Kind::type)) {
        argument.is_type = true;
        argument.type = value.binding->type;
        return argument;
    }
    if (value.is_binding(Binding::Kind::string)) {
        argument.type = Type::string();
        return argument;
    }
    argument.type = type_of(value);
    argument.is_literal = value.is_constant() && value.is_literal;
    argument.is_constant = value.is_constant_scalar();
    if (argument.is_constant) argument.literal = value.numbers[0];
    return argument;
}

// "add(float32, int literal 4)".
std::string call_text(const std::string& name, const std::vector<Actual>& arguments, const std::string& operator_sign) {
    std::string text;
    if (!operator_sign.empty()) {
        for (const Actual& a : arguments) text += (text.empty() ? "" : " and ") + describe(a.value);
        return "'" + operator_sign + "' does not take " + text;
    }
    for (const Actual& a : arguments) {
        text += (text.empty() ? "" : ", ") + (a.keyword.empty() ? "" : a.keyword + "=") + describe(a.value);
    }
    return "no overload of wp." + name + "() takes (" + text + ")";
}

const builtins::Parameter& parameter_at(const builtins::Signature& signature, std::size_t i) {
    return signature.parameters[std::min(i, signature.parameters.size() - 1)];
}

}  // namespace

Value FunctionAnalyzer::call_builtin(const std::string& name, const std::vector<Actual>& arguments, Span span,
                                     const std::string& operator_sign) {
    const std::vector<const builtins::Entry*> overloads = builtins::overloads(name);
    if (overloads.empty()) {
        fail(span, "there is no built-in function wp." + name + "()", did_you_mean(name, builtins::names()),
             ErrorCategory::attribute);
    }
    for (const Actual& a : arguments) {
        if (a.value.is_nothing()) fail(a.span, "this call returns nothing, so it cannot be used as a value");
    }

    std::vector<std::string> refusals;  // of the overloads that come nearest
    int most_agreed = 0;
    for (const builtins::Entry* entry : overloads) {
        const builtins::Signature& signature = builtins::signature(*entry);
        const Arranged arranged = arrange(signature, arguments);
        std::string why_not = arranged.why_not;
        builtins::Match match;
        if (why_not.empty()) {
            std::vector<builtins::Argument> offered;
            for (const Actual* actual : arranged.slots) offered.push_back(offer(actual));
            match = builtins::match(*entry, offered);
            why_not = match.why_not;
        }
        if (!match.ok) {
            if (match.agreed > most_agreed) refusals.clear();
            most_agreed = std::max(most_agreed, match.agreed);
            if (match.agreed == most_agreed)
                refusals.push_back(std::string(entry->name) + entry->signature + ": " + why_not);
            continue;
        }
        if (!entry->expand) fail(span, "wp." + name + "() cannot be called here");

        // Values of the matched types; left-out parameters get their default.
        std::vector<ir::Value*> values;
        std::vector<const Actual*> inout;
        for (std::size_t i = 0; i < match.parameter_types.size(); ++i) {
            const builtins::Parameter& parameter = parameter_at(signature, i);
            const Type type = match.parameter_types[i];
            const Actual* actual = i < arranged.slots.size() ? arranged.slots[i] : nullptr;
            if (parameter.is_static) {
                values.push_back(nullptr);
            } else if (!actual) {
                const std::optional<Number> number = builtins::default_number(parameter);
                WEFT_CHECK(number && type.is_scalar(), "a builtin's parameter has no usable default");
                const Scalar from = number->is_float ? Scalar::f64 : Scalar::i64;
                values.push_back(builder_.constant(type, {convert(*number, from, type.scalar())}));
            } else {
                values.push_back(
                    materialize(adapt(actual->value, type, actual->span).value_or(actual->value), actual->span));
            }
            if (!parameter.is_inout) continue;
            if (!actual || !actual->expression || !std::holds_alternative<syntax::Name>(actual->expression->node) ||
                !find_local(std::get<syntax::Name>(actual->expression->node).id)) {
                fail(actual ? actual->span : span,
                     "argument '" + parameter.name + "' of wp." + name +
                         "() is changed by the call and must be a local variable",
                     {help("assign the value to a variable first and pass that")});
            }
            inout.push_back(actual);
        }
        builder_.span = span;
        builtins::Call call{builder_, values, match.types, match.sizes, {}};
        ir::Value* result = entry->expand(call);
        WEFT_CHECK(call.inout.size() == inout.size(),
                   std::string("builtin ") + name + " did not assign its inout arguments");
        for (std::size_t i = 0; i < inout.size(); ++i) {
            assign_name(std::get<syntax::Name>(inout[i]->expression->node).id, Value::runtime(call.inout[i]),
                        inout[i]->span);
        }
        return result ? from_ir(result) : Value{};
    }

    std::vector<Note> notes;
    for (std::size_t i = 0; i < refusals.size() && i < kMostOverloadsShown; ++i) notes.push_back(note(refusals[i]));
    if (refusals.size() > kMostOverloadsShown) {
        notes.push_back(note("and " + std::to_string(refusals.size() - kMostOverloadsShown) + " more"));
    }
    std::optional<Type> first;
    for (const Actual& a : arguments) {
        const Type type = type_of(a.value);
        if (!type.is_scalar()) continue;
        if (a.value.is_literal) {
            if (!a.value.numbers[0].is_float || !first || !first->is_int()) continue;
            notes.push_back(help("values never convert by themselves; write float(...) around the integer"));
            break;
        }
        if (first && !(*first == type)) {
            notes.push_back(help("values never convert by themselves; convert one side, as in wp." +
                                 first->python_name() + "(...)"));
            break;
        }
        first = type;
    }
    fail(span, call_text(name, arguments, operator_sign), std::move(notes));
}

}  // namespace weft::sema

// Calls of the builtin table: the first overload, in the table's order, that fits. If none does, the message lists the
// overloads and why each does not fit.
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

constexpr std::size_t kMostOverloadsShown = 5;

builtins::Argument offer(const Value& value) {
    builtins::Argument argument;
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

}  // namespace

std::optional<Value> FunctionAnalyzer::call_own_operator(const std::string& name, const std::vector<Actual>& arguments,
                                                         Span span) {
    if (locals_.find(name) || locals_.is_local(name)) return std::nullopt;
    const Binding own = names_.look_up(name, span);
    if (own.kind != Binding::Kind::function) return std::nullopt;
    try {
        choose_overload(module_, own.function, arguments, span);
    } catch (const CompileError&) {
        return std::nullopt;  // made for other types: the built-in operator gives the better message
    }
    return call_function(own.function, arguments, span);
}

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

    std::vector<builtins::CallArgument> given;
    for (const Actual& a : arguments) given.push_back({a.keyword, offer(a.value)});
    const builtins::Resolution resolution = builtins::resolve(name, given);
    if (resolution.match.ok) return call_resolved(name, resolution, arguments, span);
    if (!operator_sign.empty()) {
        if (std::optional<Value> value = call_own_operator(name, arguments, span)) return *value;
        if (std::vector<Note> notes = operator_help(name, operator_sign, arguments); !notes.empty())
            fail(span, call_text(name, arguments, operator_sign), std::move(notes));
    }
    refuse_call(call_text(name, arguments, operator_sign), resolution.refusals, arguments, span);
}

// Suggests another spelling; empty if the list of overloads says more.
std::vector<Note> FunctionAnalyzer::operator_help(const std::string& name, const std::string& sign,
                                                  const std::vector<Actual>& arguments) {
    for (const Actual& a : arguments) {
        const Type type = type_of(a.value);
        if (!type.is_struct()) continue;
        const std::string& of = type.struct_name();
        const std::string module = source_.environment->module_with_operator(type, name);
        if (!module.empty())
            return {help("the operators of " + of + " are functions of the module " + module +
                         ", which this one does not see: write 'from " + module + " import " + name + "'")};
        return {help("operators of structs are functions of the program: @wp.func def " + name +
                     (arguments.size() == 1 ? "(a: " + of + ")" : "(a: " + of + ", b: ...)"))};
    }
    if (arguments.size() != 2) return {};
    const std::string text = how_else(sign, type_of(arguments[0].value), type_of(arguments[1].value),
                                      arguments[0].value.is_literal || arguments[1].value.is_literal);
    return text.empty() ? std::vector<Note>{} : std::vector<Note>{help(text)};
}

Value FunctionAnalyzer::call_resolved(const std::string& name, const builtins::Resolution& resolution,
                                      const std::vector<Actual>& arguments, Span span) {
    const builtins::Match& match = resolution.match;
    const builtins::Entry* entry = match.entry;
    const builtins::Signature& signature = builtins::signature(*entry);
    if (!entry->expand) fail(span, "wp." + name + "() cannot be called here");

    // Values of the matched types; left-out parameters get their default.
    std::vector<ir::Value*> values;
    std::vector<const Actual*> inout;
    for (std::size_t i = 0; i < match.parameter_types.size(); ++i) {
        const builtins::Parameter& parameter = builtins::parameter_at(signature, i);
        const Type type = match.parameter_types[i];
        const int slot = resolution.slots[i];
        const Actual* actual = slot < 0 ? nullptr : &arguments[static_cast<std::size_t>(slot)];
        if (parameter.is_static) {
            values.push_back(nullptr);
        } else if (!actual) {
            const std::optional<Number> number = builtins::default_number(parameter);
            WEFT_CHECK(number && type.is_scalar(), "a builtin's parameter has no usable default");
            const Scalar from = number->is_float ? Scalar::f64 : Scalar::i64;
            values.push_back(builder_.constant(type, {convert(*number, from, type.scalar())}));
        } else {
            values.push_back(
                values_.materialize(adapt(actual->value, type, actual->span).value_or(actual->value), actual->span));
        }
        if (!parameter.is_inout) continue;
        const auto* local =
            actual && actual->expression ? std::get_if<syntax::Name>(&actual->expression->node) : nullptr;
        if (!local || !locals_.find(local->id)) {
            // A random state that is no variable, such as an array's element, is not advanced.
            if (actual && parameter.name == "state") {
                inout.push_back(nullptr);
                continue;
            }
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
        if (!inout[i]) continue;
        locals_.assign(std::get<syntax::Name>(inout[i]->expression->node).id, Value::runtime(call.inout[i]),
                       inout[i]->span);
    }
    return result ? values_.from_ir(result) : Value{};
}

// Reports that no overload takes the arguments.
void FunctionAnalyzer::refuse_call(const std::string& text, const std::vector<std::string>& refusals,
                                   const std::vector<Actual>& arguments, Span span) {
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
    fail(span, text, std::move(notes));
}

}  // namespace weft::sema

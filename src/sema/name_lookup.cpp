#include "sema/name_lookup.h"

#include <algorithm>

#include "builtins/registry.h"
#include "builtins/resolve.h"
#include "sema/messages.h"
#include "types/names.h"

namespace weft::sema {

namespace {

// Whether wp.static can get the binding as a plain Python value.
bool is_python_value(const Binding& binding) {
    switch (binding.kind) {
        case Binding::Kind::constant:
        case Binding::Kind::string:
        case Binding::Kind::none:
        case Binding::Kind::type:
        case Binding::Kind::object:
            return true;
        case Binding::Kind::tuple:
            return std::all_of(binding.elements.begin(), binding.elements.end(), is_python_value);
        default:
            return false;
    }
}

}  // namespace

// An error of Python itself (a property that raises) is shown at the place of the name. A name that Python does not
// know may be a builtin without its prefix: dot(v, w), vec3(1.0, 2.0, 3.0).
Binding NameLookup::look_up(const std::string& name, Span span) {
    Binding found;
    try {
        found = environment_->lookup(name);
    } catch (const UsageError& error) {
        fail(span, error.what(), {}, error.category);
    }
    if (found.kind != Binding::Kind::unknown) return found;
    if (const std::optional<Type> type = named_type(name)) {
        found.kind = Binding::Kind::type;
        found.type = *type;
    } else if (!builtins::overloads(name).empty()) {
        found.kind = Binding::Kind::builtin;
        found.text = name;
    }
    return found;
}

Binding NameLookup::look_up_attribute(const Binding& object, const std::string& name, Span span) {
    try {
        return environment_->attribute(object, name);
    } catch (const UsageError& error) {
        fail(span, error.what(), {}, error.category);
    }
}

Binding NameLookup::look_up_method(Type type, const std::string& name, Span span) {
    try {
        return environment_->method(type, name);
    } catch (const UsageError& error) {
        fail(span, error.what(), {}, error.category);
    }
}

std::optional<Binding> NameLookup::static_binding(const syntax::Expression& expression) {
    if (const auto* name = std::get_if<syntax::Name>(&expression.node)) {
        if (const Local* local = locals_.find(name->id)) return to_binding(local->value);
        if (locals_.is_local(name->id)) return std::nullopt;
        return look_up(name->id, expression.span);
    }
    if (const auto* attribute = std::get_if<syntax::Attribute>(&expression.node)) {
        const std::optional<Binding> object = static_binding(*attribute->object);
        if (!object || (object->kind != Binding::Kind::object && object->kind != Binding::Kind::type))
            return std::nullopt;
        return look_up_attribute(*object, attribute->name, expression.span);
    }
    return std::nullopt;
}

// Color.RED, RED: a member of an enumeration is a number in kernels; Python reads its other attributes.
bool NameLookup::is_global_number(const syntax::Expression& expression) {
    const syntax::Expression* root = &expression;
    while (const auto* attribute = std::get_if<syntax::Attribute>(&root->node)) root = attribute->object.get();
    const auto* name = std::get_if<syntax::Name>(&root->node);
    if (!name || locals_.find(name->id) || locals_.is_local(name->id)) return false;
    const std::optional<Binding> binding = static_binding(expression);
    return binding && binding->kind == Binding::Kind::constant && binding->is_literal;
}

// A superset: any plain name given to a builtin of which some overload has an inout parameter.
void NameLookup::inout_names(const syntax::Call& call, std::set<std::string>& names) {
    const std::optional<Binding> callee = static_binding(*call.function);
    if (callee && callee->kind == Binding::Kind::function) {
        const auto add_references = [&](const FunctionSource& source) {
            const auto& parameters = source.tree->parameters;
            for (std::size_t i = 0; i < call.arguments.size() && i < parameters.size(); ++i)
                if (source.references.contains(parameters[i].name)) target_names(*call.arguments[i], names);
            for (const syntax::Keyword& keyword : call.keywords)
                if (source.references.contains(keyword.name)) target_names(*keyword.value, names);
        };
        add_references(*callee->function);
        for (const auto& overload : callee->function->overloads) add_references(*overload);
    }
    // A method may change its struct.
    if (const auto* attribute = std::get_if<syntax::Attribute>(&call.function->node); attribute && !callee) {
        std::set<std::string> roots;
        target_names(*attribute->object, roots);
        for (const std::string& root : roots) {
            const Local* local = locals_.find(root);
            if (!local || local->value.is_tuple() || type_of(local->value).is_struct()) names.insert(root);
        }
    }
    if (!callee || callee->kind != Binding::Kind::builtin) return;
    bool has_inout = false;
    for (const builtins::Entry* entry : builtins::overloads(callee->text)) {
        for (const builtins::Parameter& p : builtins::signature(*entry).parameters) has_inout |= p.is_inout;
    }
    if (!has_inout) return;
    const auto add = [&](const syntax::Expression& argument) {
        if (const auto* name = std::get_if<syntax::Name>(&argument.node)) names.insert(name->id);
    };
    for (const auto& argument : call.arguments) add(*argument);
    for (const syntax::Keyword& keyword : call.keywords) add(*keyword.value);
}

// A lambda changes names that it captures when it is called. Each mention of it may be a call.
void NameLookup::names_changed_by(const syntax::Lambda& lambda, std::set<std::string>& names) {
    if (std::find(locals_.inlined.begin(), locals_.inlined.end(), &lambda) != locals_.inlined.end()) return;
    locals_.inlined.push_back(&lambda);
    std::set<std::string> changed = assigned_names(lambda.function->body, inout_finder());
    locals_.inlined.pop_back();
    std::erase_if(changed, [&](const std::string& name) { return syntax::is_own(name, lambda.function->scope); });
    names.merge(changed);
}

void NameLookup::names_changed_by(const Value& value, std::set<std::string>& names) {
    if (value.is_binding(Binding::Kind::closure)) names_changed_by(*value.binding->lambda, names);
    for (const Value& element : value.elements) names_changed_by(element, names);
}

InoutNames NameLookup::inout_finder() {
    return [this](const syntax::Expression& e, std::set<std::string>& names) {
        if (const auto* call = std::get_if<syntax::Call>(&e.node)) inout_names(*call, names);
        if (!locals_.reads().has_lambdas()) return;
        if (const auto* lambda = std::get_if<syntax::Lambda>(&e.node)) names_changed_by(*lambda, names);
        const auto* name = std::get_if<syntax::Name>(&e.node);
        if (const Local* local = name ? locals_.find(name->id) : nullptr) names_changed_by(local->value, names);
    };
}

// By the names that the user wrote: of several lambdas' variables of one name, the one that is in scope here.
std::vector<Environment::Local> NameLookup::constant_locals(const syntax::Expression& expression) const {
    std::map<std::string, std::string> meant;  // spelled, and in full
    walk(expression, [&](const syntax::Expression& e) {
        if (const auto* name = std::get_if<syntax::Name>(&e.node)) meant[syntax::spelled(name->id)] = name->id;
    });
    std::vector<Environment::Local> constants;
    for (const auto& [name, local] : locals_.scope) {
        if (name[0] == '$' || is_assigned_flag(name) || is_adjoint_name(name) || local.state != Local::State::assigned)
            continue;
        const std::string spelled = syntax::spelled(name);
        if (const auto found = meant.find(spelled); found == meant.end() ? spelled != name : found->second != name)
            continue;
        Binding binding = to_binding(local.value);
        if (is_python_value(binding)) {
            constants.push_back({spelled, std::move(binding), {}});
            continue;
        }
        // len(v) is known by the type.
        const Type type = local.value.type;
        if (local.value.is_tuple())
            constants.push_back({spelled, {}, static_cast<std::int64_t>(local.value.elements.size())});
        else if (!local.value.is_binding() && type.is_numeric_aggregate())
            constants.push_back({spelled, {}, type.rows()});
    }
    return constants;
}

Binding NameLookup::evaluate(const syntax::Expression& expression) {
    try {
        return environment_->evaluate(expression.id, constant_locals(expression));
    } catch (const UsageError& error) {
        fail(expression.span, error.what(),
             {help("the expression is evaluated by Python when the kernel is built; it can use globals, closure "
                   "variables, "
                   "variables of unrolled loops and the len() of vectors, but no values of the running kernel")},
             error.category);
    }
}

}  // namespace weft::sema

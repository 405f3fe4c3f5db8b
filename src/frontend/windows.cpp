// Views for people and tests: the tree of a function and the meaning of its names, as text and dicts.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/binding.h"
#include "frontend/frontend.h"
#include "frontend/objects.h"

namespace weft::frontend {
namespace {

using sema::Binding;

const char* kind_name(Binding::Kind kind) {
    switch (kind) {
        case Binding::Kind::unknown:
            return "unknown";
        case Binding::Kind::constant:
            return "constant";
        case Binding::Kind::string:
            return "string";
        case Binding::Kind::none:
            return "none";
        case Binding::Kind::type:
            return "type";
        case Binding::Kind::builtin:
            return "builtin";
        case Binding::Kind::function:
            return "function";
        case Binding::Kind::closure:
            return "closure";
        case Binding::Kind::exception:
            return "exception";
        case Binding::Kind::object:
            return "object";
        case Binding::Kind::tuple:
            return "tuple";
        case Binding::Kind::unsupported:
            return "unsupported";
    }
    return "unknown";
}

nb::dict show(const Binding& binding) {
    nb::dict shown;
    shown["kind"] = kind_name(binding.kind);
    if (!binding.type.is_none()) shown["type"] = binding.type.python_name().c_str();
    if (!binding.text.empty()) shown["text"] = binding.text.c_str();
    if (binding.kind == Binding::Kind::constant) {
        shown["value"] = constant_to_python({binding.type, binding.numbers});
        shown["literal"] = binding.is_literal;
    }
    if (binding.function) shown["text"] = binding.function->key.c_str();
    if (binding.kind == Binding::Kind::tuple) {
        nb::list elements;
        for (const Binding& element : binding.elements) elements.append(show(element));
        shown["elements"] = elements;
    }
    return shown;
}

// "wp.types.vector": the first name, then attributes of it.
nb::dict meaning(nb::handle function, const std::string& dotted) {
    const auto source = read_function(function);
    std::string_view rest = dotted;
    const auto next = [&rest] {
        const std::string_view name = rest.substr(0, rest.find('.'));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        return name;
    };
    Binding binding = source->environment->lookup(next());
    while (!rest.empty()) binding = source->environment->attribute(binding, next());
    return show(binding);
}

nb::dict value_of_expression(nb::handle function, int id, nb::dict constants) {
    std::vector<sema::Environment::Local> locals;
    for (auto [name, value] : constants) locals.push_back({nb::cast<std::string>(name), binding_from_python(value)});
    return show(read_function(function)->environment->evaluate(id, locals));
}

nb::list parameters(nb::handle function) {
    const auto source = read_function(function);
    nb::list result;
    for (std::size_t i = 0; i < source->annotations.size(); ++i) {
        const syntax::Parameter& parameter = source->tree->parameters[i];
        const std::string type = parameter.has_annotation ? python_name(source->annotations[i]) : "";
        const Binding missing;
        result.append(
            nb::make_tuple(parameter.name, type, show(source->defaults.empty() ? missing : source->defaults[i])));
    }
    return result;
}

}  // namespace

void bind_windows(nb::module_& m) {
    m.def(
        "syntax", [](nb::handle function) { return syntax::print(*read_function(function)->tree); },
        nb::arg("function"), "The syntax tree of a Python function, as text.");
    m.def("meaning", &meaning, nb::arg("function"), nb::arg("name"),
          "The meaning of a name, or of a dotted one, in a Python function, as a dict.");
    m.def("value_of_expression", &value_of_expression, nb::arg("function"), nb::arg("id"),
          nb::arg("constants") = nb::dict(), "The value of an expression of a function, by its number in the tree.");
    m.def("parameters", &parameters, nb::arg("function"),
          "(name, type, default) of each parameter of a Python function.");
}

}  // namespace weft::frontend

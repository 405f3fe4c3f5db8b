#include "bindings/values/builtin.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "builtins/registry.h"
#include "frontend/frontend.h"

namespace weft::bindings {
namespace {

namespace nb = nanobind;

// One paragraph per overload: its signature, and its description.
std::string documentation(const std::string& name) {
    std::string text;
    for (const builtins::Entry* entry : builtins::overloads(name)) {
        text += (text.empty() ? "" : "\n\n") + name + entry->signature + "\n    " + entry->doc;
    }
    return text;
}

nb::object builtin(const std::string& name) {
    if (builtins::overloads(name).empty()) return nb::none();
    return nb::type<frontend::Builtin>()(name, documentation(name));
}

// Entries for the table's sweep and the reference pages: (signature, doc, has_expansion, differentiable) each.
nb::list builtin_overloads(const std::string& name) {
    nb::list result;
    for (const builtins::Entry* entry : builtins::overloads(name)) {
        result.append(nb::make_tuple(entry->signature, entry->doc, entry->expand != nullptr, entry->differentiable));
    }
    return result;
}

// The groups of the reference in their order, with the names of each in the table's order, once.
nb::list builtin_groups() {
    nb::list result;
    for (const builtins::Group& group : builtins::groups()) {
        nb::list names;
        std::string last;
        for (const builtins::Entry& entry : group.entries) {
            if (entry.name != last) names.append(entry.name);
            last = entry.name;
        }
        result.append(nb::make_tuple(group.name, names));
    }
    return result;
}

}  // namespace

void bind_builtins(nb::module_& m) {
    m.def("builtin", &builtin, nb::arg("name"), "The builtin function of this name, or None if the table has none.");
    m.def("builtin_overloads", &builtin_overloads, nb::arg("name"),
          "The table's entries of this name: a list of (signature, doc, has_expansion, differentiable).");
    m.def("builtin_is_for_kernels", &builtins::is_for_kernels, nb::arg("name"),
          "Whether the builtin cannot be called from Python, because it has a meaning only in kernels.");
    m.def("builtin_groups", &builtin_groups,
          "The groups of the builtin table, in the order of the reference: a list of (group, [name]).");
    m.def("builtin_names", &builtins::names, "Every name of the builtin table, sorted.");
}

}  // namespace weft::bindings

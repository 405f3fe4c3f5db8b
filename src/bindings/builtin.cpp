#include "bindings/builtin.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "builtins/registry.h"
#include "frontend/frontend.h"

namespace weft::bindings {
namespace {

namespace nb = nanobind;

// One paragraph per overload: its signature, and what it does.
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

}  // namespace

void bind_builtins(nb::module_& m) {
    m.def("builtin", &builtin, nb::arg("name"), "The builtin function of this name, or None where the table has none.");
    m.def("builtin_names", &builtins::names, "Every name of the builtin table, sorted.");
}

}  // namespace weft::bindings

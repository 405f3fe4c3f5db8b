// Constants that a kernel took from names outside of it; reports names with other values.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sema/environment.h"

namespace weft::frontend {

namespace nb = nanobind;

// Globals of modules and variables of closures. Not thread-safe: the caller holds the GIL.
class WatchedGlobals final : public sema::NameWatch {
public:
    ~WatchedGlobals() override;

    // `value` is the value of `name` in a module's dict, or of a variable in its cell.
    void add_global(nb::handle dict, nb::handle name, nb::handle value, sema::Binding meant);
    void add_variable(nb::handle cell, nb::handle name, nb::handle value, sema::Binding meant);

    std::string changed() override;

private:
    struct Name {
        nb::object name, value;
        sema::Binding meant;
        nb::object cell;  // of a variable
    };
    struct Dict {
        nb::object dict;
        std::uint64_t version;  // of the dict when all names had their values
        std::vector<Name> names;
    };
    static std::string changed(Name& name, PyObject* now);

    std::vector<Dict> dicts_;
    std::vector<Name> variables_;
};

}  // namespace weft::frontend

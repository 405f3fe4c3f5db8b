// The types that a launch gives to a generic kernel.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "types/pattern.h"

namespace weft::bindings {

namespace nb = nanobind;

// The type that a launch's argument has by itself.
struct ArgumentType {
    Type type;                // none if it has none: `why_not` gives the reason
    bool is_literal = false;  // a plain Python number, which becomes any type that holds it
    std::string why_not;
};
// `pattern` decides for foreign memory: (n, 3) numbers are vectors if the pattern asks for vectors.
ArgumentType argument_type(nb::handle value, const TypePattern& pattern);

}  // namespace weft::bindings

// Generic annotations: typing.Any, type variables, wp.array[Any], wp.types.vector(length=Any, dtype=Any), Callable; and
// the types that a launch gives to a generic kernel.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "types/pattern.h"

namespace weft::bindings {

namespace nb = nanobind;

// The pattern of an annotation, exact types included. The caller evaluates a string first. Empty if the object is no
// annotation of a kernel.
std::optional<TypePattern> pattern_from_python(nb::handle annotation);

// typing.Any or a type variable: a length or a dtype that is open in wp.types.vector() and the like.
bool is_type_variable(nb::handle object);
// An object made by wp.types.vector(length=Any, ...): the pattern of a type of values.
bool is_value_pattern(nb::handle object);
// wp.types.vector(length=Any, dtype=T) as a Python object; null extents stand for any.
nb::object vector_pattern(nb::handle length, nb::handle dtype, const char* api);
nb::object matrix_pattern(nb::handle rows, nb::handle cols, nb::handle dtype, const char* api);
nb::object indexed_pattern(nb::handle dtype, int ndim);
nb::object scalar_pattern(TypePattern::Shape shape, nb::handle dtype, const char* api);

// The type that a launch's argument has by itself.
struct ArgumentType {
    Type type;                // none if it has none: `why_not` gives the reason
    bool is_literal = false;  // a plain Python number, which becomes any type that holds it
    std::string why_not;
};
// `pattern` decides for foreign memory: (n, 3) numbers are vectors if the pattern asks for vectors.
ArgumentType argument_type(nb::handle value, const TypePattern& pattern);

void bind_generics(nb::module_& m);

}  // namespace weft::bindings

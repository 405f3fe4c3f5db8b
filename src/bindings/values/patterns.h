// Annotations of parameters, generic ones too: typing.Any, type variables, wp.array[Any], wp.types.vector(length=Any,
// dtype=Any), Callable.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "types/pattern.h"

namespace weft::bindings {

namespace nb = nanobind;

// The type of a parameter annotation: a dtype or an array type, in any supported spelling. The caller evaluates a
// string first. Empty if it is neither.
std::optional<Type> annotation_from_python(nb::handle object);

// The pattern of an annotation, exact types included. The caller evaluates a string first. Empty if the object is no
// annotation of a kernel.
std::optional<TypePattern> pattern_from_python(nb::handle annotation);

// typing.Any or a type variable: a length or a dtype that is open in wp.types.vector() and the like.
bool is_type_variable(nb::handle object);
// An object made by wp.types.vector(length=Any, ...): the pattern of a type of values.
bool is_value_pattern(nb::handle object);

void bind_patterns(nb::module_& m);

}  // namespace weft::bindings

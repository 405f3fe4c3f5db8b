// Types and values between Python and C++: the meaning of `dtype=` and annotations, and Python values as the bytes of a
// kernel argument or an array element, and back.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "bindings/python/describe.h"
#include "types/names.h"
#include "types/type.h"

namespace weft::bindings {

namespace nb = nanobind;

// A type of values: float, int, bool (float32, int32, bool), wp.float64, wp.vec3, classes made by wp.types.vector(),
// NumPy dtypes and scalar types, wp.struct classes. Empty if `object` is none of these.
std::optional<Type> dtype_from_python(nb::handle object);
Type require_dtype(nb::handle object, std::string_view api);
// The type of `dtype=`: fast for classes that were seen before. Null and None give float32.
Type dtype_argument(PyObject* dtype, const char* api);
// The ctypes type of a scalar in memory; of floats of 8 and 16 bits, their bits.
nb::object ctype_of(Scalar scalar);

// The element that data of the user's make: a vector of one extent, a matrix of two. Empty if there is no such type:
// another number of extents, an extent of 0, more than kMostComponents.
std::optional<Type> element_of_extents(Scalar scalar, std::span<const std::int64_t> extents);
// Extents inside an element: none for scalars, (3,) for vec3, (2, 2) for mat22.
int inner_shape(Type dtype, std::int64_t inner[2]);
// Numbers, vectors or matrices of floats that NumPy lacks.
bool is_bits_in_numpy(Type dtype);
// The Python class of a type (wp.float32, wp.vec3f, ...): the same object each time. For an array type, its annotation.
nb::object dtype_to_python(Type type);
// Makes `python_class` another spelling of `type` in dtype_from_python (struct classes). It is kept alive for good.
void register_dtype(nb::handle python_class, Type type);

// Writes `value` as `type` (size_bytes() bytes, any alignment): Python and NumPy scalars, Weft values. Numeric
// aggregates also take tuples, lists, NumPy arrays and Weft values of the right number of components (nested for
// matrices). Numbers convert as in C: integers wrap to the width, floats may become infinite, every number is a truth
// value. But a float does not become an integer. Returns false, with nothing raised, if it does not fit.
bool write_value(nb::handle value, Type type, void* to);
// The same for one scalar.
bool write_component(nb::handle value, Scalar scalar, void* to);
// Scalars as Python int, float and bool; aggregates as instances of their class.
nb::object value_to_python(Type type, const void* from);
// These two for structs, which structs/ knows and sets at import.
struct StructConversions {
    bool (*write)(nb::handle value, Type type, void* to);
    nb::object (*read)(Type type, const void* from);
};
void set_struct_conversions(StructConversions conversions);

void bind_types(nb::module_& m);

}  // namespace weft::bindings

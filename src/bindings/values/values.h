// Typed values in Python: wp.float64(1.0), wp.vec3(1.0, 2.0, 3.0), a row of a matrix.
//
// One C++ object serves all of them: a type and packed bytes, as in the memory of arrays and arguments. The Python
// classes are plain CPython types and not nanobind's, because programs make vectors by the million: making one, reading
// a component and adding two cost some dozens of nanoseconds.
//
//   value_object.cpp       the classes: life, attributes
//   value_memory.cpp       buffers, addresses, pickling
//   value_construct.cpp    wp.vec3(...): the constructors
//   value_index.cpp        v[i], m[i, j], slices, assignment
//   value_text.cpp         repr() and str()
//   value_arithmetic.cpp   operators, comparison
//   components.cpp         from sequences and buffers to components
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "support/error.h"
#include "types/type.h"

namespace weft::bindings {

namespace nb = nanobind;

class Value {
public:
    explicit Value(Type type);                            // zero
    Value(Type type, std::byte* data, nb::handle owner);  // a view: `owner` keeps the memory alive
    ~Value();
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;

    Type type() const { return type_; }
    std::byte* data() const { return data_; }
    Number component(int index) const;
    void set_component(int index, Number number);

private:
    static constexpr std::size_t kInlineBytes = 64;  // mat44f; larger ones are on the heap
    Type type_;
    std::byte* data_;
    PyObject* owner_ = nullptr;
    alignas(8) std::byte storage_[kInlineBytes];
};

// The Value inside a Python object, or null for another object.
Value* value_pointer(nb::handle object);
// An instance of the class of `type`, also for scalars (value_to_python returns a Python number for some). Zero at
// first.
nb::object new_value(Type type);
nb::object new_view(Type type, std::byte* data, nb::handle owner);
// The scalar or numeric aggregate type of a class made by types.cpp or derived from such a class.
std::optional<Type> value_type_of_class(PyTypeObject* python_class);
// value_base_class(): the base of a type's class: VectorValue, ScalarValue ... finish_value_class() makes calls of a
// new class quick.
nb::handle value_base_class(Type type);
void finish_value_class(nb::handle python_class);

// A Python or NumPy number, a typed scalar, or anything 0-dimensional with item(). `from` is i64, u64, f64 or boolean,
// or the type of a typed scalar. False, with nothing raised, if it is no number or an integer beyond 64 bits.
bool read_number(nb::handle value, Number& number, Scalar& from);
// Whether a number becomes a `to` implicitly, as C converts it: all do, but a float never becomes an integer.
bool converts(Number number, Scalar to);
// The same without wrapping: an integer type has to hold the number.
bool is_in_range(Number number, Scalar from, Scalar to);
// For a value that write_value() refused: a TypeError, or an OverflowError for an int beyond the range of double.
[[noreturn]] void throw_unfit(std::string_view api, const std::string& what, nb::handle value, Type type);
nb::object number_to_python(Number number, Scalar scalar);
// Writes the components of `value` (sequence, buffer, Weft value) in order. `explicit_conversion` is the rule of
// constructors: another Weft type of as many components is converted, as a cast in kernels does. False, with nothing
// raised, if number or nesting do not fit.
bool write_components(nb::handle value, Type type, std::byte* to, bool explicit_conversion);
// The category of the error for a value that does not fit: value if it has another number of components, else type.
ErrorCategory misfit_category(nb::handle value, Type type);
// The same from items: all components in a row; one item per row of a matrix; (p, q) of a transform; the two halves of
// a spatial vector.
bool write_items(std::span<PyObject* const> items, Type type, std::byte* to, bool explicit_conversion);

void bind_values(nb::module_& m);

}  // namespace weft::bindings

// Typed values in Python: wp.float64(1.0), wp.vec3(1.0, 2.0, 3.0), a row of a matrix.
//
// One C++ object serves all of them: a type and packed bytes, as in memory of arrays and arguments. The classes below
// differ only in the members that Python sees; the Python class of each type (wp.vec3f) is derived from one of them
// when first asked for (types.cpp).
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>

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

struct ScalarValue : Value {
    using Value::Value;
};
struct IntegerValue : ScalarValue {
    using ScalarValue::ScalarValue;
};
struct AggregateValue : Value {
    using Value::Value;
};
struct VectorValue : AggregateValue {
    using AggregateValue::AggregateValue;
};
struct MatrixValue : AggregateValue {
    using AggregateValue::AggregateValue;
};
struct QuaternionValue : AggregateValue {
    using AggregateValue::AggregateValue;
};
struct TransformValue : AggregateValue {
    using AggregateValue::AggregateValue;
};

// The Value inside a Python object, or null where it is something else.
Value* value_pointer(nb::handle object);
// An instance of the class of `type`: scalars too (where value_to_python gives a Python number). Zero at first.
nb::object new_value(Type type);
nb::object new_view(Type type, std::byte* data, nb::handle owner);
// The scalar or numeric aggregate type of a class made by types.cpp or derived from such a class.
std::optional<Type> value_type_of_class(PyTypeObject* python_class);

// A Python or NumPy number, a typed scalar, or anything 0-dimensional with item(). `from` is i64, u64, f64 or boolean,
// or the type of a typed scalar. False, with nothing raised, where it is no number or an integer beyond 64 bits.
bool read_number(nb::handle value, Number& number, Scalar& from);
// Whether a number may become a `to` without an explicit conversion: integers in range, no integer from a float.
bool fits(Number number, Scalar from, Scalar to);
nb::object number_to_python(Number number, Scalar scalar);
// A NumPy array (of any number of dimensions), without importing NumPy.
bool is_numpy_array(nb::handle object);
// Writes the components of `value` (sequence, buffer, Weft value) in order. `explicit_conversion` is the rule of
// constructors: another Weft type of as many components is converted. False, with nothing raised, where number or
// nesting do not fit.
bool write_components(nb::handle value, Type type, std::byte* to, bool explicit_conversion);

void bind_values(nb::module_& m);
void bind_arithmetic(nb::class_<Value>& value_class);  // values_arithmetic.cpp

}  // namespace weft::bindings

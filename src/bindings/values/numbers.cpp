// Single numbers between Python and C++. On the launch path: exact int, float and bool come first and take nanoseconds.
#include <nanobind/stl/string.h>

#include <cstring>
#include <limits>

#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

// A Python int as 64 bits; `from` says whether they are signed.
bool read_integer(PyObject* object, Number& number, Scalar& from) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    from = Scalar::i64;
    if (overflow == 0) {
        if (value == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        number = Number::integer(value);
        return true;
    }
    if (overflow < 0) return false;
    const unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    from = Scalar::u64;
    number = Number::integer(static_cast<std::int64_t>(large));
    return true;
}

// The number in any int object as C converts it to `to`: its low 64 bits, or the nearest double for floats.
bool read_any_integer(PyObject* object, Scalar to, Number& number, Scalar& from) {
    if (read_integer(object, number, from)) return true;
    if (info(to).is_float()) {
        number = Number::real(PyLong_AsDouble(object));
        from = Scalar::f64;
    } else {
        number = Number::integer(static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(object)));
        from = Scalar::u64;
    }
    if (!PyErr_Occurred()) return true;
    PyErr_Clear();  // an int beyond the range of double
    return false;
}

bool read_index(PyObject* object, Number& number, Scalar& from) {
    nb::object index = nb::steal(PyNumber_Index(object));
    if (!index.is_valid()) {
        PyErr_Clear();
        return false;
    }
    return read_integer(index.ptr(), number, from);
}

bool read_float(PyObject* object, Number& number, Scalar& from) {
    const double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    number = Number::real(value);
    from = Scalar::f64;
    return true;
}

// 0-dimensional arrays and tensors of any framework: a shape of length 0 and item().
nb::object item_of(nb::handle object) {
    try {
        if (!nb::hasattr(object, "shape") || !nb::hasattr(object, "item")) return {};
        if (nb::len(nb::object(object.attr("shape"))) != 0) return {};
        return object.attr("item")();
    } catch (nb::python_error&) {
        return {};  // no such object after all: the caller's error describes it
    }
}

template <class T>
bool in_range(std::int64_t value) {
    return value >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
           value <= static_cast<std::int64_t>(std::numeric_limits<T>::max());
}

template <class T>
bool store(T value, void* to) {
    std::memcpy(to, &value, sizeof value);
    return true;
}

}  // namespace

bool read_number(nb::handle value, Number& number, Scalar& from) {
    PyObject* object = value.ptr();
    if (PyBool_Check(object)) {
        number = Number::integer(object == Py_True);
        from = Scalar::boolean;
        return true;
    }
    if (PyFloat_Check(object)) return read_float(object, number, from);  // numpy.float64 too
    if (PyLong_Check(object)) return read_integer(object, number, from);
    if (const Value* typed = value_pointer(value)) {
        if (!typed->type().is_scalar()) return false;
        number = typed->component(0);
        from = typed->type().scalar();
        return true;
    }
    // NumPy's scalars.
    if (const auto type = dtype_from_python(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))));
        type && type->is_scalar()) {
        if (type->is_float()) return read_float(object, number, from);
        if (type->is_bool()) {
            number = Number::integer(PyObject_IsTrue(object) == 1);
            from = Scalar::boolean;
            return true;
        }
        return read_index(object, number, from);
    }
    if (nb::object item = item_of(value); item.is_valid()) {
        // A 0-d tensor of a type without a Python number returns itself.
        return Py_TYPE(item.ptr()) != Py_TYPE(object) && read_number(item, number, from);
    }
    return PyIndex_Check(object) && read_index(object, number, from);
}

bool converts(Number number, Scalar to) { return !number.is_float || !info(to).is_int(); }

bool is_in_range(Number number, Scalar from, Scalar to) {
    if (!converts(number, to)) return false;
    if (!info(to).is_int()) return true;
    const bool beyond_signed = from == Scalar::u64 && number.i < 0;
    switch (to) {
        case Scalar::i8:
            return !beyond_signed && in_range<std::int8_t>(number.i);
        case Scalar::u8:
            return !beyond_signed && in_range<std::uint8_t>(number.i);
        case Scalar::i16:
            return !beyond_signed && in_range<std::int16_t>(number.i);
        case Scalar::u16:
            return !beyond_signed && in_range<std::uint16_t>(number.i);
        case Scalar::i32:
            return !beyond_signed && in_range<std::int32_t>(number.i);
        case Scalar::u32:
            return !beyond_signed && in_range<std::uint32_t>(number.i);
        case Scalar::i64:
            return !beyond_signed;
        case Scalar::u64:
            return beyond_signed || number.i >= 0;
        default:
            return false;
    }
}

nb::object number_to_python(Number number, Scalar scalar) {
    const ScalarInfo& row = info(scalar);
    if (row.is_float()) return nb::float_(number.f);
    if (row.kind == ScalarKind::boolean) return nb::bool_(number.i != 0);
    if (scalar == Scalar::u64) return nb::int_(static_cast<std::uint64_t>(number.i));
    return nb::int_(number.i);
}

bool write_component(nb::handle value, Scalar scalar, void* to) {
    PyObject* object = value.ptr();
    if (PyFloat_CheckExact(object)) {
        const double number = PyFloat_AS_DOUBLE(object);
        if (scalar == Scalar::f32) return store(static_cast<float>(number), to);
        if (scalar == Scalar::f64) return store(number, to);
    } else if (PyLong_CheckExact(object)) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (!overflow) {
            if (scalar == Scalar::i32) return store(static_cast<std::int32_t>(number), to);
            if (scalar == Scalar::f32) return store(static_cast<float>(number), to);
            if (scalar == Scalar::i64) return store(static_cast<std::int64_t>(number), to);
        }
    } else if (PyBool_Check(object) && scalar == Scalar::boolean) {
        return store(static_cast<std::uint8_t>(object == Py_True), to);
    }
    Number number;
    Scalar from;
    const bool is_int = PyLong_Check(object) && !PyBool_Check(object);
    const bool is_read = is_int ? read_any_integer(object, scalar, number, from) : read_number(value, number, from);
    if (!is_read || !converts(number, scalar)) return false;
    write_scalar(scalar, convert(number, from, scalar), to);
    return true;
}

static StructConversions struct_conversions;

void set_struct_conversions(StructConversions conversions) { struct_conversions = conversions; }

bool write_value(nb::handle value, Type type, void* to) {
    if (type.is_scalar()) return write_component(value, type.scalar(), to);
    if (const Value* typed = value_pointer(value); typed && typed->type() == type) {
        std::memcpy(to, typed->data(), static_cast<std::size_t>(type.size_bytes()));
        return true;
    }
    if (type.is_struct()) return struct_conversions.write(value, type, to);
    return type.is_numeric_aggregate() && write_components(value, type, static_cast<std::byte*>(to), false);
}

nb::object value_to_python(Type type, const void* from) {
    if (type.is_scalar()) return number_to_python(read_scalar(type.scalar(), from), type.scalar());
    if (type.is_struct()) return struct_conversions.read(type, from);
    nb::object made = new_value(type);
    std::memcpy(value_pointer(made)->data(), from, static_cast<std::size_t>(type.size_bytes()));
    return made;
}

void throw_unfit(std::string_view api, const std::string& what, nb::handle value, Type type) {
    const bool out_of_range = type.is_scalar() && PyLong_Check(value.ptr());  // an int beyond the range of double
    throw UsageError(api, what + (out_of_range ? ": it does not fit" : ""),
                     out_of_range ? ErrorCategory::overflow : ErrorCategory::type);
}

}  // namespace weft::bindings

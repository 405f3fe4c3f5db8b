// Operators on typed values at Python scope, with their meaning in kernels. Operands have one scalar type (a plain
// Python or NumPy number takes it if it fits). `*` is the matrix, quaternion or transform product, integer `/` and `%`
// are C's. Operations by component are computed here, in the type itself; products and powers are the builtins of
// kernels (builtin_call.h).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

#include "bindings/values/builtin_call.h"
#include "bindings/values/value_object.h"

namespace weft::bindings {
namespace {

enum class Op { add, sub, mul, matmul, div, floordiv, mod, pow, bit_and, bit_or, bit_xor, lshift, rshift };
struct OpNames {
    const char* symbol;
    const char* builtin;
    PyObject* (*python)(PyObject*, PyObject*);
};
PyObject* python_power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
constexpr OpNames kOps[] = {
    {"+", "add", PyNumber_Add},        {"-", "sub", PyNumber_Subtract},
    {"*", "mul", PyNumber_Multiply},   {"@", "matmul", PyNumber_MatrixMultiply},
    {"/", "div", PyNumber_TrueDivide}, {"//", "floordiv", PyNumber_FloorDivide},
    {"%", "mod", PyNumber_Remainder},  {"**", "pow", python_power},
    {"&", "bit_and", PyNumber_And},    {"|", "bit_or", PyNumber_Or},
    {"^", "bit_xor", PyNumber_Xor},    {"<<", "lshift", PyNumber_Lshift},
    {">>", "rshift", PyNumber_Rshift},
};
const OpNames& names_of(Op op) { return kOps[static_cast<int>(op)]; }
bool is_bitwise(Op op) { return op >= Op::bit_and; }

nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

// ---- component by component ----

[[noreturn]] void throw_division_by_zero() {
    PyErr_SetString(PyExc_ZeroDivisionError, "integer division by zero");
    throw nb::python_error();
}

// Integers wrap: they are computed as unsigned 64-bit numbers and cut to their type.
template <class T>
T integer_result(Op op, T a, T b) {
    const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
    const auto shift = ub & (sizeof(T) * 8 - 1);
    switch (op) {
        case Op::add:
            return static_cast<T>(ua + ub);
        case Op::sub:
            return static_cast<T>(ua - ub);
        case Op::mul:
            return static_cast<T>(ua * ub);
        case Op::bit_and:
            return static_cast<T>(ua & ub);
        case Op::bit_or:
            return static_cast<T>(ua | ub);
        case Op::bit_xor:
            return static_cast<T>(ua ^ ub);
        case Op::lshift:
            return static_cast<T>(ua << shift);
        case Op::rshift:
            return static_cast<T>(a >> shift);
        default:
            break;
    }
    if (b == 0) throw_division_by_zero();
    if (std::is_signed_v<T> && b == static_cast<T>(-1))  // the least number / -1 overflows in C
        return op == Op::mod ? T(0) : static_cast<T>(0 - ua);
    if (op == Op::mod) return static_cast<T>(a % b);
    const T quotient = static_cast<T>(a / b);
    return op == Op::floordiv && a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
}

template <class T>
T float_result(Op op, T a, T b) {
    switch (op) {
        case Op::add:
            return a + b;
        case Op::sub:
            return a - b;
        case Op::mul:
            return a * b;
        case Op::div:
            return a / b;
        case Op::floordiv:
            return std::floor(a / b);
        case Op::mod:
            return std::fmod(a, b);
        default:
            throw InternalError(std::string("no meaning of ") + names_of(op).symbol + " by components");
    }
}

template <class T>
T component_result(Op op, T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return float_result(op, a, b);
    } else {
        return integer_result(op, a, b);
    }
}

// One operand: components in memory; a scalar has one for all places.
struct Operand {
    Type type;
    const std::byte* data;
};

template <class T>
void by_components(Op op, const Operand& a, const Operand& b, int count, std::byte* to) {
    const std::size_t a_step = a.type.is_scalar() ? 0 : sizeof(T), b_step = b.type.is_scalar() ? 0 : sizeof(T);
    for (int i = 0; i < count; ++i) {
        const auto place = static_cast<std::size_t>(i);
        T x, y;
        std::memcpy(&x, a.data + place * a_step, sizeof x);
        std::memcpy(&y, b.data + place * b_step, sizeof y);
        const T result = component_result(op, x, y);
        std::memcpy(to + place * sizeof(T), &result, sizeof result);
    }
}

// Floats of 8 and 16 bits: in double, which is exact up to the one rounding.
void by_small_floats(Op op, const Operand& a, const Operand& b, int count, Scalar scalar, std::byte* to) {
    const int bytes = info(scalar).bytes();
    for (int i = 0; i < count; ++i) {
        const double x = read_scalar(scalar, a.data + (a.type.is_scalar() ? 0 : i * bytes)).f;
        const double y = read_scalar(scalar, b.data + (b.type.is_scalar() ? 0 : i * bytes)).f;
        write_scalar(scalar, convert(Number::real(float_result(op, x, y)), Scalar::f64, scalar), to + i * bytes);
    }
}

nb::object componentwise(Op op, const Operand& a, const Operand& b) {
    const Type type = a.type.is_scalar() ? b.type : a.type;
    nb::object made = new_value(type);
    std::byte* to = value_of_object(made.ptr()).data();
    const int count = type.components();
    switch (type.scalar()) {
        case Scalar::i8:
            by_components<std::int8_t>(op, a, b, count, to);
            break;
        case Scalar::u8:
            by_components<std::uint8_t>(op, a, b, count, to);
            break;
        case Scalar::i16:
            by_components<std::int16_t>(op, a, b, count, to);
            break;
        case Scalar::u16:
            by_components<std::uint16_t>(op, a, b, count, to);
            break;
        case Scalar::i32:
            by_components<std::int32_t>(op, a, b, count, to);
            break;
        case Scalar::u32:
            by_components<std::uint32_t>(op, a, b, count, to);
            break;
        case Scalar::i64:
            by_components<std::int64_t>(op, a, b, count, to);
            break;
        case Scalar::u64:
            by_components<std::uint64_t>(op, a, b, count, to);
            break;
        case Scalar::f32:
            by_components<float>(op, a, b, count, to);
            break;
        case Scalar::f64:
            by_components<double>(op, a, b, count, to);
            break;
        default:
            by_small_floats(op, a, b, count, type.scalar(), to);
    }
    return made;
}

// ---- the kinds of operators ----

bool is_linear(Type type) { return type.is_vector() || type.is_matrix(); }

// Whether the operator goes component by component on these types, whose scalar types are the same.
bool is_componentwise(Op op, Type a, Type b) {
    const bool a_scalar = a.is_scalar(), b_scalar = b.is_scalar();
    const bool both = a_scalar && b_scalar;
    if (is_bitwise(op)) return info(a.scalar()).is_int() && a == b;
    switch (op) {
        case Op::add:
        case Op::sub:  // adds a number to every component of a vector; kernels cannot
            return a == b || (a_scalar && b.is_vector()) || (a.is_vector() && b_scalar);
        case Op::mul:
        case Op::div:
            return a_scalar || b_scalar;
        case Op::mod:
            return both || (a.is_vector() && (a == b || b_scalar));
        case Op::floordiv:
            return both;
        default:
            return false;
    }
}

// Whether the operator is a builtin of kernels.
bool is_builtin(Op op, Type a, Type b) {
    switch (op) {
        case Op::mul:
            if (a == b && (a.is(Kind::quaternion) || a.is(Kind::transform))) return true;
            [[fallthrough]];
        case Op::matmul:
            if (a.is_vector() && b.is_vector()) {
                throw UsageError(
                    names_of(op).symbol,
                    "two vectors have no such product. help: wp.dot(a, b), wp.cross(a, b), wp.cw_mul(a, b)",
                    ErrorCategory::type);
            }
            if (!is_linear(a) || !is_linear(b)) return false;
            return (a.is_vector() ? a.rows() : a.cols()) == b.rows();
        case Op::pow:
            return a.is_float() && b.is_float();
        default:
            return false;
    }
}

// The value with the two dimensions of a matrix, which its buffer does not have.
nb::object as_array(nb::handle value) {
    if (is_numpy_array(value)) return nb::borrow(value);
    nb::object made = nb::module_::import_("numpy").attr("asarray")(value);
    const Value* typed = value_pointer(value);
    if (!typed || !typed->type().is_matrix()) return made;
    return made.attr("reshape")(typed->type().rows(), typed->type().cols());
}

bool is_proper_array(nb::handle object) { return is_numpy_array(object) && nb::cast<int>(object.attr("ndim")) > 0; }

// A plain number as the scalar type of its partner, in `memory`; false if it does not fit.
bool take_operand(PyObject* object, const Value* value, const Value* partner, std::byte* memory, Operand& operand) {
    if (value) {
        operand = {value->type(), value->data()};
        return true;
    }
    const Type scalar = partner->type().scalar_type();
    if (scalar.is_bool() || !write_component(object, scalar.scalar(), memory)) return false;
    operand = {scalar, memory};
    return true;
}

nb::object binary(Op op, PyObject* left, PyObject* right) {
    const Value* a = value_pointer(left);
    const Value* b = value_pointer(right);
    // With a NumPy array, the value counts as one too.
    if ((!a && is_proper_array(left)) || (!b && is_proper_array(right))) {
        nb::object result = nb::steal(names_of(op).python(as_array(left).ptr(), as_array(right).ptr()));
        if (!result.is_valid()) throw nb::python_error();
        return result;
    }
    Operand x, y;
    alignas(8) std::byte left_number[8], right_number[8];
    if (!take_operand(left, a, b, left_number, x) || !take_operand(right, b, a, right_number, y))
        return not_implemented();
    const Scalar scalar = x.type.scalar();
    if (scalar != y.type.scalar() || scalar == Scalar::boolean) return not_implemented();
    if (is_componentwise(op, x.type, y.type)) return componentwise(op, x, y);
    if (!is_builtin(op, x.type, y.type)) return not_implemented();
    // The numbers as typed values: the result has their type, and is typed itself.
    const auto typed = [](const Operand& operand, PyObject* given, const Value* value) {
        if (value) return nb::borrow(given);
        nb::object made = new_value(operand.type);
        std::memcpy(value_of_object(made.ptr()).data(), operand.data,
                    static_cast<std::size_t>(operand.type.size_bytes()));
        return made;
    };
    const nb::object first = typed(x, left, a), second = typed(y, right, b);
    PyObject* const arguments[] = {first.ptr(), second.ptr()};
    nb::object result = host_builtin(names_of(op).builtin).call(arguments, 2);
    if (value_pointer(result)) return result;
    nb::object made = new_value(x.type);  // float32, which builtins return as a Python number
    WEFT_CHECK(write_value(result, x.type, value_of_object(made.ptr()).data()), "a product of another type");
    return made;
}

template <Op op>
PyObject* operate(PyObject* left, PyObject* right) {
    return guarded([&] { return binary(op, left, right).release().ptr(); });
}
PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return operate<Op::pow>(left, right);
}

// ---- one operand ----

nb::object copy_of(const Value& value) {
    nb::object made = new_value(value.type());
    std::memcpy(value_of_object(made.ptr()).data(), value.data(), static_cast<std::size_t>(value.type().size_bytes()));
    return made;
}

nb::object negated(const Value& value) {
    nb::object made = new_value(value.type());
    Value& result = value_of_object(made.ptr());
    for (int i = 0; i < value.type().components(); ++i) {
        const Number number = value.component(i);
        const auto wrapped = Number::integer(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(number.i)));
        result.set_component(
            i, number.is_float ? Number::real(-number.f) : convert(wrapped, Scalar::i64, value.type().scalar()));
    }
    return made;
}

PyObject* negative(PyObject* self) {
    return guarded([&] {
        const Value& value = value_of_object(self);
        if (info(value.type().scalar()).id == Scalar::boolean || value.type().is(Kind::transform))
            throw UsageError("-", "a " + name_of(value) + " has no negative", ErrorCategory::type);
        return negated(value).release().ptr();
    });
}
PyObject* positive(PyObject* self) {
    return guarded([&] { return copy_of(value_of_object(self)).release().ptr(); });
}
PyObject* absolute(PyObject* self) {
    return guarded([&] {
        const Value& value = value_of_object(self);
        const Type type = value.type();
        if (!type.is_scalar() || type.is_bool()) {
            throw UsageError("abs()", "expected a number, got " + name_of(value) + ". help: wp.abs(v), wp.length(v)",
                             ErrorCategory::type);
        }
        const Number number = value.component(0);
        const bool is_signed = info(type.scalar()).is_signed();
        const bool is_positive = number.is_float ? !std::signbit(number.f) : !is_signed || number.i >= 0;
        return (is_positive ? copy_of(value) : negated(value)).release().ptr();
    });
}
PyObject* inverted(PyObject* self) {
    return guarded([&] {
        const Value& value = value_of_object(self);
        if (!info(value.type().scalar()).is_int())
            throw UsageError("~", "expected integers, got " + name_of(value), ErrorCategory::type);
        nb::object made = new_value(value.type());
        for (int i = 0; i < value.type().components(); ++i) {
            const Number flipped = Number::integer(~value.component(i).i);
            value_of_object(made.ptr()).set_component(i, convert(flipped, Scalar::i64, value.type().scalar()));
        }
        return made.release().ptr();
    });
}

// ---- comparison ----

// Compares numbers of any types as Python does.
bool equal(Number a, Scalar of_a, Number b, Scalar of_b) {
    if (a.is_float || b.is_float) return a.as_double() == b.as_double();
    const bool a_is_beyond = of_a == Scalar::u64 && a.i < 0, b_is_beyond = of_b == Scalar::u64 && b.i < 0;
    return a.i == b.i && a_is_beyond == b_is_beyond;
}

// As many components in the same rows.
bool equal(const Value& a, const Value& b) {
    const Type x = a.type(), y = b.type();
    if (x == y && x.scalar() == Scalar::f32) {  // nearly all values
        float left, right;
        for (std::size_t at = 0; at < static_cast<std::size_t>(x.size_bytes()); at += sizeof left) {
            std::memcpy(&left, a.data() + at, sizeof left);
            std::memcpy(&right, b.data() + at, sizeof right);
            if (left != right) return false;
        }
        return true;
    }
    if (x.components() != y.components() || x.is_matrix() != y.is_matrix() || x.rows() != y.rows()) return false;
    for (int i = 0; i < x.components(); ++i)
        if (!equal(a.component(i), x.scalar(), b.component(i), y.scalar())) return false;
    return true;
}

// Compares with a sequence of as many numbers; a matrix with as many sequences. Empty if `other` is no sequence.
std::optional<bool> equals_sequence(const Value& a, int row, nb::handle other) {
    const Type type = a.type();
    const bool has_rows = type.is_matrix() && row < 0;
    if (PyUnicode_Check(other.ptr()) || PyBytes_Check(other.ptr()) || !PySequence_Check(other.ptr())) return {};
    const nb::object items = sequence_items(other.ptr());
    if (!items.is_valid()) return {};
    const int count = has_rows ? type.rows() : type.is_matrix() ? type.cols() : type.components();
    if (PyTuple_GET_SIZE(items.ptr()) != count) return false;
    for (int i = 0; i < count; ++i) {
        const nb::handle item = PyTuple_GET_ITEM(items.ptr(), i);
        Number number;
        Scalar from;
        if (has_rows) {
            if (!equals_sequence(a, i, item).value_or(false)) return false;
        } else if (!read_number(item, number, from) ||
                   !equal(a.component(std::max(row, 0) * count + i), type.scalar(), number, from)) {
            return false;
        }
    }
    return true;
}

// Scalars compare as their numbers, aggregates component by component, with sequences too.
nb::object compare(nb::handle left, nb::handle right, int op) {
    const auto plain = [](nb::handle object) {
        const Value* value = value_pointer(object);
        return value && value->type().is_scalar() ? load_component(*value, 0) : nb::borrow(object);
    };
    const Value& self = *value_pointer(left);
    const bool asks_equality = op == Py_EQ || op == Py_NE;
    if ((is_proper_array(right) && !asks_equality) || self.type().is_scalar()) {
        nb::object x = is_proper_array(right) ? as_array(left) : plain(left), y = plain(right);
        if (value_pointer(y)) return not_implemented();  // Python then tries the other side, and compares identity
        nb::object result = nb::steal(PyObject_RichCompare(x.ptr(), y.ptr(), op));
        if (!result.is_valid()) throw nb::python_error();
        return result;
    }
    if (!asks_equality) return not_implemented();
    if (const Value* other = value_pointer(right); other && !other->type().is_scalar())
        return nb::bool_(equal(self, *other) == (op == Py_EQ));
    const std::optional<bool> same = equals_sequence(self, -1, right);
    if (!same) return not_implemented();
    // NumPy's own bool beside NumPy's arrays: it has all() and any().
    if (is_numpy_array(right)) return nb::module_::import_("numpy").attr("bool_")(*same == (op == Py_EQ));
    return nb::bool_(*same == (op == Py_EQ));
}

}  // namespace

PyObject* compare_values(PyObject* left, PyObject* right, int op) {
    return guarded([&] { return compare(left, right, op).release().ptr(); });
}

PyType_Slot kOperatorSlots[] = {
    {Py_nb_add, type_slot(operate<Op::add>)},
    {Py_nb_subtract, type_slot(operate<Op::sub>)},
    {Py_nb_multiply, type_slot(operate<Op::mul>)},
    {Py_nb_matrix_multiply, type_slot(operate<Op::matmul>)},
    {Py_nb_true_divide, type_slot(operate<Op::div>)},
    {Py_nb_floor_divide, type_slot(operate<Op::floordiv>)},
    {Py_nb_remainder, type_slot(operate<Op::mod>)},
    {Py_nb_power, type_slot(power)},
    {Py_nb_and, type_slot(operate<Op::bit_and>)},
    {Py_nb_or, type_slot(operate<Op::bit_or>)},
    {Py_nb_xor, type_slot(operate<Op::bit_xor>)},
    {Py_nb_lshift, type_slot(operate<Op::lshift>)},
    {Py_nb_rshift, type_slot(operate<Op::rshift>)},
    {Py_nb_negative, type_slot(negative)},
    {Py_nb_positive, type_slot(positive)},
    {Py_nb_absolute, type_slot(absolute)},
    {Py_nb_invert, type_slot(inverted)},
    {0, nullptr},
};

}  // namespace weft::bindings
